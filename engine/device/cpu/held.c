// SPDX-License-Identifier: Apache-2.0
// Weights that are held as whole numbers, as the type that is computed in (ops/held.h). Nothing is added to a product here: the bits are those
// of base/quantize.c and base/nf4.c.
#include "ops/held.h"

#include "base/nf4.h"
#include "base/quantize.h"
#include "base/workers.h"
#include "cast.h"
#include "cpu.h"
#include "simd.h"

enum { PIECE = 1024, GRAIN_ELEMENTS = 4096 };

// Of nf4 a row is a piece.
typedef struct job {
    const cpu_run *r;
    int64_t rows, columns, count;
} job;

CPU_HOT static void from_int8(const job *shared, int64_t row, int64_t at, int64_t count, float *to)
{
    const job j = *shared;
    const int8_t *q = (const int8_t *)j.r->in[0] + row * j.columns + at;
    const float *scale = (const float *)j.r->in[1] + at;
    for (int64_t c = 0; c < count; c++) {
        to[c] = (float)q[c] / scale[c];
    }
}

CPU_HOT static void from_int4(const job *shared, int64_t row, int64_t at, int64_t count, float *to)
{
    const job j = *shared;
    const int64_t pitch = (int64_t)quantize_int4_pitch((uint64_t)j.columns);
    const int64_t group = row / QUANTIZE_BLOCK * j.columns + at, pairs = count / 2;
    const uint8_t *q = (const uint8_t *)j.r->in[0] + row * pitch + at / 2;
    const float *scale = (const float *)j.r->in[1] + group;
    const int8_t *zero = (const int8_t *)j.r->in[2] + group;
    for (int64_t c = 0; c < pairs; c++) {
        const int low = q[c] & 0xf, high = q[c] >> 4;
        to[2 * c] = (float)((low ^ 8) - 8 - zero[2 * c]) * scale[2 * c];
        to[2 * c + 1] = (float)((high ^ 8) - 8 - zero[2 * c + 1]) * scale[2 * c + 1];
    }
    if (count % 2 == 1) {
        const int64_t c = count - 1;
        to[c] = (float)(quantize_int4_at(q, (uint64_t)c) - zero[c]) * scale[c];
    }
}

CPU_HOT static void from_nf4(const job *shared, int64_t row, int64_t at, int64_t count, float *to)
{
    const job j = *shared;
    const int64_t first = row * j.columns + at;
    const uint8_t *q = j.r->in[0];
    const float *scale = j.r->in[1];
    for (int64_t k = 0; k < count; k++) {
        to[k] = nf4_levels[nf4_at(q, (uint64_t)(first + k))] * scale[(first + k) / NF4_BLOCK];
    }
}

static void rows_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    static void (*const from[HELD_COUNT])(const job *, int64_t, int64_t, int64_t, float *) = {
        [HELD_INT8] = from_int8, [HELD_INT4] = from_int4, [HELD_NF4] = from_nf4};
    const job *j = argument;
    const hr_dtype type = (hr_dtype)j->r->query->out[0].dtype;
    float piece[PIECE];
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        for (int64_t at = 0; at < j->columns; at += PIECE) {
            const int64_t first = row * j->columns + at, width = j->columns - at, left = j->count - first;
            const int64_t most = width < left ? width : left, count = most < PIECE ? most : PIECE;
            float *to = type == HR_F32 ? (float *)j->r->out[0] + first : piece;
            from[j->r->query->attr.rule](j, row, at, count, to);
            if (type != HR_F32) {
                cast_store(j->r->out[0], type, first, piece, count);
            }
        }
    }
}

static void run(const cpu_run *r)
{
    const hr_shape *shape = &r->query->out[0].shape;
    const bool nf4 = r->query->attr.rule == HELD_NF4;
    job j = {.r = r,
             .columns = nf4 ? PIECE : shape->dim[shape->rank - 1],
             .count = cpu_elements_of(&r->query->out[0])};
    j.rows = (j.count + j.columns - 1) / j.columns;
    const int64_t grain = GRAIN_ELEMENTS / j.columns;
    workers_for_pieces(r->device->workers, j.rows, grain > 1 ? grain : 1, rows_body, &j);
}

const cpu_impl cpu_dequantize = {.name = "rows", .types = CPU_ANY_TYPE, .run = run};
