// SPDX-License-Identifier: Apache-2.0
// Pass fuse_loss (graph only): a streaming loss and its gradient are one instruction, where the target's kernel makes both
// while a row of logits is near:
//
//   streaming(logits, labels) → max, rsum, loss;  streaming_bwd(logits, labels, max, rsum) → dlogits
//   becomes   with_gradient(logits, labels) → dlogits, loss
//
// at the place of the second, so that no row is read from memory twice. The values are the same, bit for bit.
#include "program/draft.h"

enum { MAX = 0, RSUM = 1, LOSS = 2, SCALE = 4 }; // results of the one, operands of the other

static bool is_gradient_of(const instr *i, const instr *loss)
{
    return i->op == HR_OP_SOFTMAX_XENT_STREAM_BWD && i->in[0] == loss->in[0] && i->in[1] == loss->in[1] &&
           i->in[2] == loss->out[MAX] && i->in[3] == loss->out[RSUM];
}

static bool reads(const instr *i, uint32_t tensor_id)
{
    for (uint32_t k = 0; k < i->in_count; k++) {
        if (i->in[k] == tensor_id) {
            return true;
        }
    }
    return false;
}

// Behind instruction n; NULL where there is none, or the loss is read before it.
static instr *gradient_behind(draft *d, uint32_t n)
{
    const instr *loss = &d->instrs.data[n];
    for (uint32_t k = n + 1; k < d->instrs.count; k++) {
        instr *i = &d->instrs.data[k];
        if (is_gradient_of(i, loss)) {
            return i;
        }
        if (reads(i, loss->out[LOSS])) {
            return NULL;
        }
    }
    return NULL;
}

static void fuse(draft *d, const draft_uses *u, uint32_t n)
{
    instr *loss = &d->instrs.data[n];
    instr *gradient = gradient_behind(d, n);
    if (gradient == NULL || u->readers[loss->out[MAX]] != 1 || u->readers[loss->out[RSUM]] != 1) {
        return;
    }
    const bool scaled = gradient->in_count > SCALE;
    gradient->op = HR_OP_SOFTMAX_XENT_GRADIENT;
    gradient->in[2] = gradient->in[SCALE];
    gradient->in_count = scaled ? 3 : 2;
    instr_out(gradient, loss->out[LOSS]);
    loss->op = HR_OP_COUNT;
}

hr_status pass_fuse_loss(draft *d, hr_err *err)
{
    draft_uses u;
    if (d->eager || hr_knob_is(d->knobs, HR_KNOB_EXECUTION_FUSE, "off") ||
        !target_absorbs(d->target, TARGET_GRADIENT, HR_OP_SOFTMAX_XENT_STREAM)) {
        return HR_OK;
    }
    HR_TRY(draft_count_uses(d, &u, err));
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        if (d->instrs.data[n].op == HR_OP_SOFTMAX_XENT_STREAM) {
            fuse(d, &u, n);
        }
    }
    draft_close_gaps(d);
    draft_uses_deinit(&u);
    return HR_OK;
}
