// SPDX-License-Identifier: Apache-2.0
// Calibration: small programs on the cpu device, every instruction timed, and the rates of each family fitted to the
// medians. What is run are programs as any others, so that reorders, casts and workspaces cost what they cost.
#include "insight/calibrate.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/host_mem.h"
#include "base/text.h"
#include "base/vec.h"
#include "insight/rate_fit.h"

enum { HURRIED_SHARE = 8 }; // of a batch, where the whole would take too long

// ---- what is run ----------------------------------------------------------------------------------------------

static const char images[] =
    "model:\n"
    "  name: images\n"
    "  input: {shape: [32, 32, 3]}\n"
    "  classes: 10\n"
    "  loss: softmax_cross_entropy\n"
    "  layers:\n"
    "    - {name: stem, kind: conv2d, filters: 32, kernel: 3, padding: 1}\n"
    "    - {name: stem_bn, kind: batch_norm, activation: relu}\n"
    "    - {name: same, kind: conv2d, filters: 32, kernel: 3, padding: 1}\n"
    "    - {name: same_bn, kind: batch_norm}\n"
    "    - {name: sum, kind: add, inputs: [stem_bn, previous], activation: relu}\n"
    "    - {name: pool, kind: max_pool, size: 2}\n"
    "    - {name: wide, kind: conv2d, filters: 96, kernel: 3, padding: 1}\n"
    "    - {name: wide_bn, kind: batch_norm, activation: relu}\n"
    "    - {name: down, kind: conv2d, filters: 128, kernel: 3, stride: 2, padding: 1}\n"
    "    - {name: down_bn, kind: batch_norm, activation: relu}\n"
    "    - {name: mix, kind: conv2d, filters: 256, kernel: 1}\n"
    "    - {name: mix_bn, kind: batch_norm, activation: relu}\n"
    "    - {name: last, kind: conv2d, filters: 128, kernel: 3, padding: 1}\n"
    "    - {name: last_act, kind: gelu}\n"
    "    - {kind: global_avg_pool}\n"
    "    - {kind: dense, units: 10}\n";

// Many channels on small maps: large weights, and little room for tiles.
static const char deep[] = "model:\n"
                           "  name: deep\n"
                           "  input: {shape: [28, 28, 64]}\n"
                           "  classes: 10\n"
                           "  loss: softmax_cross_entropy\n"
                           "  layers:\n"
                           "    - {kind: conv2d, filters: 128, kernel: 3, padding: 1}\n"
                           "    - {kind: batch_norm, activation: relu}\n"
                           "    - {kind: conv2d, filters: 256, kernel: 3, stride: 2, padding: 1}\n"
                           "    - {kind: batch_norm, activation: relu}\n"
                           "    - {kind: conv2d, filters: 256, kernel: 3, padding: 1}\n"
                           "    - {kind: batch_norm, activation: relu}\n"
                           "    - {kind: conv2d, filters: 512, kernel: 3, stride: 2, padding: 1}\n"
                           "    - {kind: batch_norm, activation: relu}\n"
                           "    - {kind: conv2d, filters: 512, kernel: 3, padding: 1}\n"
                           "    - {kind: batch_norm, activation: relu}\n"
                           "    - {kind: global_avg_pool}\n"
                           "    - {kind: dense, units: 10}\n";

static const char depthwise[] = "model:\n"
                                "  name: depthwise\n"
                                "  input: {shape: [48, 48, 3]}\n"
                                "  classes: 10\n"
                                "  loss: softmax_cross_entropy\n"
                                "  layers:\n"
                                "    - {kind: conv2d, filters: 24, kernel: 3, stride: 2, padding: 1}\n"
                                "    - {kind: batch_norm, activation: relu}\n"
                                "    - {kind: depthwise_conv2d, kernel: 3, padding: 1}\n"
                                "    - {kind: batch_norm, activation: relu}\n"
                                "    - {kind: conv2d, filters: 96, kernel: 1}\n"
                                "    - {kind: batch_norm, activation: relu}\n"
                                "    - {kind: depthwise_conv2d, kernel: 3, stride: 2, padding: 1}\n"
                                "    - {kind: batch_norm, activation: relu}\n"
                                "    - {kind: conv2d, filters: 64, kernel: 1}\n"
                                "    - {kind: depthwise_conv2d, kernel: 3, padding: 1}\n"
                                "    - {kind: batch_norm}\n"
                                "    - {kind: global_avg_pool}\n"
                                "    - {kind: dense, units: 10}\n";

#define SEQUENCE(name_, form_)                                                                               \
    "model:\n"                                                                                               \
    "  name: " name_ "\n"                                                                                    \
    "  input: {type: int32, classes: 4096, shape: [128]}\n"                                                  \
    "  classes: 4096\n"                                                                                      \
    "  loss: softmax_cross_entropy\n"                                                                        \
    "  defaults:\n"                                                                                          \
    "    attention: {heads: 4, causal: true, form: " form_ "}\n"                                             \
    "  layers:\n"                                                                                            \
    "    - {name: wte, kind: embedding, units: 256}\n"                                                       \
    "    - {name: wpe, kind: position_embedding}\n"                                                          \
    "    - {name: ln1, kind: layer_norm}\n"                                                                  \
    "    - {name: attn, kind: attention}\n"                                                                  \
    "    - {name: mid, kind: add, inputs: [wpe, previous]}\n"                                                \
    "    - {name: ln2, kind: layer_norm}\n"                                                                  \
    "    - {name: fc, kind: dense, units: 1024, activation: gelu_tanh}\n"                                    \
    "    - {name: proj, kind: dense, units: 256}\n"                                                          \
    "    - {name: drop, kind: dropout, rate: 0.1}\n"                                                         \
    "    - {name: out, kind: add, inputs: [mid, previous]}\n"                                                \
    "    - {name: head, kind: dense, units: 4096, bias: false, transpose: true, share: wte}\n"

static const char streaming[] = SEQUENCE("streaming", "streaming");
static const char materialised[] = SEQUENCE("materialised", "materialised");

static const char dense[] = "model:\n"
                            "  name: dense\n"
                            "  input: {shape: [784]}\n"
                            "  classes: 10\n"
                            "  loss: softmax_cross_entropy\n"
                            "  layers:\n"
                            "    - {kind: dense, units: 1024, activation: relu}\n"
                            "    - {kind: dense, units: 1024, activation: relu}\n"
                            "    - {kind: dense, units: 128, activation: tanh}\n"
                            "    - {kind: dense, units: 10}\n";

// Small and large batches: the first show what it costs to start, the last what it costs to go on.
static const calibration_program programs[] = {
    {"images", images, 1, "momentum"},
    {"images", images, 8, "sgd"},
    {"images", images, 48, "adam"},
    {"deep", deep, 1, "momentum"},
    {"deep", deep, 8, "adam"},
    {"depthwise", depthwise, 2, "adam"},
    {"depthwise", depthwise, 32, "momentum"},
    {"streaming", streaming, 1, "adam"},
    {"streaming", streaming, 6, "adamw"},
    {"materialised", materialised, 1, "momentum"},
    {"materialised", materialised, 6, "adam"},
    {"dense", dense, 8, "sgd"},
    {"dense", dense, 256, "adam"},
};
enum { PROGRAMS = sizeof programs / sizeof *programs };
_Static_assert((int)CALIBRATION_PROGRAMS == (int)PROGRAMS * (int)RATE_WIDTHS, "the header counts them");
_Static_assert((int)CALIBRATION_PROGRAMS <= (int)HR_CALIBRATION_MODELS, "every model has room");
static const char *const policies[RATE_WIDTHS] = {"float32", "mixed_bfloat16"};
static const char *const types[RATE_WIDTHS] = {"float32", "bfloat16"};

// ---- the result -----------------------------------------------------------------------------------------------

static double per_second(double seconds_each)
{
    return seconds_each > 0 ? 1 / seconds_each : (double)NAN;
}

static void fit_all(const calibration_samples *samples, cost_rates *r, hr_calibration *out)
{
    for (int f = COST_NOTHING + 1; f < COST_FAMILY_COUNT; f++) {
        for (int w = 0; w < RATE_WIDTHS; w++) {
            cost_rate *one = &r->of[f][w];
            *one = rate_fit(samples->data, samples->count, (cost_family)f, (rate_width)w);
            if (one->instructions == 0) {
                continue;
            }
            out->rows[out->row_count++] =
                (hr_calibration_row){.family = cost_family_name((cost_family)f),
                                     .type = types[w],
                                     .instructions = one->instructions,
                                     .start_seconds = one->start_seconds,
                                     .flops_per_second = per_second(one->seconds_per_flop),
                                     .bytes_per_second = per_second(one->seconds_per_byte)};
        }
    }
}
_Static_assert((int)HR_CALIBRATION_ROWS >= (COST_FAMILY_COUNT - 1) * RATE_WIDTHS, "every row has room");

// ---- how good it is -------------------------------------------------------------------------------------------

static double planned_seconds(const rate_sample *s, const cost_rates *r)
{
    const cost_rate *one = &r->of[s->family][s->width];
    return one->start_seconds + s->flops * one->seconds_per_flop + s->bytes * one->seconds_per_byte;
}

static void tell_models(const calibration_samples *samples, const calibration_outcome *outcomes,
                        const cost_rates *r, hr_calibration *out)
{
    double median_seconds = 0, fastest_seconds = 0;
    for (size_t k = 0; k < out->model_count; k++) {
        const calibration_outcome *o = &outcomes[k];
        hr_calibration_model *m = &out->models[k];
        *m = (hr_calibration_model){.name = programs[k % PROGRAMS].name,
                                    .type = types[k / PROGRAMS],
                                    .batch = o->batch,
                                    .steps = o->steps,
                                    .measured_seconds = o->median_seconds,
                                    .noise = o->median_seconds / o->fastest_seconds - 1};
        for (uint32_t n = 0; n < o->sample_count; n++) {
            m->planned_seconds += planned_seconds(&samples->data[o->sample_begin + n], r);
        }
        median_seconds += o->median_seconds;
        fastest_seconds += o->fastest_seconds;
    }
    out->noise = fastest_seconds > 0 ? median_seconds / fastest_seconds - 1 : 0;
}

static double factor_of(const hr_calibration_model *m)
{
    return exp(fabs(log(m->planned_seconds / m->measured_seconds)));
}

static void judge(hr_calibration *c, double seconds)
{
    const hr_calibration_model *worst = &c->models[0];
    for (size_t k = 1; k < c->model_count; k++) {
        worst = factor_of(&c->models[k]) > factor_of(worst) ? &c->models[k] : worst;
    }
    if (c->model_count < CALIBRATION_PROGRAMS) {
        (void)snprintf(
            c->refusal, sizeof c->refusal,
            "%g s were enough for %zu of %d models: close other programs, or give it more with --seconds",
            seconds, c->model_count, CALIBRATION_PROGRAMS);
    } else if (c->noise > CALIBRATION_NOISE_MOST) {
        (void)snprintf(
            c->refusal, sizeof c->refusal,
            "instructions took %.0f %% longer than their fastest time, %.0f %% are allowed: the machine "
            "does something else as well; close other programs and measure again",
            c->noise * 100, CALIBRATION_NOISE_MOST * 100);
    } else if (factor_of(worst) > CALIBRATION_FACTOR_MOST) {
        (void)snprintf(
            c->refusal, sizeof c->refusal,
            "the rates say %.3g ms for %s in %s at batch %u, which took %.3g ms: measure again, best on an "
            "idle machine",
            worst->planned_seconds * 1e3, worst->name, worst->type, worst->batch,
            worst->measured_seconds * 1e3);
    }
}

// ---- running --------------------------------------------------------------------------------------------------

typedef struct calibrator {
    const device_ops *device;
    void *context;
    const hr_knobs *knobs;
    calibration_time *time;
    calibration_samples samples;
    calibration_outcome outcomes[CALIBRATION_PROGRAMS];
} calibrator;

// A batch of which a few steps fit into the share, by what a sample of the same model took in the run before.
static uint32_t fitting_batch(const calibrator *c, size_t at, double share_seconds)
{
    const calibration_program *what = &programs[at % PROGRAMS];
    if (at % PROGRAMS == 0 || programs[at % PROGRAMS - 1].preset != what->preset) {
        return what->batch;
    }
    const calibration_outcome *before = &c->outcomes[at - 1];
    const double a_sample = before->median_seconds / before->batch;
    const uint32_t least = (what->batch + HURRIED_SHARE - 1) / HURRIED_SHARE;
    const double most = share_seconds / ((CALIBRATION_STEPS_LEAST + 2) * a_sample);
    return most >= what->batch ? what->batch : most > least ? (uint32_t)most : least;
}

// Each program has its share of the time that is left. *done of them were measured when it ends early.
static hr_status measure(calibrator *c, size_t *done, hr_err *err)
{
    for (*done = 0; *done < CALIBRATION_PROGRAMS; ++*done) {
        const uint64_t now_ns = c->time->now_ns(c->time->context);
        const uint64_t left_ns = now_ns < c->time->until_ns ? c->time->until_ns - now_ns : 0;
        const uint64_t share_ns = left_ns / (CALIBRATION_PROGRAMS - *done);
        calibration_program one = programs[*done % PROGRAMS];
        if (left_ns == 0) {
            break;
        }
        c->time->share_until_ns = now_ns + share_ns;
        one.batch = fitting_batch(c, *done, (double)share_ns * 1e-9);
        HR_TRY(calibration_run(c->device, c->context, &one, policies[*done / PROGRAMS], c->knobs, c->time,
                               &c->samples, &c->outcomes[*done], err));
        if (c->outcomes[*done].steps < CALIBRATION_STEPS_LEAST) {
            break;
        }
    }
    return HR_OK;
}

hr_status calibrate_on(const device_ops *device, void *context, const hr_knobs *knobs, calibration_time *time,
                       double seconds, cost_rates *rates, hr_calibration *out, hr_err *err)
{
    calibrator c = {.device = device, .context = context, .knobs = knobs, .time = time};
    const uint64_t begin_ns = time->now_ns(time->context);
    time->until_ns = begin_ns + (uint64_t)(seconds * 1e9);
    *out = (hr_calibration){.threads = device->threads == NULL ? 1 : device->threads(context)};
    *rates = (cost_rates){0};
    if (device->isa != NULL) {
        device->isa(context, out->isa, sizeof out->isa);
    }
    hr_status status = measure(&c, &out->model_count, err);
    if (status == HR_OK) {
        fit_all(&c.samples, rates, out);
        tell_models(&c.samples, c.outcomes, rates, out);
        out->seconds = (double)(time->now_ns(time->context) - begin_ns) * 1e-9;
        judge(out, seconds);
    }
    vec_deinit(&c.samples);
    return status;
}

static uint64_t monotonic_ns(void *context)
{
    (void)context;
    return clock_now_ns();
}

hr_status hr_calibrate(const hr_knobs *knobs, double seconds, hr_calibration *out, hr_err *err)
{
    const device_ops *device = NULL;
    void *context = NULL;
    const device_options options = {.threads = (uint32_t)hr_knob_int(knobs, HR_KNOB_THREADS_COUNT)};
    calibration_time time = {.now_ns = monotonic_ns};
    cost_rates rates;
    hr_target target;
    *out = (hr_calibration){0};
    HR_TRY(device_find("cpu", &device, err));
    HR_TRY(device->open(&options, &context, err));
    device->target(context, &target);
    hr_status status = calibrate_on(device, context, knobs, &time, seconds, &rates, out, err);
    const bool has_place = rates_path(out->path, sizeof out->path);
    if (status == HR_OK && has_place && out->refusal[0] == '\0') {
        out->kept = rates_save(out->path, target.key, &rates);
    }
    device->close(context);
    return status;
}
