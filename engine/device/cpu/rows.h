// SPDX-License-Identifier: Apache-2.0
// What the losses over rows of logits share. To be inlined into CPU_HOT loops.
#ifndef DEVICE_CPU_ROWS_H
#define DEVICE_CPU_ROWS_H

#include <math.h>

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

// What every gradient of a loss is multiplied with: its weight, and the loss scale where there is one.
static inline double gradient_weight(const cpu_run *r)
{
    const double weight = r->query->attr.scale == 0.0 ? 1.0 : r->query->attr.scale;
    return r->query->in_count > 2 ? weight * (double)*(const float *)r->in[2] : weight;
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

#endif
