// SPDX-License-Identifier: Apache-2.0
// Weights to whole numbers: of a dense layer a scale for each column, of a table (OP_FLAG_TRANSPOSE) for each row.
#include "base/quantize.h"

#include <math.h>

#include "base/workers.h"
#include "cpu.h"
#include "simd.h"

enum { QUANTIZE_GRAIN = 16, ROW_GRAIN = 4096 };

typedef struct quantize_job {
    const float *w;
    void *q;
    float *scale;
    int8_t *zero;
    int64_t rows, columns;
} quantize_job;

// quantize_larger of each lane.
CPU_INLINE void raise_lanes(f32x16 *largest, const f32x16 *values)
{
    const i32x16 had = (i32x16)*largest, size = (i32x16)*values & INT32_MAX, higher = size > had;
    *largest = (f32x16)((size & higher) | (had & ~higher));
}

// To the nearest; what is no number is the least, as in base/quantize.c.
CPU_INLINE int32_t whole(float x)
{
    const float nearest = __builtin_rintf(x);
    return (int32_t)(nearest > -127.0F ? nearest : -127.0F);
}

// No product stands before a sum here: nothing may be contracted, so that the bits are those of base/quantize.c.
CPU_HOT static void int8_columns(const quantize_job *shared, int64_t begin, int64_t end)
{
    const quantize_job j = *shared;
    int8_t *q = j.q;
    for (int64_t c = begin; c < end; c++) {
        j.scale[c] = 0;
    }
    for (int64_t r = 0; r < j.rows; r++) {
        const float *w = j.w + r * j.columns;
        int64_t c = begin;
        for (; c + CPU_LANES <= end; c += CPU_LANES) {
            raise_lanes(&F32X16W(j.scale + c), &F32X16(w + c));
        }
        for (; c < end; c++) {
            j.scale[c] = quantize_larger(j.scale[c], w[c]);
        }
    }
    for (int64_t c = begin; c < end; c++) {
        j.scale[c] = quantize_int8_scale(j.scale[c]);
    }
    for (int64_t r = 0; r < j.rows; r++) {
        const float *w = j.w + r * j.columns;
        for (int64_t c = begin; c < end; c++) {
            q[r * j.columns + c] = (int8_t)whole(w[c] * j.scale[c]);
        }
    }
}

static void int8_columns_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    int8_columns(argument, begin, end);
}

static quantize_job quantize_job_of(const cpu_run *r)
{
    return (quantize_job){.w = r->in[0],
                          .q = r->out[0],
                          .scale = r->out[1],
                          .zero = r->query->out_count > 2 ? r->out[2] : NULL,
                          .rows = r->query->in[0].shape.dim[0],
                          .columns = r->query->in[0].shape.dim[1]};
}

// Rows of a table are read twice while they are near.
CPU_HOT static void int8_rows(const quantize_job *shared, int64_t begin, int64_t end)
{
    const quantize_job j = *shared;
    for (int64_t r = begin; r < end; r++) {
        const float *w = j.w + r * j.columns;
        int8_t *q = (int8_t *)j.q + r * j.columns;
        f32x16 lanes = {0};
        float largest = 0;
        int64_t c = 0;
        for (; c + CPU_LANES <= j.columns; c += CPU_LANES) {
            raise_lanes(&lanes, &F32X16(w + c));
        }
        for (; c < j.columns; c++) {
            largest = quantize_larger(largest, w[c]);
        }
        for (int64_t k = 0; k < CPU_LANES; k++) {
            largest = quantize_larger(largest, lanes[k]);
        }
        const float scale = j.scale[r] = quantize_int8_scale(largest);
        for (c = 0; c < j.columns; c++) {
            q[c] = (int8_t)whole(w[c] * scale);
        }
    }
}

static void int8_rows_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    (void)worker;
    int8_rows(argument, begin, end);
}

static bool is_turned(const op_query *q)
{
    return (q->attr.flags & OP_FLAG_TRANSPOSE) != 0;
}

// Rows of a table that one worker takes at a time.
static int64_t row_grain(int64_t columns)
{
    return columns >= ROW_GRAIN ? 1 : ROW_GRAIN / columns;
}

static void run_quantize_int8(const cpu_run *r)
{
    const quantize_job j = quantize_job_of(r);
    if (is_turned(r->query)) {
        workers_for_pieces(r->device->workers, j.rows, row_grain(j.columns), int8_rows_body, &j);
        return;
    }
    workers_for_pieces(r->device->workers, j.columns, QUANTIZE_GRAIN, int8_columns_body, &j);
}

static void int4_groups_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const quantize_job *j = argument;
    const int64_t first = begin * QUANTIZE_BLOCK;
    const int64_t last = end * QUANTIZE_BLOCK < j->rows ? end * QUANTIZE_BLOCK : j->rows;
    const int64_t pitch = (int64_t)quantize_int4_pitch((uint64_t)j->columns);
    (void)worker;
    quantize_int4(j->w + first * j->columns, (uint64_t)(last - first), (uint64_t)j->columns,
                  (uint8_t *)j->q + first * pitch, j->scale + begin * j->columns,
                  j->zero + begin * j->columns);
}

static void int4_rows_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const quantize_job *j = argument;
    const int64_t pitch = (int64_t)quantize_int4_pitch((uint64_t)j->columns);
    const int64_t groups = (int64_t)quantize_int4_groups((uint64_t)j->columns);
    (void)worker;
    quantize_int4_rows(j->w + begin * j->columns, (uint64_t)(end - begin), (uint64_t)j->columns,
                       (uint8_t *)j->q + begin * pitch, j->scale + begin * groups, j->zero + begin * groups);
}

static void run_quantize_int4(const cpu_run *r)
{
    const quantize_job j = quantize_job_of(r);
    if (is_turned(r->query)) {
        workers_for_pieces(r->device->workers, j.rows, row_grain(j.columns), int4_rows_body, &j);
        return;
    }
    workers_for_pieces(r->device->workers, (int64_t)quantize_int4_groups((uint64_t)j.rows), 1,
                       int4_groups_body, &j);
}

const cpu_impl cpu_quantize_int8 = {.name = "columns", .run = run_quantize_int8};
const cpu_impl cpu_quantize_int4 = {.name = "groups", .run = run_quantize_int4};
