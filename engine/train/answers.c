// SPDX-License-Identifier: Apache-2.0
// The answers of a teacher to all training samples (compress.distill_cache): the model with its teacher in the step goes forward
// over them once, in file order, in a build of its own, and the logits that the distance from the teacher reads are copied out.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "base/clock.h"
#include "base/host_mem.h"
#include "base/text.h"
#include "data/map.h"
#include "device/cost.h"
#include "insight/planner.h"
#include "train/engine_impl.h"
#include "train/wire.h"

// ---- a device that is watched ---------------------------------------------------------------------------------

typedef struct watch {
    const device_ops *inner;
    void *context;
    const program *p;
    float *to; // where the answers to the batch go
    uint64_t bytes;
    bool answered; // they are there
} watch;

static hr_status watch_load(void *context, const program *p, void **kernels, hr_err *err)
{
    watch *w = context;
    w->p = p;
    return w->inner->load(w->context, p, kernels, err);
}

static void watch_unload(void *context, void *kernels)
{
    const watch *w = context;
    w->inner->unload(w->context, kernels);
}

// A model may have such distances of its own.
static bool compares_with_teacher(const program *p, const instr *i)
{
    return i->op == HR_OP_KL && strncmp(p->tensors[i->in[1]].name, MODEL_TEACHER, strlen(MODEL_TEACHER)) == 0;
}

static hr_status watch_run(void *context, void *kernels, uint32_t n, void *const *address, step_io *io,
                           hr_err *err)
{
    watch *w = context;
    const instr *i = &w->p->instrs[n];
    if (compares_with_teacher(w->p, i)) {
        const tensor *t = &w->p->tensors[i->in[1]];
        if (t->dtype != HR_F32 || t->bytes < w->bytes) {
            return HR_FAIL(err, CHECK, "the teacher's answers need float32, had %s", dtype_name(t->dtype));
        }
        w->answered = true;
        HR_TRY(w->inner->copy_out(w->context, (uint64_t)(uintptr_t)address[i->in[1]], w->to, w->bytes, err));
    }
    return w->inner->run(w->context, kernels, n, address, io, err);
}

static hr_status watch_end_step(void *context, void *kernels, step_io *io, hr_err *err)
{
    const watch *w = context;
    return w->inner->end_step == NULL ? HR_OK : w->inner->end_step(w->context, kernels, io, err);
}

static void watch_abandon_step(void *context, void *kernels)
{
    const watch *w = context;
    if (w->inner->abandon_step != NULL) {
        w->inner->abandon_step(w->context, kernels);
    }
}

static const device_ops watch_ops = {.name = "answers",
                                     .load = watch_load,
                                     .unload = watch_unload,
                                     .run = watch_run,
                                     .end_step = watch_end_step,
                                     .abandon_step = watch_abandon_step};

// ---- the pass -------------------------------------------------------------------------------------------------

struct answering {
    hr_engine *e;
    hr_knobs knobs;
    const hr_model *model;
    build *b;
    watch watch;
    uint32_t batch;
    data_source *source;
    data_bad bad;
    data_form form;
    data_room room;
    uint8_t *scratch;
    uint64_t samples, values; // of an answer
    uint64_t answered;        // samples so far
    uint64_t spent_ns;        // on them
    float *answers;
    float *last; // of a batch
};

static hr_status take_heap(build *b, const hr_knobs *knobs, watch *w, hr_err *err)
{
    const allocator_config config = play_allocator_config(knobs, b->limit_bytes);
    *w = (watch){.inner = b->device, .context = b->context};
    HR_TRY(b->device->memory(b->context, play_backing_bytes(&config), false, &b->source, err));
    HR_TRY(allocator_create(&config, &b->source, NULL, &b->heap, err));
    HR_TRY(executor_create(&watch_ops, w, b->heap, NULL, &b->x, err));
    HR_TRY(executor_build(b->x, b->programs[BUILD_TRAIN], err));
    return executor_attach(b->x, b->programs[BUILD_TRAIN], &b->slots[BUILD_TRAIN], err);
}

static hr_status fill_model(answering *p, hr_err *err)
{
    const store none = {.tensors = {.data = NULL}};
    HR_TRY(engine_load_teacher(p->e, p->model, err));
    engine_tell_teacher(p->e, p->model);
    const hr_status status = store_fill(&none, &p->e->teacher, p->b, p->model,
                                        (uint64_t)hr_knob_int(&p->knobs, HR_KNOB_TRAIN_SEED), err);
    store_deinit(&p->e->teacher);
    return status;
}

static hr_status open_model(answering *p, hr_err *err)
{
    HR_TRY(planner_answering_knobs(&p->e->knobs, &p->knobs, err));
    HR_TRY(model_shelf_take(p->e->models, &p->knobs, &p->model, err));
    const build_request request = {.model = p->model, .knobs = &p->knobs};
    HR_TRY(build_prepare(&request, &p->b, err));
    HR_TRY(take_heap(p->b, &p->knobs, &p->watch, err));
    return fill_model(p, err);
}

static hr_status open_source(answering *p, hr_err *err)
{
    const data_form form = host_form(p->model);
    pipeline_wire wire;
    wire_types(p->b, p->model, &wire);
    HR_TRY(data_source_open(&p->knobs, &form, &p->source, err));
    if (p->source->ops->load != NULL) {
        HR_TRY(p->source->ops->load(p->source, 1, err));
    }
    p->form = pipeline_train_form(&p->source->form, &wire);
    return data_source_check_form(p->source, &p->form, err);
}

static hr_status take_room(answering *p, hr_err *err)
{
    const data_slot answer = host_answers(p->e->model);
    const data_map map = {.source = p->source, .to = p->form};
    uint64_t all = 0;
    p->batch = (uint32_t)hr_knob_int(&p->knobs, HR_KNOB_BATCH_SIZE);
    p->samples = p->source->info.train_samples;
    p->values = data_slot_values(&answer);
    const bool countable = hr_mul_bytes(p->samples, p->values, &all);
    p->answers = countable ? hr_calloc(all, sizeof *p->answers) : NULL;
    p->last = hr_calloc(p->batch * p->values, sizeof *p->last);
    p->scratch = hr_calloc(data_map_scratch_bytes(&map) + 1, 1);
    if (p->answers == NULL || p->last == NULL || p->scratch == NULL) {
        return HR_FAIL(err, NOMEM,
                       "no host memory for the teacher's answers to %" PRIu64 " samples, %" PRIu64 " B each",
                       p->samples, p->values * sizeof *p->answers);
    }
    p->watch.to = p->last;
    p->watch.bytes = p->batch * p->values * sizeof *p->last;
    return data_room_take(&p->form, p->batch, &(pinned_memory){.take = NULL}, &p->room, err);
}

// One batch from sample `first` on; behind the last one it is filled up with that.
static hr_status answer(answering *p, uint64_t first, uint64_t count, hr_err *err)
{
    const data_map map = {.source = p->source, .to = p->form, .bad = p->source->skips_bad ? &p->bad : NULL};
    step_io io = {.seed = (uint64_t)hr_knob_int(&p->knobs, HR_KNOB_TRAIN_SEED), .update = 1};
    for (uint32_t k = 0; k < p->batch; k++) {
        const data_ask ask = {.set = DATA_TRAIN, .sample = (uint32_t)(first + (k < count ? k : count - 1))};
        const data_room at = data_room_at(&p->form, &p->room, k);
        HR_TRY(data_map_write(&map, &ask, p->scratch, &at, err));
    }
    for (uint32_t k = 0; k < p->form.count; k++) {
        io.slot[k] = p->room.slot[k];
    }
    p->watch.answered = false;
    HR_TRY(executor_step(p->b->x, p->b->slots[BUILD_TRAIN], &io, err));
    if (!p->watch.answered) {
        return HR_FAIL(err, CHECK, "the teacher's answers: needed its logits in the step, had none");
    }
    memcpy(p->answers + first * p->values, p->last, count * p->values * sizeof *p->last);
    return HR_OK;
}

static void tell_progress(const answering *p)
{
    hr_event event = {.kind = HR_EVENT_ANSWERS,
                      .u.answers = {.answered = p->answered, .samples = p->samples}};
    event.u.answers.spent_ns = p->spent_ns;
    event.u.answers.peak_in_use_bytes = p->e->answers_peak_bytes;
    trace_emit(&p->e->bus, &event);
}

hr_status engine_begin_answers(hr_engine *e, hr_err *err)
{
    answering *p = hr_calloc(1, sizeof *p);
    if (p == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the teacher's answers");
    }
    p->e = e;
    data_bad_init(&p->bad);
    e->answering = p;
    hr_status status = open_model(p, err);
    status = status == HR_OK ? open_source(p, err) : status;
    status = status == HR_OK ? take_room(p, err) : status;
    if (status != HR_OK) {
        engine_end_answers(e);
        return status;
    }
    tell_progress(p);
    return HR_OK;
}

hr_status engine_answer_batch(hr_engine *e, hr_err *err)
{
    answering *p = e->answering;
    const uint64_t begin_ns = clock_now_ns(), left = p->samples - p->answered;
    const uint64_t count = left < p->batch ? left : p->batch;
    const hr_status status = count > 0 ? answer(p, p->answered, count, err) : HR_OK;
    if (status != HR_OK) {
        engine_end_answers(e);
        return status;
    }
    p->answered += count;
    e->answers_peak_bytes = executor_ledger(p->b->x)->peak.in_use_bytes;
    p->spent_ns += clock_now_ns() - begin_ns;
    tell_progress(p);
    if (p->answered == p->samples) {
        e->answers = p->answers;
        e->answers_bytes = p->samples * p->values * sizeof *p->answers;
        p->answers = NULL;
        engine_end_answers(e);
    }
    return HR_OK;
}

void engine_end_answers(hr_engine *e)
{
    answering *p = e->answering;
    e->answering = NULL;
    if (p == NULL) {
        return;
    }
    hr_free(p->answers);
    hr_free(p->last);
    hr_free(p->scratch);
    data_room_give_back(&p->room);
    data_source_close(p->source);
    build_destroy(p->b);
    model_shelf_give_back(e->models, p->model);
    data_bad_deinit(&p->bad);
    hr_free(p);
}

void engine_tell_teacher(hr_engine *e, const hr_model *model)
{
    if (model->own_params < model->param_count && e->teacher.tensors.count == 0) {
        trace_note(&e->bus, HR_EVENT_LOG, 1, "the teacher has seeded values: no distill_weights");
    }
}

// ---- would it fit? --------------------------------------------------------------------------------------------

typedef struct rehearsal {
    hr_knobs knobs;
    const hr_model *model;
    build *b;
    play_result played;
} rehearsal;

static void end_rehearsal(const hr_engine *e, rehearsal *r)
{
    build_destroy(r->b);
    model_shelf_give_back(e->models, r->model);
}

// What take_heap will do, over numbers. To be ended on an error as well.
static hr_status rehearse_pass(const hr_engine *e, const hr_knobs *knobs, bool plan_only, rehearsal *r,
                               hr_err *err)
{
    *r = (rehearsal){.b = NULL};
    HR_TRY(planner_answering_knobs(knobs, &r->knobs, err));
    HR_TRY(model_shelf_take(e->models, &r->knobs, &r->model, err));
    const build_request request = {.model = r->model, .knobs = &r->knobs, .plan_only = plan_only};
    HR_TRY(build_prepare(&request, &r->b, err));
    return play_programs(r->b->device, r->b->context, &r->knobs, r->b->limit_bytes,
                         (const program *const *)&r->b->programs[BUILD_TRAIN], 1, PLAY_STEPS, &r->played,
                         err);
}

static bool answers_fit(const hr_engine *e, const hr_knobs *knobs)
{
    rehearsal r;
    const bool fits = rehearse_pass(e, knobs, true, &r, NULL) == HR_OK && r.played.fits;
    end_rehearsal(e, &r);
    return fits;
}

static bool step_fits(const build *b, const hr_knobs *knobs, hr_report_fix *fix)
{
    play_result played = {0};
    const bool fits =
        build_play_full(b, knobs, &played, NULL) == HR_OK && played.fits &&
        cost_step_seconds(b->device, b->context, b->programs[BUILD_TRAIN], &fix->seconds, NULL) == HR_OK;
    const uint64_t limit_bytes = played.stats.limit_bytes;
    fix->basis = cost_basis(b->device, b->context);
    fix->peak_bytes = played.peak.in_use_bytes;
    fix->limit_bytes = hr_limit_is_none(limit_bytes) ? HR_NONE : limit_bytes;
    return fits;
}

// With `pair`, both the answers and the step behind them would fit.
static bool is_remedy(const hr_engine *e, const char *pair, hr_report_fix *fix)
{
    hr_knobs knobs = e->knobs;
    build_request request = {.knobs = &knobs, .plan_only = true};
    build *b = NULL;
    *fix = (hr_report_fix){.host_bytes = HR_NONE};
    (void)text_copy(fix->knobs, sizeof fix->knobs, pair);
    if (hr_knobs_set_pair(&knobs, pair, NULL) != HR_OK || hr_knobs_validate(&knobs, NULL) != HR_OK ||
        model_shelf_take(e->models, &knobs, &request.model, NULL) != HR_OK) {
        return false;
    }
    const bool cached = host_answers(request.model).rank > 0;
    const bool fits = build_prepare(&request, &b, NULL) == HR_OK && step_fits(b, &knobs, fix) &&
                      (!cached || answers_fit(e, &knobs));
    build_destroy(b);
    model_shelf_give_back(e->models, request.model);
    return fits;
}

static void find_remedies(const hr_engine *e, const build *refused, hr_report_oom *oom)
{
    enum { DOUBLINGS = 16 };
    char pair[64] = "compress.distill_cache=off";
    bool found = is_remedy(e, pair, &oom->fixes[0]);
    oom->fix_count = found ? 1 : 0;
    found = false;
    uint64_t bytes = oom->limit_bytes;
    for (int k = 0; k < DOUBLINGS && !found && bytes <= UINT64_MAX / 2; k++) {
        char exact[HR_BYTES_TEXT_MAX];
        bytes *= 2;
        (void)snprintf(pair, sizeof pair, "device.vram=%s", hr_bytes_exact(bytes, exact));
        found = bytes >= oom->requested_bytes && is_remedy(e, pair, &oom->fixes[oom->fix_count]);
    }
    oom->fix_count += found ? 1 : 0;
    engine_rank_fixes(e, refused, oom);
    oom->hint[0] = '\0';
    if (oom->fix_count > 0) {
        (void)snprintf(oom->hint, sizeof oom->hint, "-s %s", oom->fixes[0].knobs);
    }
}

// What the engine knows to try is of a step; of the answers it is another build.
static hr_status refuse(hr_engine *e, const rehearsal *r, hr_err *err)
{
    const hr_knobs own = e->knobs;
    const hr_model *const model = e->model;
    char why[sizeof e->oom.sentence];
    if (e->rehearses) {
        return HR_FAIL(err, OOM, "the teacher's answers do not fit");
    }
    e->knobs = r->knobs; // of which the figures are
    e->model = r->model;
    engine_tell_oom(e, r->b, &r->played);
    (void)engine_oom(e, r->b, r->played.oom_program, &r->played.oom, false, err);
    e->knobs = own;
    e->model = model;
    (void)text_copy(why, sizeof why, e->oom.sentence);
    (void)snprintf(e->oom.sentence, sizeof e->oom.sentence, "the teacher's answers: %.400s", why);
    find_remedies(e, r->b, &e->oom);
    (void)HR_FAIL(err, OOM, "%s", e->oom.sentence);
    engine_say_remedies(&e->oom, err);
    return HR_OOM;
}

hr_status engine_check_answers(hr_engine *e, hr_err *err)
{
    rehearsal r;
    hr_status status = rehearse_pass(e, &e->knobs, e->plan_only, &r, err);
    e->answers_peak_bytes = status == HR_OK ? r.played.peak.in_use_bytes : HR_NONE;
    e->answers_limit_bytes = status != HR_OK                      ? 0
                             : hr_limit_is_none(r.b->limit_bytes) ? HR_NONE
                                                                  : r.b->limit_bytes;
    if (status == HR_OK && !r.played.fits) {
        status = refuse(e, &r, err);
    } else if (status == HR_OK && r.b->arithmetic && r.b->device->admit != NULL && !e->rehearses) {
        status =
            r.b->device->admit(r.b->context, r.played.peak.in_use_bytes, r.played.stats.peak_pool_bytes, err);
    }
    end_rehearsal(e, &r);
    return status;
}
