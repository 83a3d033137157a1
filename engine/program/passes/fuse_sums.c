// SPDX-License-Identifier: Apache-2.0
// Pass fuse_sums (graph only), behind fuse: a sum beside an instruction whose kernel can add moves into it.
//
//   batch_norm(x), add(y, other)     becomes   batch_norm(x, other)      with the activation that add had
//   add(a, b), relu_bwd(y, sum)      becomes   relu_bwd(y, a, b)
//
// Each at the place of the first of the two, whose result was there already; what the second reads beside it has to be, too.
// The values are the same, bit for bit: kernels add to what would have been stored.
#include "program/draft.h"

enum { SUMMAND = 5, GRADIENT = 1, MORE = 2 }; // operands

static bool is_plain_sum(const instr *i)
{
    return i->op == HR_OP_ADD && i->in_count == 2;
}

// The instruction behind which `middle` waits for its one reader; NULL when there is more to it.
static instr *writer_of(draft *d, const draft_uses *u, uint32_t middle)
{
    const uint32_t n = u->writer[middle];
    return n == HR_NO_ID || !draft_is_passing(d, u, middle) ? NULL : &d->instrs.data[n];
}

static bool is_there(const draft_uses *u, uint32_t tensor_id, const draft *d, const instr *at)
{
    const uint32_t n = u->writer[tensor_id];
    return d->tensors.data[tensor_id].persistent || (n != HR_NO_ID && &d->instrs.data[n] < at);
}

static bool add_behind(draft *d, draft_uses *u, const instr *sum, uint32_t k)
{
    const uint32_t y = sum->in[k], other = sum->in[1 - k];
    instr *norm = writer_of(d, u, y);
    if (norm == NULL || (norm->op != HR_OP_BATCH_NORM && norm->op != HR_OP_BATCH_NORM_APPLY) ||
        norm->out[0] != y || norm->in_count != SUMMAND || norm->attr.act != HR_ACT_NONE ||
        !is_there(u, other, d, norm) || !target_absorbs(d->target, TARGET_ADDS, norm->op)) {
        return false;
    }
    u->writer[sum->out[0]] = u->writer[y];
    norm->attr.act = sum->attr.act;
    norm->out[0] = sum->out[0];
    instr_in(norm, other);
    return true;
}

static bool add_before(draft *d, draft_uses *u, const instr *gradient)
{
    instr *sum = writer_of(d, u, gradient->in[GRADIENT]);
    if (sum == NULL || !is_plain_sum(sum) || gradient->in_count != MORE || sum->attr.act != HR_ACT_NONE ||
        !is_there(u, gradient->in[0], d, sum) || !target_absorbs(d->target, TARGET_ADDS, gradient->op)) {
        return false;
    }
    instr whole = *gradient;
    whole.in[GRADIENT] = sum->in[0];
    instr_in(&whole, sum->in[1]);
    u->writer[gradient->out[0]] = u->writer[gradient->in[GRADIENT]];
    *sum = whole;
    return true;
}

static bool absorb(draft *d, draft_uses *u, const instr *i)
{
    if (is_plain_sum(i)) {
        return add_behind(d, u, i, 1) || add_behind(d, u, i, 0);
    }
    return (i->op == HR_OP_RELU_BWD || i->op == HR_OP_RELU6_BWD) && add_before(d, u, i);
}

hr_status pass_fuse_sums(draft *d, hr_err *err)
{
    draft_uses u;
    if (d->eager || hr_knob_is(d->knobs, HR_KNOB_EXECUTION_FUSE, "off")) {
        return HR_OK;
    }
    HR_TRY(draft_count_uses(d, &u, err));
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        if (absorb(d, &u, &d->instrs.data[n])) {
            d->instrs.data[n].op = HR_OP_COUNT;
        }
    }
    draft_close_gaps(d);
    draft_uses_deinit(&u);
    return HR_OK;
}
