// SPDX-License-Identifier: Apache-2.0
// The engine's state machine: commands in, one bounded piece of work per advance. Diagram in headroom/engine.h.
#include <math.h>
#include <string.h>

#include "headroom/replay.h"

#include "base/host_mem.h"
#include "base/text.h"
#include "train/failure_heap.h"
#include "train/ranks.h"

void engine_set_state(hr_engine *e, hr_engine_state state, const char *why)
{
    if (e->state != state) {
        e->state = state;
        trace_note(&e->bus, HR_EVENT_STATE, state, why);
    }
}

void engine_fail(hr_engine *e, hr_engine_state state)
{
    e->needs_build = true;
    e->eval.wanted = false;
    engine_set_state(e, state, e->error.sentence);
    trace_note(&e->bus, HR_EVENT_LOG, 0, e->error.sentence);
}

static void attach_own(hr_engine *e)
{
    (void)trace_watch(&e->bus, failure_heap_sink, e);
    (void)trace_watch(&e->bus, retry_watch_event, &e->retries);
}

static void take_callbacks(hr_engine *e, const hr_engine_options *options)
{
    e->keeps_failure_heap = options->keeps_failure_heap;
    e->goes_on = options->goes_on;
    e->goes_on_context = options->goes_on_context;
    e->before_update = options->before_update;
    e->before_update_context = options->before_update_context;
    if (options->sink != NULL) {
        (void)trace_attach(&e->bus, options->sink, options->sink_context);
    }
}

static void begin(hr_engine *e, const hr_preset *preset, const hr_knobs *knobs,
                  const hr_engine_options *options)
{
    e->knobs = *knobs;
    e->plan_only = options != NULL && options->plan_only;
    e->needs_build = e->needs_pipeline = true;
    e->answers_peak_bytes = HR_NONE;
    e->loss = e->loss_first = e->eval.accuracy = (double)NAN;
    e->losses = (hr_event_losses){.student = (double)NAN, .distill = (double)NAN};
    (void)text_copy(e->preset_name, sizeof e->preset_name, hr_preset_name(preset));
    trace_bus_init(&e->bus);
    e->bus.position = options != NULL ? options->position : NULL;
    if (e->bus.position != NULL) {
        atomic_store_explicit(&e->bus.position->instr, HR_NO_ID, memory_order_relaxed);
        engine_set_bus_step(e);
    }
    attach_own(e);
    if (options != NULL) {
        take_callbacks(e, options);
    }
}

static hr_status open_what_it_needs(hr_engine *e, const hr_preset *preset, const hr_engine_options *options,
                                    hr_err *err)
{
    HR_TRY(hr_knobs_validate(&e->knobs, err));
    if (!e->plan_only) {
        HR_TRY(engine_check_save_path(hr_knob_text(&e->knobs, HR_KNOB_TRAIN_SAVE), err));
    }
    if (options != NULL && options->times_file != NULL) {
        HR_TRY(engine_set_times_file(e, options->times_file, err));
    }
    HR_TRY(model_shelf_open(preset, &e->models, err));
    return model_shelf_take(e->models, &e->knobs, &e->model, err);
}

hr_status hr_engine_create(const hr_preset *preset, const hr_knobs *knobs, const hr_engine_options *options,
                           hr_engine **out, hr_err *err)
{
    hr_engine *e = hr_calloc(1, sizeof *e);
    *out = NULL;
    if (e == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for an engine");
    }
    begin(e, preset, knobs, options);
    const hr_status status = open_what_it_needs(e, preset, options, err);
    if (status != HR_OK) {
        hr_engine_destroy(e);
        return status;
    }
    *out = e;
    return HR_OK;
}

void hr_engine_destroy(hr_engine *e)
{
    if (e == NULL) {
        return;
    }
    pipeline_close(e->data);
    engine_end_answers(e);
    build_destroy(e->build);
    store_deinit(&e->carried);
    store_deinit(&e->teacher);
    vec_deinit(&e->decomposed);
    hr_free(e->answers);
    hr_heap_destroy(e->failure_heap);
    model_shelf_close(e->models);
    hr_free(e);
}

static hr_status rehearse(const hr_preset *preset, const hr_knobs *knobs, bool plan_only, hr_err *err)
{
    const hr_engine_options options = {.plan_only = plan_only};
    hr_engine *e = NULL;
    hr_err oom = {0};
    HR_TRY(hr_engine_create(preset, knobs, &options, &e, err));
    e->rehearses = true;
    hr_status status = engine_try_rebuild(e, &oom);
    if (status != HR_OK && status != HR_OOM && err != NULL) {
        *err = oom;
    }
    hr_engine_destroy(e);
    return status == HR_OOM ? HR_OK : status;
}

hr_status hr_engine_rehearse(const hr_preset *preset, const hr_knobs *knobs, hr_err *err)
{
    return rehearse(preset, knobs, false, err);
}

hr_status hr_engine_rehearse_plan(const hr_preset *preset, const hr_knobs *knobs, hr_err *err)
{
    return rehearse(preset, knobs, true, err);
}

// Knobs that the chain of stages is made of.
static bool concerns_pipeline(hr_knob_id id)
{
    const char *key = hr_knob_rows(NULL)[id].key;
    return strncmp(key, "pipeline.", 9) == 0 || strncmp(key, "batch.", 6) == 0 || id == HR_KNOB_TRAIN_SEED ||
           hr_knob_shapes_model(id);
}

// A card that does not exist and a limit that no card has are refused where the knob is turned.
static hr_status check_limit(const hr_knobs *knobs, hr_err *err)
{
    hr_card card;
    uint64_t limit_bytes = 0;
    const char *name = hr_knob_text(knobs, HR_KNOB_DEVICE_CARD);
    if (name[0] != '\0') {
        HR_TRY(hr_card_load(name, &card, err));
    }
    return hr_device_limit_bytes(knobs, name[0] != '\0' ? &card : NULL, &limit_bytes, err);
}

static bool concerns_limit(hr_knob_id id)
{
    return id == HR_KNOB_DEVICE_CARD || id == HR_KNOB_DEVICE_VRAM || id == HR_KNOB_DEVICE_LOGICAL ||
           id == HR_KNOB_ALLOCATOR_FRACTION;
}

// A size that gives weights other shapes ends what was learned: that is left to a training of its own.
static hr_status check_weights_stay(const hr_engine *e, const hr_knobs *changed, hr_knob_id id,
                                    const hr_model *next, hr_err *err)
{
    char value[HR_KNOB_TEXT_MAX];
    const bool learned = e->updates > 0 && (engine_has_weights(e) || e->carried.tensors.count > 0);
    const char *other = learned ? model_first_other_param(e->model, next) : NULL;
    if (other == NULL) {
        return HR_OK;
    }
    const char *key = hr_knob_rows(NULL)[id].key;
    (void)hr_knob_format(changed, id, value);
    const hr_status status = HR_FAIL(
        err, STATE,
        "%s=%s: %s would come, go or have another shape, and what %llu updates have learned would be lost",
        key, value, other, (unsigned long long)e->updates);
    hr_err_try(err, "headroom %.64s -s %s=%s", e->preset_name, key, value);
    return status;
}

static hr_status turn_model(hr_engine *e, const hr_knobs *changed, hr_knob_id id, hr_err *err)
{
    const hr_model *next = NULL;
    HR_TRY(model_shelf_take(e->models, changed, &next, err));
    const hr_status status = check_weights_stay(e, changed, id, next, err);
    const hr_model *gone = status == HR_OK ? e->model : next;
    e->model = status == HR_OK ? next : e->model;
    model_shelf_give_back(e->models, gone);
    return status;
}

static hr_status turn_knob(hr_engine *e, const hr_command *c, hr_err *err)
{
    if (c->knob >= HR_KNOB_COUNT) {
        return HR_FAIL(err, KNOB, "there is no knob number %u", c->knob);
    }
    hr_knobs changed = e->knobs;
    hr_knob_id id = (hr_knob_id)c->knob;
    HR_TRY(hr_knobs_set(&changed, id, c->text, err));
    HR_TRY(hr_knobs_validate(&changed, err));
    if (concerns_limit(id)) {
        HR_TRY(check_limit(&changed, err));
    }
    if (id == HR_KNOB_TRAIN_SAVE && !e->plan_only) {
        HR_TRY(engine_check_save_path(c->text, err));
    }
    if (hr_knob_shapes_model(id)) {
        HR_TRY(turn_model(e, &changed, id, err));
    }
    e->knobs = changed;
    if (!hr_knob_rows(NULL)[id].hot) {
        e->needs_build = true;
        e->needs_pipeline = e->needs_pipeline || concerns_pipeline(id);
    }
    e->resumed = e->resumed && id != HR_KNOB_TRAIN_RESUME;
    if (id == HR_KNOB_TRAIN_STEPS) {
        int64_t steps = hr_knob_int(&e->knobs, id);
        e->target_steps = steps > 0 ? (uint64_t)steps : UINT64_MAX;
    }
    char value[HR_KNOB_TEXT_MAX];
    trace_note(&e->bus, HR_EVENT_KNOB, c->knob, hr_knob_format(&e->knobs, id, value));
    if (e->state == HR_ENGINE_OOM || e->state == HR_ENGINE_FAILED) {
        engine_set_state(e, HR_ENGINE_RUNNING, "a knob was turned");
    }
    return HR_OK;
}

static void run(hr_engine *e, uint64_t count)
{
    int64_t wanted = hr_knob_int(&e->knobs, HR_KNOB_TRAIN_STEPS);
    if (count > 0) {
        e->target_steps = count < UINT64_MAX - e->steps ? e->steps + count : UINT64_MAX;
    } else {
        e->target_steps = wanted > 0 ? (uint64_t)wanted : UINT64_MAX;
    }
    e->needs_build = e->needs_build || e->state == HR_ENGINE_OOM || e->state == HR_ENGINE_FAILED;
    e->eval.asked_in = HR_ENGINE_RUNNING; // an evaluation that is still wanted comes first
    engine_set_state(e, HR_ENGINE_RUNNING, "");
}

static hr_status save_if_wanted(hr_engine *e, hr_err *err)
{
    const char *path = hr_knob_text(&e->knobs, HR_KNOB_TRAIN_SAVE);
    const bool has = engine_has_weights(e) || engine_carries_weights(e);
    return path[0] != '\0' && has ? engine_save(e, path, err) : HR_OK;
}

static hr_status stop(hr_engine *e, hr_err *err)
{
    e->target_steps = e->steps;
    e->eval.wanted = false;
    engine_set_state(e, HR_ENGINE_IDLE, "stopped");
    return e->quantized == HR_QUANTIZE_NONE ? save_if_wanted(e, err) : HR_OK; // those have not been trained
}

// To a file that the user named, and can name anew.
static hr_status save_as(hr_engine *e, const char *path, hr_err *err)
{
    hr_status status = engine_save(e, path, err);
    if (status == HR_WRITE) {
        hr_err_try(err, ":save ANOTHER.safetensors");
    }
    return status;
}

static hr_status tell_ranks(hr_engine *e, const char *layer, hr_err *err)
{
    rank_list list = {NULL, 0, 0};
    const hr_status status = ranks_of_layer(e, layer, &list, err);
    for (size_t k = 0; k < list.count; k++) {
        hr_event event = {.kind = HR_EVENT_RANK, .u.rank = list.data[k]};
        trace_emit(&e->bus, &event);
    }
    vec_deinit(&list);
    return status;
}

static hr_status evaluate(hr_engine *e, hr_err *err)
{
    if (e->plan_only || hr_knob_is(&e->knobs, HR_KNOB_DEVICE_KIND, "plan")) {
        (void)HR_FAIL(err, STATE, "a plan computes nothing that could be evaluated");
        hr_err_try(err, "-s device.kind=cpu");
        return HR_STATE;
    }
    e->needs_build = e->needs_build || e->state == HR_ENGINE_OOM || e->state == HR_ENGINE_FAILED;
    if (!e->eval.wanted) { // otherwise it goes back to where it was asked for first
        e->eval.asked_in =
            e->state == HR_ENGINE_RUNNING || e->state == HR_ENGINE_PAUSED ? e->state : HR_ENGINE_IDLE;
    }
    if (e->eval.asked_in == HR_ENGINE_IDLE) { // nothing more is trained, whether it ends or fails
        e->target_steps = e->steps;
    }
    e->eval.wanted = true;
    engine_set_state(e, HR_ENGINE_RUNNING, "an evaluation");
    return HR_OK;
}

hr_status hr_engine_command(hr_engine *e, const hr_command *c, hr_err *err)
{
    switch ((hr_command_kind)c->kind) {
    case HR_COMMAND_RUN:
        run(e, c->count);
        return HR_OK;
    case HR_COMMAND_PAUSE:
        if (e->state == HR_ENGINE_RUNNING) {
            engine_set_state(e, HR_ENGINE_PAUSED, "");
        }
        return HR_OK;
    case HR_COMMAND_KNOB:
        return turn_knob(e, c, err);
    case HR_COMMAND_SAVE:
        return c->text[0] != '\0' ? save_as(e, c->text, err) : save_if_wanted(e, err);
    case HR_COMMAND_RANKS:
        return tell_ranks(e, c->text, err);
    case HR_COMMAND_EVALUATE:
        return evaluate(e, err);
    case HR_COMMAND_KEEP:
    case HR_COMMAND_GUEST:
        return HR_OK;
    case HR_COMMAND_STOP:
    case HR_COMMAND_QUIT:
        return stop(e, err);
    case HR_COMMAND_COUNT:
        break;
    }
    return HR_FAIL(err, STATE, "there is no command number %u", c->kind);
}

// The evaluation that ends an epoch belongs to the epoch's last step.
static bool is_done(const hr_engine *e)
{
    bool owes_evaluation = e->build->arithmetic && !e->build->resident && // whose epochs do not end
                           pipeline_epoch_is_over(e->data, e->position);
    return e->steps >= e->target_steps && !owes_evaluation;
}

// Whole numbers have no place for a gradient.
static hr_status check_trains(const hr_engine *e, hr_err *err)
{
    if (e->quantized == HR_QUANTIZE_NONE || !e->build->arithmetic) {
        return HR_OK;
    }
    (void)HR_FAIL(err, SAVE, "%s has %s weights, which evaluate and do not train", e->last_save,
                  hr_quantize_name(e->quantized));
    hr_err_try(err, "-s train.resume=FILE with the save that it was made of");
    return HR_SAVE;
}

// Back to where it was asked for.
static void return_to_asker(hr_engine *e)
{
    e->eval.wanted = false;
    if (e->eval.asked_in == HR_ENGINE_IDLE) {
        e->target_steps = e->steps;
        engine_set_state(e, HR_ENGINE_IDLE, "evaluated");
    } else if (e->eval.asked_in == HR_ENGINE_PAUSED) {
        engine_set_state(e, HR_ENGINE_PAUSED, "");
    }
}

static hr_status go_on_evaluating(hr_engine *e, hr_err *err)
{
    if (e->eval.running) {
        HR_TRY(engine_evaluate_batch(e, err));
    } else {
        (void)engine_begin_wanted_evaluation(e);
    }
    if (e->eval.wanted && !e->eval.running) {
        return_to_asker(e);
    }
    return HR_OK;
}

static hr_status work(hr_engine *e, hr_err *err)
{
    if (e->needs_build) {
        return engine_rebuild(e, err);
    }
    if (e->eval.wanted || e->eval.running) {
        return go_on_evaluating(e, err);
    }
    if (is_done(e)) {
        engine_set_state(e, HR_ENGINE_IDLE, "all steps are done");
        return save_if_wanted(e, err);
    }
    HR_TRY(check_trains(e, err));
    return engine_train_step(e, err);
}

void hr_engine_advance(hr_engine *e, bool *idle)
{
    if (e->state == HR_ENGINE_RUNNING) {
        hr_status status = work(e, &e->error);
        if (status != HR_OK && status != HR_INTERRUPTED) { // a step that was left has never been
            engine_fail(e, status == HR_OOM ? HR_ENGINE_OOM : HR_ENGINE_FAILED);
        }
    }
    *idle = e->state != HR_ENGINE_RUNNING;
}

hr_engine_state hr_engine_get_state(const hr_engine *e)
{
    return e->state;
}

const hr_err *hr_engine_error(const hr_engine *e)
{
    return &e->error;
}

const hr_knobs *hr_engine_knobs(const hr_engine *e)
{
    return &e->knobs;
}

uint64_t hr_engine_steps(const hr_engine *e)
{
    return e->steps;
}

double hr_engine_loss(const hr_engine *e)
{
    return e->loss;
}

const allocator *engine_heap(const hr_engine *e)
{
    return e->build != NULL ? e->build->heap : NULL;
}

// Between two steps the heap holds what was built and what the training program retained.
hr_category engine_category(const hr_engine *e, uint32_t id)
{
    const program *p = e->build != NULL ? e->build->programs[BUILD_TRAIN] : NULL;
    return p != NULL && id < p->tensor_count ? p->tensors[id].category : HR_CATEGORY_OUTSIDE;
}

uint64_t engine_next_seq(const hr_engine *e)
{
    return e->bus.seq;
}

bool engine_needs_build(const hr_engine *e)
{
    return e->needs_build;
}
