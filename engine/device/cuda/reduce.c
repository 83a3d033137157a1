// SPDX-License-Identifier: Apache-2.0
// Which way a sum over axes goes (kernels/reduce.cu), and into how many parts: enough for the card to be busy.
#include <stdio.h>

#include "headroom/units.h"

#include "base/host_mem.h"
#include "combine.h"
#include "kernels/reduce_args.h"

enum {
    PACK_BYTES = 16,
    WARP_THREADS = 32,
    SHORT_MIDDLE = 32,  // one thread sums it
    BUSY_THREADS = 512, // of a multiprocessor: with as many sums nothing is shared
    BUSY_BLOCKS = 4,    // of a multiprocessor
    LEAST_TURNS = 4,    // of a thread that sums a part
    MOST_PARTS = 512
};

typedef enum way { FLAT, COLUMNS, ROWS } way;

typedef struct reduce_plan {
    way way;
    cuda_around around;
    int64_t lanes, columns, across, tiles, parts, chunk;
} reduce_plan;

static int64_t quotient_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// The middle in as many parts as keep the card busy, of `step` places a turn of a block.
static void cut(reduce_plan *p, int64_t blocks, int64_t wanted_blocks, int64_t step)
{
    const int64_t useful = p->around.middle / (step * LEAST_TURNS);
    const int64_t parts = least(least(wanted_blocks / blocks, useful), MOST_PARTS);
    p->chunk = quotient_up(quotient_up(p->around.middle, parts < 1 ? 1 : parts), p->lanes) * p->lanes;
    p->parts = quotient_up(p->around.middle, p->chunk);
}

static void plan_rows(reduce_plan *p, int64_t processors)
{
    const int64_t warps = REDUCE_THREADS / WARP_THREADS;
    p->way = ROWS;
    cut(p, quotient_up(p->around.outer, warps), processors * BUSY_BLOCKS, WARP_THREADS * p->lanes);
}

static void plan_columns(reduce_plan *p, int64_t processors)
{
    p->way = COLUMNS;
    while (p->across < p->columns && p->across < WARP_THREADS) {
        p->across *= 2;
    }
    p->tiles = quotient_up(p->columns, p->across);
    const int64_t lanes = p->lanes;
    p->lanes = 1; // a part is cut between any two rows
    cut(p, p->around.outer * p->tiles, processors * BUSY_BLOCKS, REDUCE_THREADS / p->across);
    p->lanes = lanes;
}

static reduce_plan plan_of(const cuda_device *device, const op_query *q)
{
    const int64_t processors = cuda_device_traits(device)->multiprocessors;
    const int64_t vector = PACK_BYTES / (int64_t)dtype_bytes((hr_dtype)q->in[0].dtype);
    reduce_plan p = {.around = cuda_around_axes(&q->in[0].shape, q->attr.axis, q->attr.count)};
    const bool along = p.around.inner == 1 && p.around.middle > SHORT_MIDDLE;
    p.lanes = (along ? p.around.middle : p.around.inner) % vector == 0 ? vector : 1;
    p.columns = along ? 1 : p.around.inner / p.lanes;
    p.across = p.tiles = p.parts = 1;
    p.chunk = p.around.middle;
    if (along) {
        plan_rows(&p, processors);
    } else if (p.around.middle > SHORT_MIDDLE && p.around.outer * p.columns < processors * BUSY_THREADS) {
        plan_columns(&p, processors);
    }
    return p;
}

// Which kernel it is depends on the card, not on the query alone.
typedef struct reduce_state {
    reduce_plan plan;
    CUfunction sums, parts;
} reduce_state;

uint64_t cuda_reduce_workspace(const cuda_device *device, const op_query *q)
{
    const reduce_plan p = plan_of(device, q);
    return p.parts == 1 ? 0 : (uint64_t)(p.parts * p.around.outer * p.around.inner) * sizeof(float);
}

static hr_status find_kernels(cuda_device *device, const op_query *q, reduce_state *s, hr_err *err)
{
    static const char *const ways[] = {[FLAT] = "flat", [COLUMNS] = "columns", [ROWS] = "rows"};
    char name[CUDA_NAME_MAX];
    const char *suffix = cuda_suffix(cuda_type(q));
    (void)snprintf(name, sizeof name, "reduce_%s_%s_%s", ways[s->plan.way],
                   s->plan.lanes > 1 ? "wide" : "narrow", suffix);
    HR_TRY(cuda_function(device, "reduce", name, &s->sums, err));
    (void)snprintf(name, sizeof name, "reduce_parts_%s", suffix);
    return cuda_function(device, "reduce", name, &s->parts, err);
}

hr_status cuda_reduce_prepare(cuda_device *device, const program *p, const instr *i, const op_query *q,
                              uint64_t workspace_bytes, void **state, hr_err *err)
{
    (void)p, (void)i, (void)workspace_bytes;
    reduce_state *s = hr_calloc(1, sizeof *s);
    if (s == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the plan of a sum");
    }
    s->plan = plan_of(device, q);
    const hr_status status = find_kernels(device, q, s, err);
    if (status != HR_OK) {
        hr_free(s);
        return status;
    }
    *state = s;
    return HR_OK;
}

void cuda_reduce_release(cuda_device *device, void *state)
{
    (void)device;
    hr_free(state);
}

static cuda_grid grid_of(const cuda_run *r, const reduce_plan *p)
{
    const int64_t threads = p->way == FLAT   ? p->around.outer * p->columns
                            : p->way == ROWS ? p->around.outer * WARP_THREADS
                                             : p->around.outer * p->tiles * REDUCE_THREADS;
    cuda_grid grid = cuda_grid_over(r->device, (uint64_t)threads, 1, REDUCE_THREADS);
    grid.blocks_y = (uint32_t)p->parts;
    return grid;
}

hr_status cuda_reduce_run(const cuda_run *r, hr_err *err)
{
    const reduce_state *s = r->state;
    const reduce_plan *p = &s->plan;
    const float share = cuda_share_of(&r->query->attr, p->around.middle);
    const reduce_args a = {.in = (const void *)r->in[0],
                           .times = r->query->in_count > 1 ? (const void *)r->in[1] : NULL,
                           .out = (void *)r->out[0],
                           .parts = p->parts > 1 ? (float *)r->workspace : NULL,
                           .outer = p->around.outer,
                           .middle = p->around.middle,
                           .chunk = p->chunk,
                           .columns = divisor_of(p->columns),
                           .tiles = divisor_of(p->tiles),
                           .across = (uint32_t)p->across,
                           .share = share};
    HR_TRY(cuda_launch(r, s->sums, grid_of(r, p), &a, sizeof a, err));
    if (p->parts == 1) {
        return HR_OK;
    }
    const reduce_parts_args b = {.parts = (const float *)r->workspace,
                                 .out = (void *)r->out[0],
                                 .count = p->around.outer * p->around.inner,
                                 .part_count = (int32_t)p->parts,
                                 .share = share};
    return cuda_launch(r, s->parts, cuda_grid_over(r->device, (uint64_t)b.count, 1, REDUCE_THREADS), &b,
                       sizeof b, err);
}
