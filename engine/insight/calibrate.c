// SPDX-License-Identifier: Apache-2.0
// Calibration: small programs on the cpu device, every instruction timed, and the rates of each family fitted to the
// medians. What is run are programs as any others, so that reorders, casts and workspaces cost what they cost.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/calibration.h"

#include "base/clock.h"
#include "base/host_mem.h"
#include "base/text.h"
#include "base/vec.h"
#include "insight/calibrate_run.h"
#include "insight/rate_fit.h"

enum { HURRIED_SHARE = 8 }; // of a batch, when there is no time left

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
    {"depthwise", depthwise, 2, "adam"},
    {"depthwise", depthwise, 32, "momentum"},
    {"streaming", streaming, 1, "adam"},
    {"streaming", streaming, 6, "adamw"},
    {"materialised", materialised, 1, "momentum"},
    {"materialised", materialised, 6, "adam"},
    {"dense", dense, 8, "sgd"},
    {"dense", dense, 256, "adam"},
};
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

// ---- running --------------------------------------------------------------------------------------------------

static hr_status measure(const device_ops *device, void *context, const hr_knobs *knobs, uint64_t until_ns,
                         calibration_samples *samples, hr_err *err)
{
    for (int w = 0; w < RATE_WIDTHS; w++) {
        for (size_t k = 0; k < sizeof programs / sizeof *programs; k++) {
            const bool hurry = clock_now_ns() > until_ns;
            calibration_program one = programs[k];
            one.batch = hurry ? (one.batch + HURRIED_SHARE - 1) / HURRIED_SHARE : one.batch;
            HR_TRY(calibration_run(device, context, &one, policies[w], knobs, hurry, samples, err));
        }
    }
    return HR_OK;
}

static hr_status calibrate(const device_ops *device, void *context, const hr_knobs *knobs, double seconds,
                           hr_calibration *out, hr_err *err)
{
    calibration_samples samples = {0};
    cost_rates r = {0};
    hr_target target;
    const uint64_t begin_ns = clock_now_ns();
    device->target(context, &target);
    device->isa(context, out->isa, sizeof out->isa);
    out->threads = device->threads == NULL ? 1 : device->threads(context);
    hr_status status = measure(device, context, knobs, begin_ns + (uint64_t)(seconds * 1e9), &samples, err);
    if (status == HR_OK) {
        fit_all(&samples, &r, out);
        out->seconds = (double)(clock_now_ns() - begin_ns) * 1e-9;
        out->kept = rates_path(out->path, sizeof out->path) && rates_save(out->path, target.key, &r);
    }
    vec_deinit(&samples);
    return status;
}

hr_status hr_calibrate(const hr_knobs *knobs, double seconds, hr_calibration *out, hr_err *err)
{
    const device_ops *device = NULL;
    void *context = NULL;
    const device_options options = {.threads = (uint32_t)hr_knob_int(knobs, HR_KNOB_THREADS_COUNT)};
    *out = (hr_calibration){0};
    HR_TRY(device_find("cpu", &device, err));
    HR_TRY(device->open(&options, &context, err));
    hr_status status = calibrate(device, context, knobs, seconds, out, err);
    device->close(context);
    return status;
}
