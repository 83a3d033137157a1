// SPDX-License-Identifier: Apache-2.0
// What the losses over rows of logits share. To be inlined into CPU_HOT loops.
#ifndef DEVICE_CPU_ROWS_H
#define DEVICE_CPU_ROWS_H

#include <math.h>

#include "base/workers.h"
#include "cpu.h"
#include "exp.h"
#include "simd.h"

// Floats whose sum is kept in registers of float before it is added in double.
enum { ROWS_CHUNK = 2048, ROWS_GRAIN_FLOATS = 4096 };

typedef struct logits {
    int64_t rows, classes;
} logits;

static inline logits logits_of(const op_operand *t)
{
    const int64_t classes = t->shape.dim[t->shape.rank - 1];
    return (logits){cpu_elements_of(t) / classes, classes};
}

static inline int64_t logits_grain(const logits *l)
{
    return l->classes >= ROWS_GRAIN_FLOATS ? 1 : ROWS_GRAIN_FLOATS / l->classes;
}

// int32, or uint8.
typedef struct labels {
    const void *at;
    bool bytes;
} labels;

static inline labels labels_of(const cpu_run *r)
{
    return (labels){r->in[1], r->query->in[1].dtype == HR_U8};
}

CPU_INLINE int64_t label_at(const labels *l, int64_t row)
{
    return l->bytes ? ((const uint8_t *)l->at)[row] : ((const int32_t *)l->at)[row];
}

// What every gradient of a loss is multiplied with: its weight, and the loss scale where there is one, behind `before`
// inputs.
static inline double gradient_weight(const cpu_run *r, uint32_t before)
{
    const double weight = r->query->attr.scale == 0.0 ? 1.0 : r->query->attr.scale;
    return r->query->in_count > before ? weight * (double)*(const float *)r->in[before] : weight;
}

// A double for every worker.
static inline uint64_t partial_bytes(const cpu_device *device, const op_query *q)
{
    (void)q;
    return device->threads * sizeof(double);
}

// Runs `body` over `items`; the sum of what it leaves in partial, a number for each range.
static inline double sum_ranges(const cpu_run *r, int64_t items, int64_t grain, workers_body body,
                                const void *argument, const double *partial)
{
    double total = 0.0;
    workers_for(r->device->workers, items, grain, body, argument);
    for (uint32_t k = 0; k < workers_for_ranges(r->device->workers, items, grain); k++) {
        total += partial[k];
    }
    return total;
}

CPU_INLINE void larger_lanes(f32x16 *most, const f32x16 *x)
{
    const i32x16 more = *x > *most;
    *most = (f32x16)(((i32x16)*x & more) | ((i32x16)*most & ~more));
}

// The largest value of a row; comparisons with not-a-number do not hold.
CPU_INLINE float row_max(const float *z, int64_t count)
{
    float most = z[0];
    int64_t k = 0;
    if (count >= CPU_LANES) {
        f32x16 lanes[2] = {F32X16(z), F32X16(z)};
        for (; k + 2 * CPU_LANES <= count; k += 2 * CPU_LANES) {
            larger_lanes(&lanes[0], &F32X16(z + k));
            larger_lanes(&lanes[1], &F32X16(z + k + CPU_LANES));
        }
        larger_lanes(&lanes[0], &lanes[1]);
        for (int lane = 0; lane < CPU_LANES; lane++) {
            most = lanes[0][lane] > most ? lanes[0][lane] : most;
        }
    }
    for (; k < count; k++) {
        most = z[k] > most ? z[k] : most;
    }
    return most;
}

CPU_INLINE double sum_lanes(const f32x16 *x)
{
    double sum = 0.0;
    for (int lane = 0; lane < CPU_LANES; lane++) {
        sum += (double)(*x)[lane];
    }
    return sum;
}

// The last values of a row in a vector of their own, `fill` behind them.
CPU_INLINE void load_tail(f32x16 *x, const float *from, int64_t count, float fill)
{
    for (int lane = 0; lane < CPU_LANES; lane++) {
        (*x)[lane] = lane < count ? from[lane] : fill;
    }
}

CPU_INLINE void store_tail(const f32x16 *x, float *to, int64_t count)
{
    for (int lane = 0; lane < CPU_LANES && lane < count; lane++) {
        to[lane] = (*x)[lane];
    }
}

// The sum of exp(z - largest) over at most ROWS_CHUNK logits; left in p, which may be z, unless that is NULL.
CPU_INLINE double exponentials(const float *z, float *p, int64_t count, float largest)
{
    f32x16 sum = {0};
    int64_t k = 0;
    for (; k + CPU_LANES <= count; k += CPU_LANES) {
        f32x16 x = F32X16(z + k) - largest;
        exp_lanes(&x);
        if (p != NULL) {
            F32X16W(p + k) = x;
        }
        sum += x;
    }
    if (k < count) {
        f32x16 x;
        load_tail(&x, z + k, count - k, -INFINITY);
        x -= largest;
        exp_lanes(&x);
        if (p != NULL) {
            store_tail(&x, p + k, count - k);
        }
        sum += x;
    }
    return sum_lanes(&sum);
}

#endif
