// SPDX-License-Identifier: Apache-2.0
// Softmax over the last dimension and its gradient, a row at a time: both may run in place.
#include <math.h>
#include <string.h>

#include "base/workers.h"
#include "cpu.h"
#include "exp.h"
#include "simd.h"

enum { GRAIN_ELEMENTS = 8192, RUN_FLOATS = 1024 }; // sums of a run are added in double

typedef struct job {
    const float *x, *dy; // backward: x is y
    float *out;
    int64_t rows, columns; // of one matrix
    int64_t first;         // number of its first row: of a part of a matrix, attr.offset
    bool causal;
} job;

CPU_INLINE float largest_of(const float *x, int64_t count)
{
    f32x16 most;
    int64_t i = 0;
    float largest = x[0];
    if (count >= CPU_LANES) {
        most = F32X16(x);
        for (i = CPU_LANES; i + CPU_LANES <= count; i += CPU_LANES) {
            const f32x16 v = F32X16(x + i);
            const i32x16 more = v > most;
            most = (f32x16)(((i32x16)v & more) | ((i32x16)most & ~more));
        }
        for (int k = 0; k < CPU_LANES; k++) {
            largest = most[k] > largest ? most[k] : largest;
        }
    }
    for (; i < count; i++) {
        largest = x[i] > largest ? x[i] : largest;
    }
    return largest;
}

// y = exp(x - largest); returns the sum of at most RUN_FLOATS of them.
CPU_INLINE double exponentials(float *y, const float *x, float largest, int64_t count)
{
    f32x16 sum = {0};
    double total = 0.0;
    int64_t i = 0;
    for (; i + CPU_LANES <= count; i += CPU_LANES) {
        f32x16 v = F32X16(x + i) - largest;
        exp_lanes(&v);
        F32X16W(y + i) = v;
        sum += v;
    }
    if (i < count) { // the rest with lanes that vanish behind it
        float rest[CPU_LANES];
        for (int k = 0; k < CPU_LANES; k++) {
            rest[k] = i + k < count ? x[i + k] - largest : -INFINITY;
        }
        f32x16 v = F32X16(rest);
        exp_lanes(&v);
        sum += v;
        memcpy(y + i, &v, (size_t)(count - i) * sizeof *y);
    }
    for (int k = 0; k < CPU_LANES; k++) {
        total += (double)sum[k];
    }
    return total;
}

CPU_HOT static void softmax_row(float *y, const float *x, int64_t count)
{
    const float largest = largest_of(x, count);
    double sum = 0.0;
    for (int64_t i = 0; i < count; i += RUN_FLOATS) {
        sum += exponentials(y + i, x + i, largest, count - i < RUN_FLOATS ? count - i : RUN_FLOATS);
    }
    const float inverse = (float)(1.0 / sum);
    for (int64_t i = 0; i < count; i++) {
        y[i] *= inverse;
    }
}

CPU_INLINE double dot_run(const float *a, const float *b, int64_t count)
{
    f32x16 sum = {0};
    double total = 0.0;
    int64_t i = 0;
    for (; i + CPU_LANES <= count; i += CPU_LANES) {
        sum += F32X16(a + i) * F32X16(b + i);
    }
    for (; i < count; i++) {
        total += (double)a[i] * (double)b[i];
    }
    for (int k = 0; k < CPU_LANES; k++) {
        total += (double)sum[k];
    }
    return total;
}

CPU_HOT static void softmax_bwd_row(float *dx, const float *y, const float *dy, int64_t count)
{
    double sum = 0.0;
    for (int64_t i = 0; i < count; i += RUN_FLOATS) {
        sum += dot_run(y + i, dy + i, count - i < RUN_FLOATS ? count - i : RUN_FLOATS);
    }
    const float mean = (float)sum;
    for (int64_t i = 0; i < count; i++) {
        dx[i] = y[i] * (dy[i] - mean);
    }
}

static int64_t seen(const job *j, int64_t row)
{
    const int64_t i = j->first + row % j->rows;
    return j->causal && i + 1 < j->columns ? i + 1 : j->columns;
}

static void softmax_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        const int64_t count = seen(j, row);
        float *out = j->out + row * j->columns;
        if (j->dy == NULL) {
            softmax_row(out, j->x + row * j->columns, count);
        } else {
            softmax_bwd_row(out, j->x + row * j->columns, j->dy + row * j->columns, count);
        }
        memset(out + count, 0, (size_t)(j->columns - count) * sizeof *out);
    }
}

static void run_rows(const cpu_run *r)
{
    const op_operand *x = &r->query->in[0];
    const int64_t columns = x->shape.dim[x->shape.rank - 1], grain = GRAIN_ELEMENTS / columns;
    const job j = {.x = r->in[0],
                   .dy = r->query->in_count > 1 ? r->in[1] : NULL,
                   .out = r->out[0],
                   .rows = x->shape.rank > 1 ? x->shape.dim[x->shape.rank - 2] : 1,
                   .columns = columns,
                   .first = r->query->attr.offset,
                   .causal = (r->query->attr.flags & OP_FLAG_CAUSAL) != 0};
    workers_for_pieces(r->device->workers, cpu_elements_of(x) / columns, grain < 1 ? 1 : grain, softmax_body,
                       &j);
}

const cpu_impl cpu_softmax = {.name = "loops", .run = run_rows};
const cpu_impl cpu_softmax_bwd = {.name = "loops", .run = run_rows};
