// SPDX-License-Identifier: Apache-2.0
// A knob change that is not hot: weights move to the host, the arena is emptied, everything is allocated again in
// canonical order, and a new counter epoch begins. What would not fit is found by a dry run before anything is
// touched.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/host_mem.h"
#include "base/text.h"
#include "data/source.h"
#include "knobs/prune.h"
#include "knobs/stages.h"
#include "train/engine_impl.h"
#include "train/wire.h"

static bool names_same_data(const hr_knobs *a, const hr_knobs *b)
{
    bool same = hr_knobs_same_sizes(a, b);
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        char x[HR_KNOB_TEXT_MAX], y[HR_KNOB_TEXT_MAX];
        same =
            same && (!data_source_depends_on((hr_knob_id)id) ||
                     strcmp(hr_knob_format(a, (hr_knob_id)id, x), hr_knob_format(b, (hr_knob_id)id, y)) == 0);
    }
    return same;
}

static hr_status open_data(hr_engine *e, const pipeline_wire *wire, hr_err *err)
{
    const data_form form = host_form(e->model);
    pipeline_close(e->data);
    e->data = NULL;
    e->data_knobs = e->knobs;
    return pipeline_open(&e->knobs, &form, wire, &e->data, err);
}

// A data set that stays the same stays open: an archive is not decompressed again for another batch size.
static hr_status chain_pipeline(hr_engine *e, const pipeline_wire *wire, hr_err *err)
{
    bool stays = e->data != NULL && names_same_data(&e->data_knobs, &e->knobs);
    return stays ? pipeline_rechain(e->data, &e->knobs, wire, err) : open_data(e, wire, err);
}

static void tell_pinning(hr_engine *e)
{
    if (pipeline_pinning_refused(e->data) != NULL) { // the report says why
        trace_note(&e->bus, HR_EVENT_LOG, 0, "no pinned memory: batches are copied twice");
    }
}

// Whether the place in the data may lie behind what will be the end of the epoch: the last update took samples of the next
// one, or samples of another size are fewer.
static bool may_be_beyond(const hr_engine *e)
{
    return e->data != NULL &&
           (pipeline_fills_batches(e->data) || !hr_knobs_same_sizes(&e->data_knobs, &e->knobs));
}

// The next epoch begins anew.
static void stay_within_epoch(hr_engine *e)
{
    const uint64_t samples = pipeline_get_info(e->data)->train_samples;
    if (!pipeline_fills_batches(e->data) && e->position.samples > samples) {
        e->position.samples = samples;
    }
}

// The weights of the build that goes, unless what it holds is not what training goes on from.
static hr_status carry_weights(hr_engine *e, hr_err *err)
{
    if (!engine_has_weights(e)) {
        return HR_OK;
    }
    store taken = {0};
    hr_status status = store_take(&taken, e->build, err);
    if (status != HR_OK) {
        store_deinit(&taken);
        return status;
    }
    store_deinit(&e->carried);
    e->carried = taken;
    return HR_OK;
}

// ---- the teacher's answers ------------------------------------------------------------------------------------

// Whether the answers to one are those to the other.
static bool are_answered_alike(const hr_knobs *a, const hr_knobs *b)
{
    static const hr_knob_id others[] = {HR_KNOB_COMPRESS_DISTILL_WEIGHTS, HR_KNOB_PRECISION_POLICY,
                                        HR_KNOB_DEVICE_KIND, HR_KNOB_TRAIN_SEED};
    bool alike = names_same_data(a, b) && hr_knobs_same_model(a, b);
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        char x[HR_KNOB_TEXT_MAX], y[HR_KNOB_TEXT_MAX];
        alike = alike && strcmp(hr_knob_format(a, others[k], x), hr_knob_format(b, others[k], y)) == 0;
    }
    return alike;
}

static bool lacks_answers(const hr_engine *e)
{
    return host_answers(e->model).rank > 0 &&
           (e->answers == NULL || !are_answered_alike(&e->answers_knobs, &e->knobs));
}

static void forget_answers(hr_engine *e)
{
    hr_free(e->answers);
    e->answers = NULL;
    e->answers_bytes = 0;
}

// The heap and the answers that were are gone before new ones are made; what was learned is in e->carried.
static hr_status make_room_for_answers(hr_engine *e, hr_err *err)
{
    e->beyond = e->beyond || may_be_beyond(e);
    HR_TRY(carry_weights(e, err));
    pipeline_close(e->data); // it reads the answers, and may hold memory of the device
    e->data = NULL;
    e->needs_pipeline = true;
    build_destroy(e->build);
    e->build = NULL;
    forget_answers(e);
    return HR_OK;
}

static hr_status begin_answers(hr_engine *e, const build *fresh, hr_err *err)
{
    HR_TRY(engine_admit_answers(e, fresh, err));
    HR_TRY(make_room_for_answers(e, err));
    e->answers_knobs = e->knobs;
    return engine_begin_answers(e, err);
}

// What was turned meanwhile may leave them without a use.
static bool goes_on_answering(hr_engine *e)
{
    if (e->answering != NULL &&
        (host_answers(e->model).rank == 0 || !are_answered_alike(&e->answers_knobs, &e->knobs))) {
        engine_end_answers(e);
    }
    return e->answering != NULL;
}

static hr_status reopen_pipeline(hr_engine *e, const build *fresh, pipeline_wire *wire, bool pinned,
                                 hr_err *err)
{
    e->needs_pipeline = true;
    e->beyond = e->beyond || may_be_beyond(e);
    HR_TRY(pinned ? fresh->device->pinned(fresh->context, &wire->pinned, err) : HR_OK);
    const hr_status status = chain_pipeline(e, wire, err);
    if (status != HR_OK) {
        if (wire->pinned.close != NULL) {
            wire->pinned.close(wire->pinned.context);
        }
        return status;
    }
    if (wire->answered == NULL) { // and nothing reads them
        forget_answers(e);
    }
    if (e->beyond) {
        stay_within_epoch(e);
        e->beyond = false;
    }
    HR_TRY(engine_seek_data(e, err));
    e->needs_pipeline = false;
    tell_pinning(e);
    return HR_OK;
}

static hr_status open_pipeline(hr_engine *e, const build *fresh, hr_err *err)
{
    pipeline_wire wire;
    wire_types(fresh, e->model, &wire);
    wire.answered = wire.answers.rank > 0 && !e->rehearses ? e->answers : NULL;
    const bool pinned = host_is_pinned(fresh->device, &e->knobs);
    if (!e->needs_pipeline && pipeline_has_wire(e->data, &wire, pinned)) {
        return HR_OK;
    }
    return reopen_pipeline(e, fresh, &wire, pinned, err);
}

// The request without what only data asks for: partial batches, whose sizes are known once the pipeline is open, and
// feeding.
static build_request full_batches(const hr_engine *e)
{
    return (build_request){.model = e->model, .knobs = &e->knobs, .plan_only = e->plan_only};
}

static void add_data_programs(const hr_engine *e, build_request *r)
{
    uint64_t batch = (uint64_t)hr_knob_int(&e->knobs, HR_KNOB_BATCH_SIZE);
    const pipeline_info *info = pipeline_get_info(e->data);
    bool resident = hr_knob_is(&e->knobs, HR_KNOB_PIPELINE_RESIDENT, "on");
    bool full = resident || stages_fill_batches(&e->knobs);
    bool keeps = hr_knob_is(&e->knobs, HR_KNOB_BATCH_REMAINDER, "keep") && !full;
    uint64_t left = info->train_samples - e->position.samples;
    r->partial_samples = keeps ? (uint32_t)(info->train_samples % batch) : 0;
    r->rest_samples = keeps && left % batch != r->partial_samples ? (uint32_t)(left % batch) : 0;
    r->feeds = resident || hr_knob_batches_ahead(&e->knobs) > 0;
    r->eval_partial_samples = (uint32_t)(info->eval_samples % batch);
}

static hr_status dry_run(hr_engine *e, const build *b, hr_err *err)
{
    play_result played;
    HR_TRY(build_dry_run(b, &e->knobs, &played, err));
    if (played.fits) {
        e->oom = (hr_report_oom){0};
        bool admitted_by_device = b->arithmetic && b->device->admit != NULL && !e->rehearses;
        return admitted_by_device
                   ? b->device->admit(b->context, played.peak.in_use_bytes, played.stats.peak_pool_bytes, err)
                   : HR_OK;
    }
    if (e->rehearses) { // why, and what would fit, is asked of one that trains
        return HR_FAIL(err, OOM, "it does not fit");
    }
    engine_tell_oom(e, b, &played);
    return engine_oom(e, b, played.oom_program, &played.oom, false, err);
}

// ---- where training goes on from --------------------------------------------------------------------------------

// e->carried, the counters and e->position are of a save, or of the beginning: the pipeline follows.
static hr_status follow_restored(hr_engine *e, hr_err *err)
{
    e->restored = true;
    e->lost_step = false;
    e->eval.running = false;
    engine_set_bus_step(e);
    return e->data == NULL ? HR_OK : engine_seek_data(e, err);
}

static bool carries_masks(const hr_engine *e)
{
    bool masked = false;
    for (uint32_t k = 0; k < e->carried.tensors.count && !masked; k++) {
        masked = text_ends_in(e->carried.tensors.data[k].name, ":mask");
    }
    return masked;
}

// Of a pruned save that goes on without: what happens, and each knob that would keep its zeros. Below adapters they stay.
static void tell_lost_masks(hr_engine *e)
{
    static const char begins[] = "-s ";
    if (prune_is_on(&e->knobs) || hr_knob_is_set(&e->knobs, HR_KNOB_COMPRESS_LORA) ||
        (!carries_masks(e) && e->pruned_by[0] == '\0')) {
        return;
    }
    trace_note(&e->bus, HR_EVENT_LOG, 1, "a pruned save without compress.prune: zeros grow back");
    for (const char *at = e->pruned_by; strncmp(at, begins, sizeof begins - 1) == 0;) {
        char line[sizeof((hr_event *)NULL)->u.note.text];
        const char *end = strstr(at + 1, " -s ");
        const size_t length = end == NULL ? strlen(at) : (size_t)(end - at);
        if (snprintf(line, sizeof line, "try: %.*s", (int)length, at) < (int)sizeof line) {
            trace_note(&e->bus, HR_EVENT_LOG, 1, line);
        }
        at += length + (end != NULL);
    }
}

static hr_status resume(hr_engine *e, const char *path, hr_err *err)
{
    int64_t wanted = hr_knob_int(&e->knobs, HR_KNOB_TRAIN_STEPS);
    HR_TRY(engine_load(e, path, err));
    HR_TRY(follow_restored(e, err));
    (void)text_copy(e->last_save, sizeof e->last_save, path);
    e->resumed = true;
    if (e->stripped && e->quantized == HR_QUANTIZE_NONE) {
        trace_note(&e->bus, HR_EVENT_LOG, 1, "a stripped save: the optimizer's slots begin anew");
    }
    if (e->quantized == HR_QUANTIZE_NONE) {
        tell_lost_masks(e);
    }
    if (wanted > 0) {
        e->target_steps = (uint64_t)wanted;
    }
    return HR_OK;
}

// After a step that broke off: the last save of this training, or its beginning. The log says how many steps were
// lost.
static hr_status return_to_last_save(hr_engine *e, hr_err *err)
{
    uint64_t steps = e->steps;
    if (e->last_save[0] == '\0' || engine_load(e, e->last_save, NULL) != HR_OK) {
        store_deinit(&e->carried);
        e->steps = e->updates = 0;
        e->position = (data_position){0, 0};
    }
    char line[96];
    (void)snprintf(line, sizeof line, "%llu steps lost; training goes on at step %llu",
                   (unsigned long long)(steps - e->steps), (unsigned long long)e->steps);
    trace_note(&e->bus, HR_EVENT_LOG, 0, line);
    return follow_restored(e, err);
}

static hr_status restore(hr_engine *e, hr_err *err)
{
    const char *path = hr_knob_text(&e->knobs, HR_KNOB_TRAIN_RESUME);
    if (!e->resumed && path[0] != '\0' && !e->plan_only) {
        return resume(e, path, err);
    }
    return e->lost_step ? return_to_last_save(e, err) : HR_OK;
}

// ---- the build --------------------------------------------------------------------------------------------------

static void begin_counter_epoch(hr_engine *e)
{
    e->samples = e->busy_ns = e->duration_count = 0;
    e->peak_pool_bytes = 0;
    e->near = (near_full){.steps = 0};
    e->retries = (retry_watch){.retries = 0};
    e->skipped = 0;
    e->loss_scale = 0;
    e->eval.ever = false;
    e->eval.peak_in_use_bytes = 0;
    e->sha_steps = UINT64_MAX;
}

// Masks that are new begin their schedule here, in a model that has learned already too.
static void begin_pruning(hr_engine *e)
{
    e->pruned_from = !prune_is_on(&e->knobs) ? 0 : carries_masks(e) ? e->pruned_from : e->updates;
}

static hr_status fill_build(hr_engine *e, hr_err *err)
{
    HR_TRY(build_allocate(e->build, &e->knobs, &e->bus, err));
    if (e->times_file[0] != '\0' && e->build->arithmetic) {
        HR_TRY(executor_time(e->build->x, e->build->slots[BUILD_TRAIN], err));
    }
    if (e->build->arithmetic) {
        uint64_t seed = (uint64_t)hr_knob_int(&e->knobs, HR_KNOB_TRAIN_SEED);
        begin_pruning(e);
        engine_tell_teacher(e, e->model);
        HR_TRY(store_fill(&e->carried, &e->teacher, e->build, e->model, seed, err));
        store_deinit(&e->carried);
        store_deinit(&e->teacher);
        e->restored = false;
    }
    return HR_OK;
}

// e->build is of e->model from here on. That is held already: nothing is read, and nothing can fail.
static void note_built(hr_engine *e)
{
    const hr_model *built = NULL;
    if (model_shelf_take(e->models, &e->knobs, &built, NULL) == HR_OK) {
        model_shelf_give_back(e->models, e->built);
        e->built = built;
    }
}

// From here on there is one build: the fresh one. If it cannot be filled there is none, and the weights stay in
// e->carried for the next attempt.
static hr_status replace_build(hr_engine *e, build *fresh, hr_err *err)
{
    hr_status status = carry_weights(e, err);
    if (status != HR_OK) {
        build_destroy(fresh);
        return status;
    }
    build_destroy(e->build);
    e->build = fresh;
    note_built(e);
    e->bus.simulated = fresh->device->simulated;
    trace_note(&e->bus, HR_EVENT_BUILD, fresh->programs[BUILD_TRAIN]->instr_count, "built");
    status = fill_build(e, err);
    if (status != HR_OK) {
        build_destroy(e->build);
        e->build = NULL;
    }
    return status;
}

// What cannot fit is refused before the pipeline takes host memory for batches of that size; the programs of partial
// batches follow when it is known how many samples there are.
static hr_status add_data(hr_engine *e, build *fresh, build_request *request, hr_err *err)
{
    HR_TRY(dry_run(e, fresh, err));
    HR_TRY(engine_check_host(e, fresh, err));
    HR_TRY(lacks_answers(e) ? engine_check_answers(e, err) : HR_OK);
    if (!fresh->arithmetic) {
        return HR_OK;
    }
    if (lacks_answers(e) && !e->rehearses) {
        return begin_answers(e, fresh, err);
    }
    HR_TRY(open_pipeline(e, fresh, err));
    add_data_programs(e, request);
    HR_TRY(build_compile(fresh, request, err));
    return dry_run(e, fresh, err);
}

// A build that would fit, with every program it needs; it has no memory yet.
static hr_status prepare(hr_engine *e, build **fresh, hr_err *err)
{
    build_request request = full_batches(e);
    HR_TRY(build_prepare(&request, fresh, err));
    hr_status status = add_data(e, *fresh, &request, err);
    if (status != HR_OK) {
        build_destroy(*fresh);
        *fresh = NULL;
    }
    return status;
}

hr_status engine_rebuild(hr_engine *e, hr_err *err)
{
    build *fresh = NULL;
    if (goes_on_answering(e)) {
        return engine_answer_batch(e, err);
    }
    HR_TRY(engine_load_teacher(e, e->model, err));
    HR_TRY(restore(e, err));
    HR_TRY(prepare(e, &fresh, err));
    if (e->answering != NULL) {
        build_destroy(fresh);
        return HR_OK;
    }
    HR_TRY(replace_build(e, fresh, err));
    begin_counter_epoch(e);
    e->needs_build = false;
    e->eval.running = e->eval.running && e->build->arithmetic;
    if (!e->eval.running) {
        return engine_refeed(e, err);
    }
    engine_begin_evaluation(e); // the one that the rebuild broke off, from its first sample
    return engine_seek_data(e, err);
}

hr_status engine_try_rebuild(hr_engine *e, hr_err *err)
{
    build *fresh = NULL;
    HR_TRY(engine_load_teacher(e, e->model, err));
    HR_TRY(restore(e, err));
    hr_status status = prepare(e, &fresh, err);
    build_destroy(fresh);
    return status;
}
