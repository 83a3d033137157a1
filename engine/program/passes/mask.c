// SPDX-License-Identifier: Apache-2.0
// Pass mask (graph only): the gradient of a ReLU in front of a max pooling is taken on the pooled side.
//
//   max_pool_bwd_index, relu_bwd(y)   becomes   relu_bwd(pooled y), max_pool_bwd_index
//
// The gradient behind the pooling is zero except where the index points, and there y is the pooled value: the same
// bits, on a quarter of the elements for a 2x2 window, and y need not be kept for backward.
#include <string.h>

#include "program/draft.h"

// pool_of[index of a pooling]: the instruction that wrote it, HR_NO_ID for other tensors.
static void find_pools(const draft *d, uint32_t *pool_of)
{
    memset(pool_of, 0xff, d->tensors.count * sizeof *pool_of);
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        if (i->op == HR_OP_MAX_POOL && i->out_count == 2) {
            pool_of[i->out[1]] = n;
        }
    }
}

// Is `mask` the ReLU's gradient taken right behind the gradient of the pooling that read the ReLU's result?
static const instr *pool_behind_relu(const draft *d, const uint32_t *pool_of, const instr *pool_bwd,
                                     const instr *mask)
{
    if (pool_bwd->op != HR_OP_MAX_POOL_BWD_INDEX || mask->op != HR_OP_RELU_BWD ||
        mask->in[1] != pool_bwd->out[0]) {
        return NULL;
    }
    const uint32_t n = pool_of[pool_bwd->in[0]];
    return n != HR_NO_ID && d->instrs.data[n].in[0] == mask->in[0] ? &d->instrs.data[n] : NULL;
}

static hr_status swap(draft *d, uint32_t n, const instr *pool, hr_err *err)
{
    instr pool_bwd = d->instrs.data[n];
    instr mask = d->instrs.data[n + 1];
    const tensor *pooled_gradient = &d->tensors.data[pool_bwd.in[1]];
    op_operand o = tensor_operand(pooled_gradient);
    const char *name = draft_suffixed(d, pooled_gradient->name, "masked");
    uint32_t masked = 0;
    uint32_t pooled = pool->out[0];
    HR_TRY(draft_tensor(d, name, &o, HR_CATEGORY_ACTIVATIONS, pool_bwd.layer, &masked, err));
    mask.in[0] = pooled;
    mask.in[1] = pool_bwd.in[1];
    pool_bwd.in[1] = masked;
    pool_bwd.out[0] = mask.out[0];
    mask.out[0] = masked;
    d->instrs.data[n] = mask;
    d->instrs.data[n + 1] = pool_bwd;
    return HR_OK;
}

static hr_status swap_all(draft *d, const uint32_t *pool_of, hr_err *err)
{
    for (uint32_t n = 0; n + 1 < d->instrs.count; n++) {
        const instr *pool = pool_behind_relu(d, pool_of, &d->instrs.data[n], &d->instrs.data[n + 1]);
        if (pool != NULL) {
            HR_TRY(swap(d, n, pool, err));
        }
    }
    return HR_OK;
}

hr_status pass_mask(draft *d, hr_err *err)
{
    if (d->eager) {
        return HR_OK;
    }
    uint32_t *pool_of = hr_calloc(d->tensors.count, sizeof *pool_of);
    hr_status status = HR_OK;
    if (pool_of == NULL) {
        status = HR_FAIL(err, NOMEM, "no host memory for the poolings among %u tensors", d->tensors.count);
    } else {
        find_pools(d, pool_of);
        status = swap_all(d, pool_of, err);
    }
    hr_free(pool_of);
    return status;
}
