// SPDX-License-Identifier: Apache-2.0
// Pass fuse_cuts (graph only), behind fuse: the gradient of a ReLU in front of the gradient of its normalisation moves into
// it.
//
//   relu_bwd(y, dy), batch_norm_bwd(x, cut dy)     becomes   batch_norm_bwd(x, dy, beta) with the activation
//
// What the ReLU let through is made again from x, which is read anyway: y and the cut gradient are not read, and not
// written. Where more than x made y, or another instruction reads the cut gradient as well,
//
//   relu_bwd(y, a[, b]) → dy, batch_norm_bwd(x, dy)     becomes   batch_norm_bwd(x, a, y[, b]) → …, dy
//
// so that dy is written and read once less. The values are the same, bit for bit.
#include "program/draft.h"

enum { BETA_OF_FORWARD = 2, OPERANDS = 5, CUT_OPERANDS = 2 };

static hr_act act_of(const instr *gradient)
{
    return gradient->op == HR_OP_RELU_BWD    ? HR_ACT_RELU
           : gradient->op == HR_OP_RELU6_BWD ? HR_ACT_RELU6
                                             : HR_ACT_NONE;
}

// Does `norm`, with the activation behind it, make what `gradient` is the gradient of?
static bool is_forward_of(const instr *norm, const instr *gradient, hr_act act)
{
    const bool again = norm->op == HR_OP_BATCH_NORM_APPLY;
    if ((norm->op != HR_OP_BATCH_NORM && !again) || norm->in_count != OPERANDS ||
        norm->attr.act != (int32_t)act) {
        return false;
    }
    const uint32_t mean = again ? norm->in[3] : norm->out[1], variance = again ? norm->in[4] : norm->out[2];
    return norm->in[0] == gradient->in[0] && norm->in[1] == gradient->in[2] && mean == gradient->in[3] &&
           variance == gradient->in[4];
}

// A tensor's reader in backward, by its id.
static void count_late(const draft *d, uint32_t *late)
{
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        for (uint32_t k = 0; i->phase == HR_PHASE_BACKWARD && k < i->in_count; k++) {
            late[i->in[k]]++;
        }
    }
}

static void cut_inside(draft *d, const draft_uses *u, uint32_t *late, instr *gradient)
{
    const uint32_t middle = gradient->in[1];
    if (gradient->op != HR_OP_BATCH_NORM_BWD || gradient->in_count != OPERANDS ||
        !draft_is_passing(d, u, middle) || u->writer[middle] == HR_NO_ID ||
        !target_absorbs(d->target, TARGET_CUTS, gradient->op)) {
        return;
    }
    instr *cut = &d->instrs.data[u->writer[middle]];
    const hr_act act = act_of(cut);
    const uint32_t y = cut->in[0];
    if (act == HR_ACT_NONE || cut->in_count != CUT_OPERANDS || u->writer[y] == HR_NO_ID ||
        !is_forward_of(&d->instrs.data[u->writer[y]], gradient, act)) {
        return;
    }
    gradient->in[1] = cut->in[1];
    gradient->attr.act = (int32_t)act;
    instr_in(gradient, d->instrs.data[u->writer[y]].in[BETA_OF_FORWARD]);
    cut->op = HR_OP_COUNT;
    d->tensors.data[y].saved &= --late[y] > 0; // it may have been kept for this gradient alone
}

static bool are_of_one_type(const draft *d, const instr *cut, uint32_t x)
{
    bool one = d->tensors.data[cut->out[0]].dtype == d->tensors.data[x].dtype;
    for (uint32_t k = 0; k < cut->in_count; k++) {
        one = one && d->tensors.data[cut->in[k]].dtype == d->tensors.data[x].dtype;
    }
    return one;
}

static bool is_first_reader(const draft *d, uint32_t tensor_id, uint32_t writer, uint32_t reader)
{
    for (uint32_t n = writer + 1; n < reader; n++) {
        const instr *i = &d->instrs.data[n];
        for (uint32_t k = 0; k < i->in_count; k++) {
            if (i->in[k] == tensor_id) {
                return false;
            }
        }
    }
    return true;
}

static void gate_inside(draft *d, draft_uses *u, uint32_t at)
{
    instr *gradient = &d->instrs.data[at];
    const uint32_t middle = gradient->in[1], writer = u->writer[middle];
    if (gradient->op != HR_OP_BATCH_NORM_BWD || gradient->in_count != OPERANDS || writer == HR_NO_ID ||
        writer >= at || !target_absorbs(d->target, TARGET_GATES, gradient->op)) {
        return;
    }
    instr *cut = &d->instrs.data[writer];
    const tensor *t = &d->tensors.data[middle];
    const hr_act act = act_of(cut);
    if (act == HR_ACT_NONE || t->persistent || t->saved || !are_of_one_type(d, cut, gradient->in[0]) ||
        !is_first_reader(d, middle, writer, at)) {
        return;
    }
    gradient->attr.act = (int32_t)act;
    gradient->in[1] = cut->in[1];
    instr_in(gradient, cut->in[0]);
    if (cut->in_count > CUT_OPERANDS) {
        instr_in(gradient, cut->in[CUT_OPERANDS]);
    }
    instr_out(gradient, middle);
    u->writer[middle] = at;
    cut->op = HR_OP_COUNT;
}

hr_status pass_fuse_cuts(draft *d, hr_err *err)
{
    draft_uses u;
    if (d->eager || hr_knob_is(d->knobs, HR_KNOB_EXECUTION_FUSE, "off")) {
        return HR_OK;
    }
    HR_TRY(draft_count_uses(d, &u, err));
    uint32_t *late = hr_calloc(d->tensors.count, sizeof *late);
    if (late != NULL) {
        count_late(d, late);
        for (uint32_t n = 0; n < d->instrs.count; n++) {
            cut_inside(d, &u, late, &d->instrs.data[n]);
            gate_inside(d, &u, n);
        }
        draft_close_gaps(d);
    }
    draft_uses_deinit(&u);
    const bool enough = late != NULL;
    hr_free(late);
    return enough ? HR_OK
                  : HR_FAIL(err, NOMEM, "no host memory for the readers of %u tensors", d->tensors.count);
}
