// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>

#include "gemm.h"

enum { GRAIN_FLOPS = 1 << 19 }; // below this a second worker costs more than it brings

typedef struct job {
    const gemm_batch *batch;
    gemm each;
    const float *a, *b;
    float *c, *scratch;
    uint64_t scratch_bytes; // per worker
} job;

static bool is_shared_out(const gemm_batch *g)
{
    return g->outer * g->inner >= (int64_t)workers_count(g->each.workers);
}

// The product as one worker runs it.
static gemm alone(const gemm_batch *g)
{
    gemm each = g->each;
    if (is_shared_out(g)) {
        each.workers = NULL;
    }
    return each;
}

static uint64_t bytes_per_worker(const gemm *each)
{
    return (gemm_scratch_bytes(each) + 63) / 64 * 64;
}

uint64_t gemm_batch_scratch_bytes(const gemm_batch *g)
{
    const gemm each = alone(g);
    return bytes_per_worker(&each) * (is_shared_out(g) ? workers_count(g->each.workers) : 1);
}

static int64_t place(const gemm_batch *g, gemm_steps steps, int64_t item)
{
    return item / g->inner * steps.outer + item % g->inner * steps.inner;
}

static void run_range(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    const gemm_batch *g = j->batch;
    float *scratch = j->scratch + j->scratch_bytes / sizeof(float) * worker;
    for (int64_t i = begin; i < end; i++) {
        const gemm_operands o = {
            .a = j->a + place(g, g->a, i), .b = j->b + place(g, g->b, i), .c = j->c + place(g, g->c, i)};
        gemm_run(&j->each, &o, scratch);
    }
}

void gemm_batch_run(const gemm_batch *g, const float *a, const float *b, float *c, float *scratch)
{
    const int64_t items = g->outer * g->inner;
    job j = {.batch = g, .each = alone(g), .a = a, .b = b, .c = c, .scratch = scratch};
    j.scratch_bytes = bytes_per_worker(&j.each);
    if (is_shared_out(g)) {
        const int64_t flops = 2 * g->each.m * g->each.n * g->each.k;
        workers_for(g->each.workers, items, 1 + GRAIN_FLOPS / flops, run_range, &j);
    } else {
        run_range(&j, 0, items, 0);
    }
}
