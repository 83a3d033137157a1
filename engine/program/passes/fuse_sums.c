// SPDX-License-Identifier: Apache-2.0
// Pass fuse_sums (graph only), behind fuse: a sum beside an instruction whose kernel can add moves into it.
//
//   batch_norm(x), add(y, other)     becomes   batch_norm(x, other)      with the activation that add had
//   dense(x, w), add(y, other)       becomes   dense(x, w, other)        and so its gradient of x, and that of a norm's rows
//   add(a, b), relu_bwd(y, sum)      becomes   relu_bwd(y, a, b)
//
// Each at the place of the first of the two, whose result was there already; what the second reads beside it has to be, too.
// So gradients that reach a tensor on several ways are added in the order they were. The values are the same, bit for bit:
// kernels add to what would have been stored. Products alone add to their float32 sums: in two-byte types a rounding less.
#include "program/draft.h"

enum { GRADIENT = 1, MORE = 2, ANY = 0 }; // operands

// What may stand before a sum: with how many operands at most it has room for another one, and whether it can do the sum's
// activation as well.
static const struct {
    hr_op op;
    uint8_t operands; // exactly; ANY: with or without a bias
    bool acts;
    int32_t flag; // that tells the summand from a bias
} adders[] = {{HR_OP_BATCH_NORM, 5, true, 0},           {HR_OP_BATCH_NORM_APPLY, 5, true, 0},
              {HR_OP_LAYER_NORM_BWD, 5, false, 0},      {HR_OP_RMS_NORM_BWD, 4, false, 0},
              {HR_OP_DENSE, ANY, false, OP_FLAG_ADDED}, {HR_OP_DENSE_BWD_DATA, ANY, false, OP_FLAG_ADDED}};

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

// The flag with which `writer` takes a summand and the sum's activation; -1: it does not.
static int32_t flag_of(const instr *writer, int32_t act)
{
    for (size_t k = 0; k < sizeof adders / sizeof *adders; k++) {
        if (adders[k].op == writer->op && (adders[k].acts || act == HR_ACT_NONE) &&
            (adders[k].operands == ANY || adders[k].operands == writer->in_count) &&
            (writer->attr.flags & adders[k].flag) == 0) {
            return adders[k].flag;
        }
    }
    return -1;
}

static bool add_behind(draft *d, draft_uses *u, const instr *sum, uint32_t k)
{
    const uint32_t y = sum->in[k], other = sum->in[1 - k];
    instr *writer = writer_of(d, u, y);
    const int32_t flag = writer == NULL ? -1 : flag_of(writer, sum->attr.act);
    if (flag < 0 || writer->out[0] != y || writer->attr.act != HR_ACT_NONE ||
        !is_there(u, other, d, writer) || !target_absorbs(d->target, TARGET_ADDS, writer->op)) {
        return false;
    }
    u->writer[sum->out[0]] = u->writer[y];
    writer->attr.act = sum->attr.act;
    writer->attr.flags |= flag;
    writer->out[0] = sum->out[0];
    instr_in(writer, other);
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
