// SPDX-License-Identifier: Apache-2.0
// Optimizers: one launch for as many variables as its arguments take. What changes from update to update is computed here
// in double, as the reference computes it, and read by the kernel from device memory.
#include "update.h"

#include <stdio.h>
#include <string.h>

#include "kernels/update_args.h"
#include "ops/adam.h"
#include "ops/prune.h"

enum { THREADS = 256, PACK_BYTES = 16 };

_Static_assert(sizeof(update_scalars) <= CUDA_SCALAR_BYTES, "scalars of an update");

static void name_of(const op_query *q, char name[CUDA_NAME_MAX])
{
    (void)snprintf(name, CUDA_NAME_MAX, "%s_%s", op_name((hr_op)q->op), cuda_suffix(cuda_type(q)));
}

// Variable, gradient, slots and mask share one type and one number of elements.
static bool is_uniform(const cuda_device *device, const op_query *q)
{
    (void)device;
    const uint32_t mask = update_mask_operand(q), last = mask != 0 ? mask : q->out_count;
    for (uint32_t k = 1; k <= last; k++) {
        if (q->in[k].dtype != q->in[0].dtype || cuda_elements(&q->in[k]) != cuda_elements(&q->in[0])) {
            return false;
        }
    }
    return true;
}

double cuda_kept_of(const op_query *q, const step_io *io)
{
    return 1.0 - io->learning_rate * q->attr.rate;
}

// The first average is the variable itself.
static void fill_scalars(const op_query *q, const step_io *io, unsigned char slot[CUDA_SCALAR_BYTES])
{
    const double momentum = io->update > 1 ? q->attr.momentum : 0.0;
    const adam_step step = q->op == HR_OP_ADAM ? adam_step_of(&q->attr, io->learning_rate, io->update)
                                               : (adam_step){io->learning_rate, q->attr.epsilon};
    const update_scalars s = {.rate = (float)step.rate,
                              .epsilon = (float)step.epsilon,
                              .kept = (float)cuda_kept_of(q, io),
                              .momentum = (float)momentum,
                              .keep = (float)(1.0 - momentum),
                              .masks = update_masks_at(&q->attr, prune_update(io))};
    memcpy(slot, &s, sizeof s);
}

CUdeviceptr cuda_verdict_of(const cuda_run *r)
{
    const uint32_t finite = update_finite_operand(r->query);
    return finite != 0 ? r->in[finite] : 0;
}

// Rates are scalars of each; the rest is one for all.
static bool joins(const cuda_run *first, const cuda_run *next)
{
    const op_attr *a = &first->query->attr, *b = &next->query->attr;
    return cuda_verdict_of(first) == cuda_verdict_of(next) && a->beta1 == b->beta1 && a->beta2 == b->beta2 &&
           a->momentum == b->momentum;
}

static update_item item_of(const cuda_run *r)
{
    update_item item = {.w = (void *)r->in[0],
                        .g = (const void *)r->in[1],
                        .scalars = (const update_scalars *)r->scalars,
                        .count = (int64_t)cuda_elements(&r->query->in[0])};
    const uint32_t mask = update_mask_operand(r->query);
    item.mask = mask != 0 ? (const void *)r->in[mask] : NULL;
    for (uint32_t k = 0; k + 1 < r->query->out_count; k++) {
        item.slot[k] = (void *)r->in[2 + k];
    }
    return item;
}

static hr_status run_group(const cuda_run *runs, uint32_t count, hr_err *err)
{
    const op_query *q = runs->query;
    const op_attr *attr = &q->attr;
    const uint32_t per_thread = PACK_BYTES / (uint32_t)dtype_bytes((hr_dtype)q->in[0].dtype);
    cuda_grid grid = {0};
    update_args a = {.finite = (const int32_t *)cuda_verdict_of(runs),
                     .beta1 = (float)attr->beta1,
                     .beta2 = (float)attr->beta2,
                     .keep1 = (float)(1.0 - attr->beta1),
                     .keep2 = (float)(1.0 - attr->beta2),
                     .momentum = (float)attr->momentum};
    for (uint32_t k = 0; k < count; k++) {
        a.item[k] = item_of(&runs[k]);
        cuda_group_extend(runs->device, &a.blocks, &grid, (uint64_t)a.item[k].count, per_thread, THREADS);
    }
    return cuda_launch(runs, runs->function, grid, &a, sizeof a, err);
}

#define UPDATE(id)                                                                                           \
    {                                                                                                        \
        .op = HR_OP_##id, .types = CUDA_REAL, .name = "fused", .fits = is_uniform, .module = "update",       \
        .kernel = name_of, .scalars = fill_scalars, .joins = joins, .run_group = run_group                   \
    }

static const cuda_impl impls[] = {
    UPDATE(SGD), UPDATE(MOMENTUM), UPDATE(RMSPROP), UPDATE(ADAM), UPDATE(LION), UPDATE(EMA),
};

const cuda_family cuda_family_update = CUDA_FAMILY(impls);
