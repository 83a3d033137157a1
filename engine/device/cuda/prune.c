// SPDX-License-Identifier: Apache-2.0
// Pruning: one launch for as many kernels as its arguments take. Whether an update makes masks, and how many units then stay, are
// scalars of each that the host computes, as it does learning rates: a captured step reads them from device memory.
#include "ops/prune.h"

#include <stdio.h>
#include <string.h>

#include "cuda_device.h"
#include "kernels/prune_args.h"

enum { PACK_BYTES = 16 };

_Static_assert(sizeof(prune_scalars) <= CUDA_SCALAR_BYTES, "scalars of an update");

static void name_of(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "prune_%s", cuda_suffix(cuda_type(q)));
}

static void fill_scalars(const op_query *q, const step_io *io, unsigned char slot[CUDA_SCALAR_BYTES])
{
    const prune_act act = prune_act_at(&q->attr, prune_update(io));
    const bool counts = act == PRUNE_MAKE && q->attr.rule != PRUNE_GROUPS;
    const prune_scalars s = {.kept =
                                 counts ? (int64_t)prune_kept(&q->attr, prune_units(q), prune_update(io)) : 0,
                             .act = (int32_t)act};
    memcpy(slot, &s, sizeof s);
}

static CUdeviceptr verdict_of(const cuda_run *r)
{
    return r->query->in_count > 2 ? r->in[2] : 0;
}

static bool joins(const cuda_run *first, const cuda_run *next)
{
    const op_attr *a = &first->query->attr, *b = &next->query->attr;
    return verdict_of(first) == verdict_of(next) && a->rule == b->rule && a->kernel_h == b->kernel_h &&
           a->kernel_w == b->kernel_w;
}

static prune_item item_of(const cuda_run *r)
{
    const op_attr *a = &r->query->attr;
    const hr_shape *w = &r->query->in[0].shape;
    prune_item item = {.w = (void *)r->in[0],
                       .mask = (void *)r->in[1],
                       .scalars = (const prune_scalars *)r->scalars,
                       .count = (int64_t)cuda_elements(&r->query->in[0]),
                       .side = a->rule == PRUNE_BLOCKS ? w->dim[1] : w->dim[a->axis],
                       .step = prune_axis_step(r->query)};
    return item;
}

static hr_status run_group(const cuda_run *runs, uint32_t count, hr_err *err)
{
    const op_query *q = runs->query;
    const uint32_t per_thread = PACK_BYTES / (uint32_t)dtype_bytes((hr_dtype)q->in[0].dtype);
    cuda_grid grid = {0};
    prune_args a = {.finite = (const int32_t *)verdict_of(runs),
                    .rule = q->attr.rule,
                    .height = q->attr.kernel_h,
                    .width = q->attr.kernel_w};
    for (uint32_t k = 0; k < count; k++) {
        a.item[k] = item_of(&runs[k]);
        cuda_group_extend(runs->device, &a.blocks, &grid, (uint64_t)a.item[k].count, per_thread,
                          PRUNE_THREADS);
    }
    return cuda_launch(runs, runs->function, grid, &a, sizeof a, err);
}

static void channels_name(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "prune_channels_%s", cuda_suffix(cuda_type(q)));
}

static hr_status run_channels(const cuda_run *r, hr_err *err)
{
    const op_query *q = r->query;
    const prune_channels_args a = {.w = (void *)r->in[0],
                                   .mask = (const void *)r->in[1],
                                   .count = (int64_t)cuda_elements(&q->in[0]),
                                   .last = q->in[0].shape.dim[q->in[0].shape.rank - 1],
                                   .pitch = q->attr.stride_w,
                                   .offset = q->attr.offset,
                                   .each = q->attr.count,
                                   .filters = q->in[1].shape.dim[q->attr.axis],
                                   .step = prune_axis_step(q)};
    return cuda_launch(r, r->function, cuda_grid_over(r->device, cuda_elements(&q->in[0]), 4, PRUNE_THREADS),
                       &a, sizeof a, err);
}

static const cuda_impl impls[] = {{.op = HR_OP_PRUNE,
                                   .types = CUDA_REAL,
                                   .name = "counted",
                                   .module = "prune",
                                   .kernel = name_of,
                                   .scalars = fill_scalars,
                                   .joins = joins,
                                   .run_group = run_group},
                                  {.op = HR_OP_PRUNE_CHANNELS,
                                   .types = CUDA_REAL,
                                   .name = "plain",
                                   .module = "prune",
                                   .kernel = channels_name,
                                   .run = run_channels}};

const cuda_family cuda_family_prune = CUDA_FAMILY(impls);
