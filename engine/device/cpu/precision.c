// SPDX-License-Identifier: Apache-2.0
// What keeps float16 gradients in range: finite check with its counts, unscaling, loss scale.
#include <math.h>
#include <string.h>

#include "base/workers.h"
#include "cast.h"
#include "cpu.h"
#include "ops/loss_scale.h"
#include "simd.h"

enum { GRAIN = 16384, PIECE = 1024 };

typedef struct counts {
    int64_t flushed, overflowing, strange;
} counts;

typedef struct job {
    void *g;
    hr_dtype type;
    counts *counts; // one per worker
    float factor;
} job;

// Comparisons with a NaN are false, so that what is not at most the largest overflows.
CPU_HOT static void count_range(const float *g, int64_t begin, int64_t end, counts *c)
{
    const float flushed = (float)OP_HALF_FLUSHED, largest = (float)OP_HALF_LARGEST;
    int64_t small = 0, large = 0, strange = 0;
    for (int64_t i = begin; i < end; i++) {
        const float size = fabsf(g[i]);
        small += size > 0.0F && size < flushed;
        large += !(size <= largest);
        strange += !(size <= 3.4028234663852886e38F);
    }
    *c = (counts){c->flushed + small, c->overflowing + large, c->strange + strange};
}

static void count_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    counts *sum = &j->counts[worker];
    float piece[PIECE];
    *sum = (counts){0};
    if (j->type == HR_F32) {
        count_range(j->g, begin, end, sum);
        return;
    }
    for (int64_t i = begin; i < end; i += PIECE) {
        const int64_t count = end - i < PIECE ? end - i : PIECE;
        cast_widen(piece, (const uint16_t *)j->g + i, j->type, count);
        count_range(piece, 0, count, sum);
    }
}

static uint64_t finite_workspace(const cpu_device *device, const op_query *q)
{
    (void)q;
    return device->threads * sizeof(counts);
}

static void run_finite(const cpu_run *r)
{
    const int64_t elements = cpu_elements_of(&r->query->in[0]);
    int32_t *finite = r->out[0];
    float *row = (float *)r->out[1] + 3 * (int64_t)r->query->attr.slot;
    const job j = {.g = r->in[0], .type = (hr_dtype)r->query->in[0].dtype, .counts = r->workspace};
    if (r->query->in_count == 1) {
        memset(r->out[1], 0, (size_t)cpu_elements_of(&r->query->out[1]) * sizeof *row);
        *finite = 1;
    }
    workers_for(r->device->workers, elements, GRAIN, count_body, &j);
    counts sum = j.counts[0];
    for (uint32_t k = 1; k < workers_for_ranges(r->device->workers, elements, GRAIN); k++) {
        sum.flushed += j.counts[k].flushed;
        sum.overflowing += j.counts[k].overflowing;
        sum.strange += j.counts[k].strange;
    }
    row[0] += (float)sum.flushed;
    row[1] += (float)sum.overflowing;
    row[2] += (float)elements;
    *finite &= sum.strange == 0;
}

CPU_HOT static void divide_range(float *g, float scale, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        g[i] /= scale;
    }
}

static void unscale_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)
{
    const job *j = argument;
    (void)worker;
    divide_range(j->g, j->factor, begin, end);
}

static void run_unscale(const cpu_run *r)
{
    const op_attr *a = &r->query->attr;
    const float given = r->query->in_count > 1 ? *(const float *)r->in[1] : 1.0F;
    const job j = {.g = r->in[0], .factor = given * (a->scale == 0 ? 1.0F : (float)a->scale)};
    workers_for(r->device->workers, cpu_elements_of(&r->query->in[0]), GRAIN, unscale_body, &j);
}

static void run_scale_update(const cpu_run *r)
{
    op_scale_update(&r->query->attr, *(const int32_t *)r->in[2] != 0, r->out[0], r->out[1]);
}

const cpu_impl cpu_finite = {
    .name = "loops", .types = CPU_ANY_TYPE, .workspace = finite_workspace, .run = run_finite};
const cpu_impl cpu_unscale = {.name = "loops", .run = run_unscale};
const cpu_impl cpu_scale_update = {.name = "scalar", .run = run_scale_update};
