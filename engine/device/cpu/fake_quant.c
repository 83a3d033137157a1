// SPDX-License-Identifier: Apache-2.0
// Fake quantization (ops/fake_quant.h), and the ranges that it follows. This file is compiled without contraction of products
// and sums, so that every device rounds to the same level.
#include "ops/fake_quant.h"

#include <string.h>

#include "base/workers.h"
#include "cast.h"
#include "cpu.h"
#include "simd.h"

enum { GRAIN = 16384, PIECE = 1024, LINE_FLOATS = 16 };

typedef struct job {
    const void *x, *dy;
    void *y;
    hr_dtype type;
    int64_t channels; // of weights: places of the last dimension with levels of their own
    float *parts;     // [worker][part_floats]: ranges, or the largest of each channel
    int64_t part_floats;
    const fake_quant_levels *levels; // one, or one a channel
} job;

// ---- ranges ---------------------------------------------------------------------------------------------------

CPU_INLINE void raise_lanes(f32x16 *lanes, const f32x16 *to)
{
    const i32x16 higher = *to > *lanes;
    *lanes = (f32x16)(((i32x16)*to & higher) | ((i32x16)*lanes & ~higher));
}

// range[0] and range[1] become at least −x and x.
CPU_HOT static void widen_range(const float *x, int64_t count, float range[2])
{
    f32x16 below = {0}, above = {0};
    int64_t i = 0;
    for (; i + CPU_LANES <= count; i += CPU_LANES) {
        const f32x16 value = F32X16(x + i), negative = -value;
        raise_lanes(&below, &negative);
        raise_lanes(&above, &value);
    }
    for (int k = 0; k < CPU_LANES; k++) {
        range[0] = below[k] > range[0] ? below[k] : range[0];
        range[1] = above[k] > range[1] ? above[k] : range[1];
    }
    for (; i < count; i++) {
        range[0] = -x[i] > range[0] ? -x[i] : range[0];
        range[1] = x[i] > range[1] ? x[i] : range[1];
    }
}

static void range_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    float *range = j->parts + worker * j->part_floats, piece[PIECE];
    range[0] = range[1] = 0.0F;
    for (int64_t at = begin; at < end; at += PIECE) {
        const int64_t count = end - at < PIECE ? end - at : PIECE;
        widen_range(cast_load(j->x, j->type, at, count, piece), count, range);
    }
}

static void range_of(const cpu_run *r, float *parts, float range[2])
{
    const int64_t count = cpu_elements_of(&r->query->in[0]);
    const job j = {
        .x = r->in[0], .type = (hr_dtype)r->query->in[0].dtype, .parts = parts, .part_floats = LINE_FLOATS};
    workers_for(r->device->workers, count, GRAIN, range_body, &j);
    range[0] = range[1] = 0.0F;
    for (uint32_t k = 0; k < workers_for_ranges(r->device->workers, count, GRAIN); k++) {
        const float *part = parts + k * LINE_FLOATS;
        range[0] = part[0] > range[0] ? part[0] : range[0];
        range[1] = part[1] > range[1] ? part[1] : range[1];
    }
}

static uint64_t range_workspace(const cpu_device *device, const op_query *q)
{
    (void)q;
    return (uint64_t)device->threads * LINE_FLOATS * sizeof(float);
}

static void run_track_range(const cpu_run *r)
{
    float batch[2], *range = r->in[1];
    range_of(r, r->workspace, batch);
    for (int k = 0; k < 2; k++) {
        range[k] = fake_quant_moved(range[k], batch[k], r->query->attr.momentum);
    }
}

// ---- weights --------------------------------------------------------------------------------------------------

static int64_t channels_of(const op_query *q)
{
    const hr_shape *shape = &q->in[0].shape;
    return q->attr.count == 0 ? 1 : shape->dim[shape->rank - 1];
}

// Rows of one place a channel; a tensor whose levels are one has rows of a single place, and is asked in pieces instead.
static void channel_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    float *largest = j->parts + worker * j->part_floats, piece[PIECE];
    memset(largest, 0, (size_t)j->channels * sizeof *largest);
    for (int64_t row = begin; row < end; row++) {
        for (int64_t c = 0; c < j->channels; c += PIECE) {
            const int64_t count = j->channels - c < PIECE ? j->channels - c : PIECE;
            const float *w = cast_load(j->x, j->type, row * j->channels + c, count, piece);
            for (int64_t k = 0; k < count; k++) {
                const float size = w[k] < 0.0F ? -w[k] : w[k];
                largest[c + k] = size > largest[c + k] ? size : largest[c + k];
            }
        }
    }
}

CPU_HOT static void levels_range(const fake_quant_levels *l, const float *x, float *y, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        y[i] = fake_quant_value(l, x[i]);
    }
}

static void quantize_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    float from[PIECE], to[PIECE];
    (void)worker;
    for (int64_t at = begin; at < end; at += PIECE) {
        const int64_t count = end - at < PIECE ? end - at : PIECE;
        const float *x = cast_load(j->x, j->type, at, count, from);
        if (j->channels == 1) {
            levels_range(j->levels, x, to, count);
        } else {
            for (int64_t k = 0; k < count; k++) {
                to[k] = fake_quant_value(&j->levels[(at + k) % j->channels], x[k]);
            }
        }
        cast_store(j->y, j->type, at, to, count);
    }
}

static uint64_t levels_floats(int64_t channels)
{
    return (uint64_t)channels * sizeof(fake_quant_levels) / sizeof(float);
}

static uint64_t weights_workspace(const cpu_device *device, const op_query *q)
{
    const uint64_t channels = (uint64_t)channels_of(q);
    const uint64_t part = channels < LINE_FLOATS ? LINE_FLOATS : channels;
    return (levels_floats((int64_t)channels) + part * device->threads) * sizeof(float);
}

static void largest_by_channel(const cpu_run *r, job *j, float *largest)
{
    const int64_t rows = cpu_elements_of(&r->query->in[0]) / j->channels;
    const int64_t grain = GRAIN / j->channels + 1;
    workers_for(r->device->workers, rows, grain, channel_body, j);
    for (uint32_t k = 1; k < workers_for_ranges(r->device->workers, rows, grain); k++) {
        for (int64_t c = 0; c < j->channels; c++) {
            const float other = j->parts[k * j->part_floats + c];
            largest[c] = other > largest[c] ? other : largest[c];
        }
    }
}

static void run_weights(const cpu_run *r)
{
    const int64_t channels = channels_of(r->query);
    fake_quant_levels *levels = r->workspace;
    job j = {.x = r->in[0],
             .y = r->out[0],
             .type = (hr_dtype)r->query->in[0].dtype,
             .channels = channels,
             .parts = (float *)r->workspace + levels_floats(channels),
             .part_floats = channels < LINE_FLOATS ? LINE_FLOATS : channels,
             .levels = levels};
    if (channels == 1) {
        float range[2];
        range_of(r, j.parts, range);
        levels[0] = fake_quant_of_weights(range[0] > range[1] ? range[0] : range[1]);
    } else {
        largest_by_channel(r, &j, j.parts);
        for (int64_t c = 0; c < channels; c++) {
            levels[c] = fake_quant_of_weights(j.parts[c]);
        }
    }
    workers_for(r->device->workers, cpu_elements_of(&r->query->in[0]), GRAIN, quantize_body, &j);
}

// ---- activations ----------------------------------------------------------------------------------------------

static void run_fake_quant(const cpu_run *r)
{
    const fake_quant_levels levels = fake_quant_of_range(r->in[1]);
    const job j = {.x = r->in[0],
                   .y = r->out[0],
                   .type = (hr_dtype)r->query->in[0].dtype,
                   .channels = 1,
                   .levels = &levels};
    workers_for(r->device->workers, cpu_elements_of(&r->query->in[0]), GRAIN, quantize_body, &j);
}

CPU_HOT static void passing_range(const fake_quant_levels *l, const float *x, const float *dy, float *dx,
                                  int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        dx[i] = x[i] >= l->low && x[i] <= l->high ? dy[i] : 0.0F;
    }
}

static void passing_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    float of_x[PIECE], of_dy[PIECE], to[PIECE];
    (void)worker;
    for (int64_t at = begin; at < end; at += PIECE) {
        const int64_t count = end - at < PIECE ? end - at : PIECE;
        passing_range(j->levels, cast_load(j->x, j->type, at, count, of_x),
                      cast_load(j->dy, j->type, at, count, of_dy), to, count);
        cast_store(j->y, j->type, at, to, count);
    }
}

static void run_fake_quant_bwd(const cpu_run *r)
{
    const fake_quant_levels levels = fake_quant_of_range(r->in[1]);
    const job j = {.x = r->in[0],
                   .dy = r->in[2],
                   .y = r->out[0],
                   .type = (hr_dtype)r->query->out[0].dtype,
                   .levels = &levels};
    workers_for(r->device->workers, cpu_elements_of(&r->query->out[0]), GRAIN, passing_body, &j);
}

// Values and their gradient have one type, whatever the range beside them has.
static bool is_of_one_type(const cpu_device *device, const op_query *q)
{
    (void)device;
    return q->in[0].dtype == q->out[0].dtype && q->in[q->in_count == 3 ? 2 : 0].dtype == q->out[0].dtype;
}

const cpu_impl cpu_track_range = {
    .name = "loops", .types = CPU_ANY_TYPE, .workspace = range_workspace, .run = run_track_range};
const cpu_impl cpu_fake_quant_weights = {
    .name = "loops", .types = CPU_ANY_TYPE, .workspace = weights_workspace, .run = run_weights};
const cpu_impl cpu_fake_quant = {
    .name = "loops", .types = CPU_ANY_TYPE, .fits = is_of_one_type, .run = run_fake_quant};
const cpu_impl cpu_fake_quant_bwd = {
    .name = "loops", .types = CPU_ANY_TYPE, .fits = is_of_one_type, .run = run_fake_quant_bwd};
