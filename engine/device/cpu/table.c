// SPDX-License-Identifier: Apache-2.0
// Rows out of a table and back into it, and what is repeated over leading dimensions.
#include <string.h>

#include "base/quantize.h"
#include "base/workers.h"
#include "cpu.h"
#include "simd.h"

enum { GRAIN_FLOATS = 16384 };

typedef struct job {
    const int32_t *ids;
    const float *from, *add;
    float *to;
    const char *from_row; // EMBEDDING, of any type
    char *to_row;
    int64_t row_bytes;
    int64_t rows, entries, features;
} job;

static int64_t grain_of(int64_t features)
{
    return features >= GRAIN_FLOATS ? 1 : GRAIN_FLOATS / features;
}

// ---- embedding --------------------------------------------------------------------------------------------

static bool is_entry(const job *j, int64_t row)
{
    return j->ids[row] >= 0 && j->ids[row] < j->entries;
}

static void look_up_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    for (int64_t r = begin; r < end; r++) {
        char *to = j->to_row + r * j->row_bytes;
        if (is_entry(j, r)) {
            memcpy(to, j->from_row + j->ids[r] * j->row_bytes, (size_t)j->row_bytes);
        } else {
            memset(to, 0, (size_t)j->row_bytes);
        }
    }
}

static void run_embedding(const cpu_run *r)
{
    const op_operand *table = &r->query->in[1];
    const int64_t features = table->shape.dim[1];
    const job j = {.ids = r->in[0],
                   .from_row = r->in[1],
                   .to_row = r->out[0],
                   .row_bytes = features * (int64_t)dtype_bytes((hr_dtype)table->dtype),
                   .entries = table->shape.dim[0]};
    workers_for(r->device->workers, cpu_elements_of(&r->query->in[0]), grain_of(features), look_up_body, &j);
}

static bool has_one_type(const cpu_device *device, const op_query *q)
{
    (void)device;
    return q->in[1].dtype == q->out[0].dtype;
}

// ---- embedding of whole numbers ---------------------------------------------------------------------------

CPU_HOT static void widen_group(const uint8_t *restrict q, float scale, int32_t zero, int64_t count,
                                float *restrict to)
{
    uint8_t half[QUANTIZE_BLOCK];
    for (int64_t c = 0; c < (count + 1) / 2; c++) {
        half[2 * c] = q[c] & 0xf;
        half[2 * c + 1] = q[c] >> 4;
    }
    for (int64_t c = 0; c < count; c++) {
        to[c] = (float)((half[c] ^ 8) - 8 - zero) * scale;
    }
}

void cpu_widen_int4(const uint8_t *q, const float *scale, const int8_t *zero, int64_t count, float *to)
{
    for (int64_t c = 0; c < count; c += QUANTIZE_BLOCK) {
        const int64_t left = count - c, here = left < QUANTIZE_BLOCK ? left : QUANTIZE_BLOCK;
        widen_group(q + c / 2, scale[c / QUANTIZE_BLOCK], zero[c / QUANTIZE_BLOCK], here, to + c);
    }
}

// Divided, as Keras has it: to the bit.
CPU_HOT static void divide_row(const int8_t *restrict q, float scale, int64_t count, float *restrict to)
{
    for (int64_t c = 0; c < count; c++) {
        to[c] = (float)q[c] / scale;
    }
}

typedef struct whole_job {
    job of;
    const int8_t *q;
    const float *scale;
    const int8_t *zero; // NULL: int8
} whole_job;

static void look_up_whole_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const whole_job *j = argument;
    const int64_t features = j->of.features, groups = (int64_t)quantize_int4_groups((uint64_t)features);
    (void)worker;
    for (int64_t r = begin; r < end; r++) {
        float *to = j->of.to + r * features;
        const int64_t row = j->of.ids[r];
        if (!is_entry(&j->of, r)) {
            memset(to, 0, (size_t)features * sizeof *to);
        } else if (j->zero == NULL) {
            divide_row(j->q + row * j->of.row_bytes, j->scale[row], features, to);
        } else {
            cpu_widen_int4((const uint8_t *)j->q + row * j->of.row_bytes, j->scale + row * groups,
                           j->zero + row * groups, features, to);
        }
    }
}

static void run_embedding_whole(const cpu_run *r)
{
    const hr_shape *table = &r->query->in[1].shape, *y = &r->query->out[0].shape;
    const whole_job j = {.of = {.ids = r->in[0],
                                .to = r->out[0],
                                .row_bytes = table->dim[1],
                                .entries = table->dim[0],
                                .features = y->dim[y->rank - 1]},
                         .q = r->in[1],
                         .scale = r->in[2],
                         .zero = r->query->in_count > 3 ? r->in[3] : NULL};
    workers_for(r->device->workers, cpu_elements_of(&r->query->in[0]), grain_of(j.of.features),
                look_up_whole_body, &j);
}

// ---- embedding's gradient ---------------------------------------------------------------------------------

static void clear_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    memset(j->to + begin, 0, (size_t)(end - begin) * sizeof *j->to);
}

CPU_HOT static void add_row(float *to, const float *from, int64_t count)
{
    int64_t c = 0;
    for (; c + CPU_LANES <= count; c += CPU_LANES) {
        F32X16W(to + c) += F32X16(from + c);
    }
    for (; c < count; c++) {
        to[c] += from[c];
    }
}

// Every thread adds all rows, in order, to columns of its own: the sum of an entry has one order whatever the
// number of threads, and no entry that is looked up often holds up one of them.
static void scatter_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    for (int64_t r = 0; r < j->rows; r++) {
        if (is_entry(j, r)) {
            add_row(j->to + j->ids[r] * j->features + begin, j->from + r * j->features + begin, end - begin);
        }
    }
}

static void run_embedding_bwd(const cpu_run *r)
{
    const int64_t *table = r->query->out[0].shape.dim;
    const job j = {.ids = r->in[0],
                   .from = r->in[1],
                   .to = r->out[0],
                   .rows = cpu_elements_of(&r->query->in[0]),
                   .entries = table[0],
                   .features = table[1]};
    workers_for(r->device->workers, j.entries * j.features, GRAIN_FLOATS, clear_body, &j);
    workers_for(r->device->workers, j.features, CPU_LANES, scatter_body, &j);
}

// ---- repetition -------------------------------------------------------------------------------------------

CPU_HOT static void add_range(float *to, const float *a, const float *b, int64_t count)
{
    int64_t i = 0;
    for (; i + CPU_LANES <= count; i += CPU_LANES) {
        F32X16W(to + i) = F32X16(a + i) + F32X16(b + i);
    }
    for (; i < count; i++) {
        to[i] = a[i] + b[i];
    }
}

// Stretches of [begin, end) over which the repeated values run on: `features` is their number here.
static void repeat_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    for (int64_t i = begin; i < end;) {
        const int64_t at = i % j->features, left = j->features - at;
        const int64_t count = left < end - i ? left : end - i;
        if (j->from != NULL) {
            add_range(j->to + i, j->from + i, j->add + at, count);
        } else {
            memcpy(j->to + i, j->add + at, (size_t)count * sizeof *j->to);
        }
        i += count;
    }
}

static void run_repeat(const cpu_run *r, const job *j)
{
    workers_for(r->device->workers, cpu_elements_of(&r->query->out[0]), GRAIN_FLOATS, repeat_body, j);
}

static void run_add_broadcast(const cpu_run *r)
{
    const job j = {
        .from = r->in[0], .add = r->in[1], .to = r->out[0], .features = cpu_elements_of(&r->query->in[1])};
    run_repeat(r, &j);
}

static void run_broadcast(const cpu_run *r)
{
    const job j = {.add = r->in[0], .to = r->out[0], .features = cpu_elements_of(&r->query->in[0])};
    run_repeat(r, &j);
}

const cpu_impl cpu_embedding = {
    .name = "rows", .types = CPU_ANY_TYPE, .fits = has_one_type, .run = run_embedding};
const cpu_impl cpu_embedding_whole = {.name = "widened rows", .run = run_embedding_whole};
const cpu_impl cpu_embedding_bwd = {.name = "columns", .run = run_embedding_bwd};
const cpu_impl cpu_add_broadcast = {.name = "loops", .run = run_add_broadcast};
const cpu_impl cpu_broadcast = {.name = "loops", .run = run_broadcast};
