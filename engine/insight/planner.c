// SPDX-License-Identifier: Apache-2.0
// What-if: knobs in, report out, nothing else touched. A planner reads its model once for each choice of its sizes;
// every plan compiles a program and plays it on an allocator over pure numbers, all of it private to the call.
#include "insight/planner.h"

#include <pthread.h>
#include <string.h>

#include "headroom/engine.h"
#include "headroom/planning.h"

#include "base/file.h"
#include "base/host_mem.h"
#include "base/text.h"
#include "device/cost.h"
#include "insight/device_choice.h"
#include "insight/host_outlook.h"
#include "insight/play_limit.h"
#include "insight/step_plan.h"
#include "model/shelf.h"
#include "program/compile.h"

struct hr_planner {
    model_shelf *models;
    bool (*stops)(void *context); // planner_stop_when
    void *stops_context;
};

// ---- devices --------------------------------------------------------------------------------------------------
//
// Opened once for the knobs that a device is opened with and kept for the life of the process. Targets and memories of
// numbers may be used by several threads at once.

typedef struct kept_device {
    struct kept_device *next;
    hr_knobs knobs; // it was opened with
    device_choice on;
} kept_device;

static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;
static kept_device *devices;

static bool is_outdated(const device_choice *on)
{
    return on->ops->outdated != NULL && on->ops->outdated(on->context);
}

// One that is outdated stays open for plans that hold it.
static kept_device *find_kept(const hr_knobs *knobs)
{
    kept_device *d = devices;
    while (d != NULL && (!device_choice_same(&d->knobs, knobs) || is_outdated(&d->on))) {
        d = d->next;
    }
    return d;
}

static hr_status add_device(const hr_knobs *knobs, kept_device **out, hr_err *err)
{
    kept_device *d = hr_calloc(1, sizeof *d);
    if (d == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory to open device %s",
                       hr_knob_text(knobs, HR_KNOB_DEVICE_KIND));
    }
    hr_status status = device_choice_open(knobs, true, &d->on, err);
    if (status != HR_OK) {
        hr_free(d);
        return status;
    }
    d->knobs = *knobs;
    d->next = devices;
    devices = d;
    *out = d;
    return HR_OK;
}

// NULL when it cannot be opened: *status says why.
static const kept_device *kept_device_for(const hr_knobs *knobs, hr_status *status, hr_err *err)
{
    pthread_mutex_lock(&devices_lock);
    kept_device *d = find_kept(knobs);
    *status = d == NULL ? add_device(knobs, &d, err) : HR_OK;
    pthread_mutex_unlock(&devices_lock);
    return d;
}

// ---- plans ----------------------------------------------------------------------------------------------------

// Where no limit would do: to the largest sum that a step asks for, and at least to the request that failed.
static uint64_t least_missing_bytes(const executor_oom *oom, uint64_t limit_bytes, uint64_t step_bytes)
{
    // An expandable pool may hold more than its limit, and a piece that is large enough may be another pool's.
    const heap_counters *s = &oom->stats;
    uint64_t free_bytes = s->in_use_bytes < limit_bytes ? limit_bytes - s->in_use_bytes : 0;
    uint64_t piece_bytes = s->largest_free_bytes < oom->requested_bytes ? s->largest_free_bytes : 0;
    uint64_t at_once = oom->requested_bytes - (oom->requested_bytes > free_bytes ? free_bytes : piece_bytes);
    uint64_t in_all = step_bytes > limit_bytes ? step_bytes - limit_bytes : 0;
    return at_once > in_all ? at_once : in_all;
}

// What the limit lacks for a step that does not fit: to the smallest that was tried and holds it.
static hr_status find_missing(const play_case *c, const executor_oom *oom, uint64_t *missing_bytes,
                              hr_err *err)
{
    uint64_t fits_bytes = oom->requested_bytes; // a block is as high as it is
    if (!oom->block) {
        HR_TRY(play_smallest_limit(c, &fits_bytes, err));
    }
    *missing_bytes = fits_bytes > c->failed_bytes
                         ? fits_bytes - c->failed_bytes
                         : least_missing_bytes(oom, c->failed_bytes, program_peak_bytes(c->programs[0]));
    return HR_OK;
}

static hr_status fill(hr_whatif *out, const play_case *c, const play_result *played, hr_err *err)
{
    const program *p = c->programs[0];
    out->fits = played->fits;
    out->limit_bytes = hr_limit_is_none(c->failed_bytes) ? 0 : c->failed_bytes;
    out->missing_bytes = 0;
    if (!played->fits && out->is_at_least) {
        out->missing_bytes = program_peak_bytes(p) - c->failed_bytes;
    } else if (!played->fits) {
        HR_TRY(find_missing(c, &played->oom, &out->missing_bytes, err));
    }
    out->peak_in_use_bytes = played->fits ? played->peak.in_use_bytes : out->limit_bytes + out->missing_bytes;
    out->static_bytes = p->static_bytes;
    out->saved_for_backward_bytes = p->saved_for_backward_bytes;
    return HR_OK;
}

// How a plan is made: with estimates in a slow device's place; without a play where it is plain that it does not fit.
typedef struct haste {
    bool estimates, roughly;
} haste;

// A step as it would be played; `c` points into it.
typedef struct compiled {
    const hr_planner *planner;
    const hr_model *model; // of the planner's, until end_compiled
    program *p;
    const program *programs[1];
    play_case c;
    target_estimates estimates; // whose count says how many answers were estimated
    hr_target from;
} compiled;

void planner_stop_when(hr_planner *planner, bool (*stops)(void *context), void *context)
{
    planner->stops = stops;
    planner->stops_context = context;
}

// A slow device's target is asked for nothing: the plan device's estimates stand in.
static void estimate_with(compiled *s, hr_target *target)
{
    device_plan.target(NULL, &s->from);
    s->estimates = (target_estimates){.from = &s->from};
    target->estimates = target->very_slow ? &s->estimates : NULL;
}

static hr_status compile_on(const kept_device *d, const hr_knobs *knobs, bool in_a_hurry, compiled *s,
                            hr_err *err)
{
    hr_target target;
    uint64_t limit_bytes = 0;
    HR_TRY(device_choice_limit_bytes(&d->on, knobs, &limit_bytes, err));
    device_choice_target(&d->on, &target);
    play_place place = {.device = d->on.ops,
                        .device_context = d->on.context,
                        .knobs = knobs,
                        .limit_bytes = limit_bytes,
                        .stops = s->planner->stops,
                        .stops_context = s->planner->stops_context};
    const target_judge judge = play_judge(&place);
    target.judge = &judge;
    if (in_a_hurry) {
        estimate_with(s, &target);
    }
    HR_TRY(program_compile(s->model, knobs, PROGRAM_TRAIN, (uint32_t)hr_knob_int(knobs, HR_KNOB_BATCH_SIZE),
                           &target, &s->p, err));
    s->programs[0] = s->p;
    s->c = (play_case){.device = d->on.ops,
                       .device_context = d->on.context,
                       .knobs = knobs,
                       .programs = s->programs,
                       .count = 1,
                       .steps = PLAY_STEPS,
                       .failed_bytes = limit_bytes};
    return HR_OK;
}

static void end_compiled(compiled *s)
{
    program_destroy(s->p);
    model_shelf_give_back(s->planner->models, s->model);
}

// Of knobs that go together. On an error there is nothing to end.
static hr_status compile_valid(const hr_planner *planner, const hr_knobs *knobs, bool in_a_hurry, compiled *s,
                               hr_err *err)
{
    hr_status status = HR_OK;
    *s = (compiled){.planner = planner};
    const kept_device *d = kept_device_for(knobs, &status, err);
    if (d == NULL) {
        return status;
    }
    HR_TRY(model_shelf_take(planner->models, knobs, &s->model, err));
    status = compile_on(d, knobs, in_a_hurry, s, err);
    if (status != HR_OK) {
        end_compiled(s);
    }
    return status;
}

static hr_status compile(const hr_planner *planner, const hr_knobs *knobs, bool in_a_hurry, compiled *s,
                         hr_err *err)
{
    HR_TRY(hr_knobs_validate(knobs, err));
    return compile_valid(planner, knobs, in_a_hurry, s, err);
}

static void fill_host(const hr_model *model, const play_case *c, hr_whatif *out)
{
    host_outlook outlook;
    host_outlook_make(c->knobs, model, c->programs[0], NULL, c->device, &outlook);
    out->host_bytes = outlook.bytes;
    out->host_missing_bytes = host_outlook_beyond(&outlook, c->knobs);
    out->fits = out->fits && out->host_missing_bytes == 0;
    out->h2d_bytes = c->programs[0]->h2d_bytes;
    out->input_seconds = outlook.input.input_seconds;
    out->stall = time_plan_stall(&outlook.input, out->step_seconds);
}

// Whether it asks for more at its peak than there is, so that no allocator can hold it.
static bool is_out_of_reach(const play_case *c)
{
    const allocator_config config = play_allocator_config(c->knobs, c->failed_bytes);
    return program_peak_bytes(c->programs[0]) > play_backing_bytes(&config);
}

static hr_status play_compiled(const play_case *c, bool roughly, hr_whatif *out, hr_err *err)
{
    play_result played = {.fits = false};
    if (roughly && is_out_of_reach(c)) {
        out->is_at_least = true;
        return fill(out, c, &played, err);
    }
    HR_TRY(play_programs(c->device, c->device_context, c->knobs, c->failed_bytes, c->programs, c->count,
                         c->steps, &played, err));
    return fill(out, c, &played, err);
}

static hr_status plan_compiled(const play_case *c, bool roughly, hr_whatif *out, hr_err *err)
{
    cost_times times;
    HR_TRY(play_compiled(c, roughly, out, err));
    HR_TRY(cost_step_times(c->device, c->device_context, c->programs[0], &times, err));
    out->step_seconds = times.seconds;
    out->step_seconds_low = times.low_seconds;
    out->step_seconds_high = times.high_seconds;
    out->step_basis = times.basis;
    return HR_OK;
}

hr_status planner_normalises_batches(const hr_planner *planner, const hr_knobs *knobs, bool *out, hr_err *err)
{
    const hr_model *model = NULL;
    *out = false;
    HR_TRY(model_shelf_take(planner->models, knobs, &model, err));
    *out = model_normalises_batches(model);
    model_shelf_give_back(planner->models, model);
    return HR_OK;
}

// ---- a teacher that answers first ------------------------------------------------------------------------------

hr_status planner_answering_knobs(const hr_knobs *knobs, hr_knobs *out, hr_err *err)
{
    static const char *const pairs[] = {
        "compress.distill_cache=off", "execution.tape=none",      "execution.mode=graph",
        "execution.retain=none",      "execution.cuda_graph=off", "optimizer.kind=sgd",
        "optimizer.ema=none",         "optimizer.clip_norm=none", "optimizer.fused_backward=off",
        "offload.activations=off",    "offload.optimizer=off",    "checkpoint.strategy=none",
        "batch.accumulate=1",         "precision.health=off",     "allocator.kind=direct",
        "pipeline.device_prefetch=0", "pipeline.resident=off",
    };
    *out = *knobs;
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        HR_TRY(hr_knobs_set_pair(out, pairs[k], err));
    }
    return HR_OK;
}

// A run is refused too where they do not fit.
static hr_status plan_answers(const compiled *step, haste how, hr_whatif *out, hr_err *err)
{
    hr_knobs knobs;
    compiled s;
    play_result played;
    if (host_answers(step->model).rank == 0) {
        return HR_OK;
    }
    HR_TRY(planner_answering_knobs(step->c.knobs, &knobs, err));
    HR_TRY(compile_valid(step->planner, &knobs, how.estimates, &s, err));
    hr_status status = play_programs(s.c.device, s.c.device_context, &knobs, s.c.failed_bytes, s.programs, 1,
                                     PLAY_STEPS, &played, err);
    hr_whatif answers = {.fits = true};
    if (status == HR_OK && !played.fits) {
        status = fill(&answers, &s.c, &played, err);
    }
    if (!answers.fits && answers.missing_bytes > out->missing_bytes) {
        out->missing_bytes = answers.missing_bytes;
        out->peak_in_use_bytes = answers.peak_in_use_bytes;
    }
    out->fits = out->fits && answers.fits;
    end_compiled(&s);
    return status;
}

static hr_status plan_whole(const compiled *s, haste how, hr_whatif *out, hr_err *err)
{
    *out = (hr_whatif){0};
    HR_TRY(plan_compiled(&s->c, how.roughly, out, err));
    HR_TRY(plan_answers(s, how, out, err));
    fill_host(s->model, &s->c, out);
    return HR_OK;
}

static hr_status plan_with(const hr_planner *planner, const hr_knobs *knobs, haste how, hr_whatif *out,
                           bool *estimated, hr_err *err)
{
    compiled s;
    *out = (hr_whatif){0};
    *estimated = false;
    HR_TRY(compile(planner, knobs, how.estimates, &s, err));
    const hr_status status = plan_whole(&s, how, out, err);
    *estimated = s.estimates.count > 0;
    end_compiled(&s);
    return status;
}

hr_status planner_estimate(const hr_planner *planner, const hr_knobs *knobs, hr_whatif *out, bool *estimated,
                           hr_err *err)
{
    return plan_with(planner, knobs, (haste){.estimates = true}, out, estimated, err);
}

hr_status planner_plan_roughly(const hr_planner *planner, const hr_knobs *knobs, uint64_t exact_below_bytes,
                               planner_rough *out, hr_err *err)
{
    compiled s;
    *out = (planner_rough){.has_exact = false};
    HR_TRY(compile(planner, knobs, false, &s, err));
    hr_status status = plan_whole(&s, (haste){.roughly = true}, &out->plan, err);
    if (status == HR_OK && out->plan.is_at_least && hr_whatif_missing_bytes(&out->plan) < exact_below_bytes) {
        const hr_status exact = plan_whole(&s, (haste){.roughly = false}, &out->exact, NULL);
        out->has_exact = exact == HR_OK;
        status = exact == HR_INTERRUPTED ? exact : status;
    }
    end_compiled(&s);
    return status;
}

hr_status hr_planner_plan(const hr_planner *planner, const hr_knobs *knobs, hr_whatif *out, hr_err *err)
{
    bool estimated;
    return plan_with(planner, knobs, (haste){.estimates = false}, out, &estimated, err);
}

hr_status hr_planner_turn(const hr_planner *planner, const hr_knobs *knobs, hr_knob_id id, const char *value,
                          hr_whatif *out, hr_err *err)
{
    hr_knobs changed = *knobs;
    *out = (hr_whatif){0};
    HR_TRY(hr_knobs_set(&changed, id, value, err));
    return hr_planner_plan(planner, &changed, out, err);
}

// ---- step plans and listings ------------------------------------------------------------------------------------

static hr_status step_plan_with(const hr_planner *planner, const hr_knobs *knobs, bool in_a_hurry,
                                hr_step_plan *out, bool *estimated, hr_err *err)
{
    compiled s;
    play_result played;
    *out = (hr_step_plan){0};
    *estimated = false;
    HR_TRY(compile(planner, knobs, in_a_hurry, &s, err));
    *estimated = s.estimates.count > 0;
    hr_status status = step_plan_make(s.model, &s.c, out, &played, err);
    if (status == HR_OK && !played.fits) {
        status = find_missing(&s.c, &played.oom, &out->missing_bytes, err);
    }
    if (status != HR_OK) {
        hr_step_plan_deinit(out);
    }
    end_compiled(&s);
    return status;
}

hr_status planner_estimate_step_plan(const hr_planner *planner, const hr_knobs *knobs, hr_step_plan *out,
                                     bool *estimated, hr_err *err)
{
    return step_plan_with(planner, knobs, true, out, estimated, err);
}

hr_status hr_planner_step_plan(const hr_planner *planner, const hr_knobs *knobs, hr_step_plan *out,
                               hr_err *err)
{
    bool estimated;
    return step_plan_with(planner, knobs, false, out, &estimated, err);
}

static hr_status print_diff(const program *before, const program *after, text *lines, hr_err *err)
{
    FILE *stream = text_stream(lines);
    if (stream == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the difference of two listings");
    }
    hr_status status = program_print_diff(before, after, stream, err);
    const bool written = fclose(stream) == 0 && !lines->failed;
    return status != HR_OK || written
               ? status
               : HR_FAIL(err, NOMEM, "no host memory for the difference of two listings");
}

hr_status hr_planner_diff(const hr_planner *planner, const hr_knobs *before, const hr_knobs *after,
                          char **lines, hr_err *err)
{
    compiled a, b;
    text all = {0};
    *lines = NULL;
    HR_TRY(compile(planner, before, false, &a, err));
    hr_status status = compile(planner, after, false, &b, err);
    if (status == HR_OK) {
        status = print_diff(a.p, b.p, &all, err);
        end_compiled(&b);
    }
    end_compiled(&a);
    if (status == HR_OK) {
        *lines = text_take(&all);
    }
    text_deinit(&all);
    return status;
}

void hr_planner_text_free(char *lines)
{
    hr_free(lines);
}

hr_status planner_other_param(const hr_planner *planner, const hr_knobs *from, const hr_knobs *to,
                              char name[HR_PARAM_TEXT_MAX], hr_err *err)
{
    const hr_model *a = NULL, *b = NULL;
    name[0] = '\0';
    HR_TRY(model_shelf_take(planner->models, from, &a, err));
    const hr_status status = model_shelf_take(planner->models, to, &b, err);
    const char *other = status == HR_OK ? model_first_other_param(a, b) : NULL;
    (void)text_copy(name, HR_PARAM_TEXT_MAX, other == NULL ? "" : other);
    model_shelf_give_back(planner->models, b);
    model_shelf_give_back(planner->models, a);
    return status;
}

// ---- planners -------------------------------------------------------------------------------------------------

static bool answers_path(char *path, size_t size)
{
    return hr_file_xdg("XDG_CACHE_HOME", ".cache", "workspaces", path, size);
}

static void load_answers(void)
{
    char path[4096];
    if (answers_path(path, sizeof path)) {
        target_memo_load(path);
    }
}

void planner_load_answers(void)
{
    static pthread_once_t loaded = PTHREAD_ONCE_INIT;
    (void)pthread_once(&loaded, load_answers);
}

// A model that is wrong is refused at once, not with the first plan.
static hr_status open_models(hr_planner *planner, const hr_preset *preset, hr_err *err)
{
    const hr_model *model = NULL;
    HR_TRY(model_shelf_open(preset, &planner->models, err));
    HR_TRY(model_shelf_take(planner->models, hr_preset_knobs(preset), &model, err));
    model_shelf_give_back(planner->models, model);
    return HR_OK;
}

hr_status hr_planner_open(const hr_preset *preset, hr_planner **out, hr_err *err)
{
    hr_planner *planner = hr_calloc(1, sizeof *planner);
    *out = NULL;
    if (planner == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a planner");
    }
    hr_status status = open_models(planner, preset, err);
    if (status != HR_OK) {
        model_shelf_close(planner->models);
        hr_free(planner);
        return status;
    }
    planner_load_answers();
    *out = planner;
    return HR_OK;
}

void planner_keep_answers(void)
{
    char path[4096];
    if (answers_path(path, sizeof path)) {
        (void)target_memo_save(path);
    }
}

void hr_planner_close(hr_planner *planner)
{
    if (planner == NULL) {
        return;
    }
    planner_keep_answers();
    model_shelf_close(planner->models);
    hr_free(planner);
}
