// SPDX-License-Identifier: Apache-2.0
// Two bytes element by element. What only passes values on moves their bits; sums of bfloat16 are widened and rounded in
// one look, those of float16 a tile at a time (half.h).
#include "base/half.h"
#include "base/workers.h"
#include "cpu.h"
#include "simd.h"

enum { GRAIN = 16384, SIGN = 0x8000, INFINITE_F16 = 0x7c00, INFINITE_BF16 = 0x7f80 };

typedef struct job {
    const uint16_t *a, *b;
    uint16_t *y;
    uint16_t infinite; // its bits
    bool relu;
    float ceiling;
} job;

// Below zero: the sign is set and it is not a not-a-number, which stays.
CPU_HOT static void relu_range(uint16_t *y, const uint16_t *x, uint16_t infinite, int64_t begin, int64_t end)
{
    const uint16_t lowest = SIGN | infinite;
    for (int64_t i = begin; i < end; i++) {
        const uint16_t bits = x[i];
        y[i] = bits >= SIGN && bits <= lowest ? 0 : bits;
    }
}

// Above zero as a number: bits from 1 to infinity.
CPU_HOT static void relu_bwd_range(uint16_t *dx, const uint16_t *y, const uint16_t *dy, uint16_t infinite,
                                   int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        dx[i] = (uint16_t)(y[i] - 1u) < infinite ? dy[i] : 0;
    }
}

CPU_HOT static void add_range(uint16_t *y, const uint16_t *a, const uint16_t *b, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        y[i] = bf16_of_float(float_of_bf16(a[i]) + float_of_bf16(b[i]));
    }
}

CPU_HOT static void add_relu_range(uint16_t *y, const uint16_t *a, const uint16_t *b, float ceiling,
                                   int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        const float sum = float_of_bf16(a[i]) + float_of_bf16(b[i]);
        y[i] = bf16_of_float(sum < 0.0f ? 0.0f : sum > ceiling ? ceiling : sum);
    }
}

static void relu_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    relu_range(j->y, j->a, j->infinite, begin, end);
}

static void relu_bwd_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    relu_bwd_range(j->y, j->a, j->b, j->infinite, begin, end);
}

static void add_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    if (j->relu) {
        add_relu_range(j->y, j->a, j->b, j->ceiling, begin, end);
    } else {
        add_range(j->y, j->a, j->b, begin, end);
    }
}

static void run(const cpu_run *r, workers_body body)
{
    const op_query *q = r->query;
    const job j = {.a = r->in[0],
                   .b = q->in_count > 1 ? r->in[1] : NULL,
                   .y = r->out[0],
                   .infinite = q->in[0].dtype == HR_F16 ? INFINITE_F16 : INFINITE_BF16,
                   .relu = q->attr.act != HR_ACT_NONE,
                   .ceiling = cpu_ceiling(q->attr.act)};
    workers_for_pieces(r->device->workers, cpu_elements_of(&r->query->out[0]), GRAIN, body, &j);
}

static void run_relu(const cpu_run *r)
{
    run(r, relu_body);
}

static void run_relu_bwd(const cpu_run *r)
{
    run(r, relu_bwd_body);
}

static void run_add(const cpu_run *r)
{
    run(r, add_body);
}

const cpu_impl cpu_relu_half = {.name = "loops", .types = CPU_HALF, .run = run_relu};
const cpu_impl cpu_relu_bwd_half = {.name = "loops", .types = CPU_HALF, .run = run_relu_bwd};
const cpu_impl cpu_add_bf16 = {.name = "loops", .types = CPU_HALF, .fits = cpu_all_bf16, .run = run_add};
