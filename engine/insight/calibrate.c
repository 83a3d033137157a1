// SPDX-License-Identifier: Apache-2.0
// Calibration: small programs on the cpu device, every instruction timed, and the rates of each kernel and family fitted to the
// quartiles. What is run are programs as any others, so that reorders, casts and workspaces cost what they cost.
#include "insight/calibrate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "insight/calibrate_part.h"
#include "insight/rate_fit.h"

enum { HURRIED_SHARE = 8 }; // of a batch, where the whole would take too long

// ---- the result -----------------------------------------------------------------------------------------------

static double per_second(double seconds_each)
{
    return seconds_each > 0 ? 1 / seconds_each : (double)NAN;
}

static void tell_families(const cost_rates *r, hr_calibration *out)
{
    for (int f = COST_NOTHING + 1; f < COST_FAMILY_COUNT; f++) {
        for (int w = 0; w < RATE_WIDTHS; w++) {
            const cost_rate *one = &r->of[f][w];
            if (one->instructions == 0) {
                continue;
            }
            out->rows[out->row_count++] =
                (hr_calibration_row){.family = cost_family_name((cost_family)f),
                                     .type = calibration_types[w],
                                     .instructions = one->instructions,
                                     .start_seconds = one->start_seconds,
                                     .flops_per_second = per_second(one->seconds_per_flop),
                                     .bytes_per_second = per_second(one->seconds_per_byte)};
        }
    }
}
_Static_assert((int)HR_CALIBRATION_ROWS >= (COST_FAMILY_COUNT - 1) * RATE_WIDTHS, "every row has room");
_Static_assert((int)CALIBRATION_PROGRAMS <= (int)HR_CALIBRATION_MODELS, "every model has room");

// ---- how good it is -------------------------------------------------------------------------------------------

static double planned_by(const calibration_part *part, size_t at, const cost_rates *rates,
                         double line_seconds)
{
    const calibration_outcome *o = &part->outcomes[at];
    double seconds = o->lines * line_seconds;
    for (uint32_t n = 0; n < o->sample_count; n++) {
        const rate_sample *s = &part->samples.data[o->sample_begin + n];
        const cost_rate *one = rates_find(rates, s->family, s->width, s->kinds);
        seconds += one->start_seconds + s->flops * one->seconds_per_flop + s->bytes * one->seconds_per_byte;
    }
    return seconds;
}

// Of a model that the rates have not seen: what is foretold is another one, as a rule.
static hr_status foretell(const calibration_part *part, size_t at, const cost_rates *all, double *seconds,
                          hr_err *err)
{
    cost_rates others = {.spread = 1};
    HR_TRY(rate_fit_all(part->samples.data, part->samples.count, at, &others, err));
    *seconds = planned_by(part, at, &others, all->line_seconds);
    return HR_OK;
}

static hr_status tell_models(const calibration_part *part, const cost_rates *r, hr_calibration *out,
                             hr_err *err)
{
    double seconds = 0, fastest_seconds = 0;
    for (size_t k = 0; k < part->done; k++) {
        const calibration_outcome *o = &part->outcomes[k];
        out->models[k] = (hr_calibration_model){
            .name = calibration_programs[k % CALIBRATION_MODELS].name,
            .type = calibration_types[k / CALIBRATION_MODELS],
            .batch = o->batch,
            .steps = o->steps,
            .measured_seconds = fmax(o->seconds + o->besides_seconds, o->seconds / 2),
            .noise = o->seconds / o->fastest_seconds - 1,
        };
        HR_TRY(foretell(part, k, r, &out->models[k].planned_seconds, err));
        seconds += o->seconds;
        fastest_seconds += o->fastest_seconds;
    }
    out->model_count = part->done;
    out->noise = fastest_seconds > 0 ? seconds / fastest_seconds - 1 : 0;
    return HR_OK;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double factor_between(double planned_seconds, double measured_seconds)
{
    return exp(fabs(log(planned_seconds / measured_seconds)));
}

// The error is the middle of the models' factors, and four models in five are within the spread.
static void tell_spread(hr_calibration *out, cost_rates *r)
{
    double factors[CALIBRATION_PROGRAMS] = {1};
    const size_t count = out->model_count;
    for (size_t k = 0; k < count; k++) {
        factors[k] = factor_between(out->models[k].planned_seconds, out->models[k].measured_seconds);
    }
    qsort(factors, count, sizeof *factors, ascending);
    out->error = factors[count / 2] - 1;
    out->spread = r->spread = fmin(factors[count * 4 / 5], CALIBRATION_FACTOR_MOST);
}

// By weighted least squares: a small step shows it, in a large one it is less than the scatter.
static double line_seconds(const calibration_part *part)
{
    double besides = 0, lines = 0;
    for (size_t k = 0; k < part->done; k++) {
        const calibration_outcome *o = &part->outcomes[k];
        const double weight = o->besides_seconds == 0 ? 0 : o->lines / (o->seconds * o->seconds);
        besides += weight * o->besides_seconds;
        lines += weight * o->lines;
    }
    return lines > 0 ? fmax(besides / lines, 0) : 0;
}

static void judge_time(hr_calibration *c, const calibration_task *task)
{
    if (c->goes_on) {
        (void)snprintf(
            c->refusal, sizeof c->refusal,
            "%g s were enough for %zu of %d models, which are kept: the same command goes on from there",
            task->seconds, c->model_count, CALIBRATION_PROGRAMS);
    } else {
        (void)snprintf(
            c->refusal, sizeof c->refusal,
            "%g s were enough for %zu of %d models: close other programs, or give it more with --seconds",
            task->seconds, c->model_count, CALIBRATION_PROGRAMS);
    }
}

// The rates that would be kept, by the model that they explain worst.
static void judge_rates(hr_calibration *c, const calibration_part *part, const cost_rates *rates)
{
    const hr_calibration_model *worst = &c->models[0];
    double worst_factor = 1, worst_seconds = 0;
    for (size_t k = 0; k < c->model_count; k++) {
        const double seconds = planned_by(part, k, rates, rates->line_seconds);
        const double factor = factor_between(seconds, c->models[k].measured_seconds);
        if (factor > worst_factor) {
            worst = &c->models[k], worst_factor = factor, worst_seconds = seconds;
        }
    }
    if (worst_factor > CALIBRATION_FACTOR_MOST) {
        (void)snprintf(
            c->refusal, sizeof c->refusal,
            "the rates say %.3g ms for %s in %s at batch %u, which took %.3g ms: measure again, best on an "
            "idle machine",
            worst_seconds * 1e3, worst->name, worst->type, worst->batch, worst->measured_seconds * 1e3);
    }
}

static void judge(hr_calibration *c, const calibration_task *task, const calibration_part *part,
                  const cost_rates *rates)
{
    if (c->model_count < CALIBRATION_PROGRAMS) {
        judge_time(c, task);
    } else if (c->noise > CALIBRATION_NOISE_MOST) {
        (void)snprintf(
            c->refusal, sizeof c->refusal,
            "instructions took %.0f %% longer than their fastest time, %.0f %% are allowed: the machine "
            "does something else as well; close other programs and measure again",
            c->noise * 100, CALIBRATION_NOISE_MOST * 100);
    } else {
        judge_rates(c, part, rates);
    }
}

// ---- running --------------------------------------------------------------------------------------------------

// A batch of which a few steps fit into the share, by what a sample of the same model took in the run before.
static uint32_t fitting_batch(const calibration_part *part, size_t at, double share_seconds)
{
    const calibration_program *what = &calibration_programs[at % CALIBRATION_MODELS];
    if (at % CALIBRATION_MODELS == 0 ||
        calibration_programs[at % CALIBRATION_MODELS - 1].preset != what->preset) {
        return what->batch;
    }
    const calibration_outcome *before = &part->outcomes[at - 1];
    const double a_sample = before->seconds / before->batch;
    const uint32_t least = (what->batch + HURRIED_SHARE - 1) / HURRIED_SHARE;
    const double most = share_seconds / ((CALIBRATION_STEPS_LEAST + 2) * a_sample);
    return most >= what->batch ? what->batch : most > least ? (uint32_t)most : least;
}

static hr_status measure_one(const calibration_task *task, calibration_part *part, double share_seconds,
                             hr_err *err)
{
    const size_t at = part->done;
    calibration_program one = calibration_programs[at % CALIBRATION_MODELS];
    one.batch = fitting_batch(part, at, share_seconds);
    HR_TRY(calibration_run(task->device, task->context, &one, calibration_policies[at / CALIBRATION_MODELS],
                           task->knobs, task->time, &part->samples, &part->outcomes[at], err));
    if (part->outcomes[at].steps >= CALIBRATION_STEPS_LEAST) {
        for (uint32_t k = part->outcomes[at].sample_begin; k < part->samples.count; k++) {
            part->samples.data[k].program = at;
        }
        part->done++;
    }
    return HR_OK;
}

// Each program has its share of the time that is left. It ends early when that is over. *saved: of what is done a file tells.
static hr_status measure(const calibration_task *task, calibration_part *part, bool *saved, hr_err *err)
{
    calibration_time *time = task->time;
    *saved = part->done > 0;
    while (part->done < CALIBRATION_PROGRAMS) {
        const uint64_t now_ns = time->now_ns(time->context);
        const uint64_t left_ns = now_ns < time->until_ns ? time->until_ns - now_ns : 0;
        const uint64_t share_ns = left_ns / (CALIBRATION_PROGRAMS - part->done);
        const size_t before = part->done;
        time->share_until_ns = now_ns + share_ns;
        if (left_ns > 0) {
            HR_TRY(measure_one(task, part, (double)share_ns * 1e-9, err));
        }
        if (part->done == before) {
            break;
        }
        *saved = task->part != NULL && calibration_part_save(task->part, task->key, part);
    }
    return HR_OK;
}

static hr_status finish(const calibration_part *part, const calibration_task *task, cost_rates *rates,
                        hr_calibration *out, hr_err *err)
{
    HR_TRY(rate_fit_all(part->samples.data, part->samples.count, RATE_WITHOUT_NONE, rates, err));
    out->line_seconds = rates->line_seconds = line_seconds(part);
    tell_families(rates, out);
    HR_TRY(tell_models(part, rates, out, err));
    tell_spread(out, rates);
    judge(out, task, part, rates);
    return HR_OK;
}

// What was measured is gone only behind rates that are kept, or refused.
static void keep(const calibration_task *task, const cost_rates *rates, hr_calibration *out)
{
    const bool is_refused = out->refusal[0] != '\0';
    out->kept = !is_refused && task->rates != NULL && rates_save(task->rates, task->key, rates);
    if (task->part != NULL && !out->goes_on && (out->kept || is_refused || task->rates == NULL)) {
        calibration_part_remove(task->part);
    }
}

hr_status calibrate_on(const calibration_task *task, cost_rates *rates, hr_calibration *out, hr_err *err)
{
    calibration_part part = {0};
    calibration_time *time = task->time;
    const uint64_t begin_ns = time->now_ns(time->context);
    bool saved = false;
    time->until_ns = begin_ns + (uint64_t)(task->seconds * 1e9);
    *out =
        (hr_calibration){.threads = task->device->threads == NULL ? 1 : task->device->threads(task->context)};
    *rates = (cost_rates){.spread = 1};
    if (task->device->isa != NULL) {
        task->device->isa(task->context, out->isa, sizeof out->isa);
    }
    if (task->part != NULL) {
        calibration_part_load(task->part, task->key, &part);
    }
    out->resumed_count = part.done;
    hr_status status = measure(task, &part, &saved, err);
    if (status == HR_OK) {
        out->goes_on = saved && part.done < CALIBRATION_PROGRAMS;
        out->seconds = (double)(time->now_ns(time->context) - begin_ns) * 1e-9;
        status = finish(&part, task, rates, out, err);
    }
    if (status == HR_OK) {
        keep(task, rates, out);
    }
    calibration_part_deinit(&part);
    return status;
}

// ---- the cpu device -------------------------------------------------------------------------------------------

static uint64_t monotonic_ns(void *context)
{
    (void)context;
    return clock_now_ns();
}

// Of the one thread that computes: what other programs have of its processor is none of it.
static uint64_t thread_ns(void *context)
{
    struct timespec now = {0};
    (void)context;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static uint64_t reading_ns(uint64_t (*clock)(void *context))
{
    enum { READINGS = 1000 };
    uint64_t least_ns = UINT64_MAX;
    for (int k = 0; k < READINGS; k++) {
        const uint64_t before_ns = clock(NULL), ns = clock(NULL) - before_ns;
        least_ns = ns < least_ns ? ns : least_ns;
    }
    return least_ns;
}

static calibration_time time_of(const device_ops *device, void *context)
{
    calibration_time time = {.now_ns = monotonic_ns};
    time.spent_ns = device->threads(context) == 1 ? thread_ns : NULL;
    time.reading_ns = reading_ns(time.spent_ns == NULL ? monotonic_ns : thread_ns);
    return time;
}

static hr_status calibrate_device(calibration_task *task, hr_calibration *out, hr_err *err)
{
    char path[HR_CALIBRATION_PATH_MAX];
    cost_rates rates;
    task->rates = rates_path(path, sizeof path) ? path : NULL;
    const hr_status status = calibrate_on(task, &rates, out, err);
    (void)text_copy(out->path, sizeof out->path, task->rates == NULL ? "" : path);
    task->rates = NULL;
    return status;
}

static hr_status calibrate_alone(calibration_task *task, hr_calibration *out, hr_err *err)
{
    char part[HR_CALIBRATION_PATH_MAX], lock[HR_CALIBRATION_PATH_MAX];
    int fd = -1;
    if (hr_file_xdg("XDG_CACHE_HOME", ".cache", "calibration.part", part, sizeof part) &&
        hr_file_xdg("XDG_CACHE_HOME", ".cache", "calibration.lock", lock, sizeof lock)) {
        task->part = part;
        HR_TRY(calibration_lock(lock, &fd, err));
    }
    const hr_status status = calibrate_device(task, out, err);
    calibration_unlock(fd);
    return status;
}

hr_status hr_calibrate(const hr_knobs *knobs, double seconds, hr_calibration *out, hr_err *err)
{
    const device_ops *device = NULL;
    void *context = NULL;
    const device_options options = {.threads = (uint32_t)hr_knob_int(knobs, HR_KNOB_THREADS_COUNT)};
    hr_target target;
    *out = (hr_calibration){0};
    HR_TRY(device_find("cpu", &device, err));
    HR_TRY(device->open(&options, &context, err));
    device->target(context, &target);
    calibration_time time = time_of(device, context);
    calibration_task task = {.device = device,
                             .context = context,
                             .knobs = knobs,
                             .time = &time,
                             .seconds = seconds,
                             .key = target.key};
    const hr_status status = calibrate_alone(&task, out, err);
    device->close(context);
    return status;
}
