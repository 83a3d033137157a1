// SPDX-License-Identifier: Apache-2.0
// Pass fuse_norms (graph only), behind fuse_sums: the only reader of a normalised tensor normalises it while reading, so that it
// is neither written nor held.
//
//   batch_norm(x) → y;  batch_norm(z, y)     becomes   batch_norm_statistics(x);  batch_norm(z, x, …)    y a summand
//   batch_norm(x) → y;  max_pool(y)          becomes   batch_norm_statistics(x);  max_pool(x, …)
//
// and where the statistics are there already (batch_norm_apply, batch_norm_eval) nothing is left of the first. Backward the
// gradient behind a pooling is made where it is read:
//
//   max_pool_bwd_index(index, dp) → dy;  batch_norm_bwd(x, dy)     becomes   batch_norm_bwd(x, dp, index)
//
// x lives until the reader has read it, as long as y did, and is as large. The values are the same, bit for bit: what is
// read is rounded as it would have been stored.
#include "program/draft.h"

enum { OPERANDS = 5, SUMMAND = 5, DY = 1 }; // of a normalisation; operands

static bool normalises(hr_op op)
{
    return op == HR_OP_BATCH_NORM || op == HR_OP_BATCH_NORM_APPLY || op == HR_OP_BATCH_NORM_EVAL;
}

// The operand that `reader` could normalise itself; -1: none.
static int readable_operand(const instr *reader)
{
    const bool sum = reader->op == HR_OP_BATCH_NORM || reader->op == HR_OP_BATCH_NORM_APPLY;
    return reader->op == HR_OP_MAX_POOL && reader->in_count == 1 ? 0
           : sum && reader->in_count == SUMMAND + 1              ? SUMMAND
                                                                 : -1;
}

// One epsilon has to do for both, and an activation that is the reader's own stands behind the sum.
static bool may_read_through(const draft *d, const instr *norm, const instr *reader)
{
    const bool sum = reader->op != HR_OP_MAX_POOL;
    return norm->in_count == OPERANDS && norm->phase == reader->phase &&
           (!sum || (norm->attr.act == HR_ACT_NONE && norm->attr.epsilon == reader->attr.epsilon)) &&
           d->tensors.data[norm->in[0]].dtype == d->tensors.data[norm->out[0]].dtype;
}

static void read_through(draft *d, const draft_uses *u, instr *reader)
{
    const int k = readable_operand(reader);
    if (k < 0 || !target_absorbs(d->target, TARGET_NORMALISES, reader->op) ||
        u->writer[reader->in[k]] == HR_NO_ID || !draft_is_passing(d, u, reader->in[k])) {
        return;
    }
    instr *norm = &d->instrs.data[u->writer[reader->in[k]]];
    if (norm >= reader || !normalises(norm->op) || !may_read_through(d, norm, reader)) {
        return;
    }
    const instr whole = *norm;
    const bool counts = whole.op == HR_OP_BATCH_NORM;
    reader->in[k] = whole.in[0];
    instr_in(reader, whole.in[1]);
    instr_in(reader, whole.in[2]);
    instr_in(reader, counts ? whole.out[1] : whole.in[3]);
    instr_in(reader, counts ? whole.out[2] : whole.in[4]);
    if (reader->op == HR_OP_MAX_POOL) {
        reader->attr.act = whole.attr.act;
        reader->attr.epsilon = whole.attr.epsilon;
    }
    norm->op = HR_OP_COUNT;
    if (counts) {
        norm->op = HR_OP_BATCH_NORM_STATISTICS;
        norm->attr.act = HR_ACT_NONE;
        norm->in_count = norm->out_count = 0;
        instr_in(norm, whole.in[0]);
        instr_in(norm, whole.in[3]);
        instr_in(norm, whole.in[4]);
        instr_out(norm, whole.out[1]);
        instr_out(norm, whole.out[2]);
    }
}

static void unpool_inside(draft *d, const draft_uses *u, instr *gradient)
{
    if (gradient->op != HR_OP_BATCH_NORM_BWD || gradient->in_count != OPERANDS ||
        !target_absorbs(d->target, TARGET_UNPOOLS, gradient->op)) {
        return;
    }
    const uint32_t dy = gradient->in[DY];
    if (u->writer[dy] == HR_NO_ID || !draft_is_passing(d, u, dy)) {
        return;
    }
    instr *pool = &d->instrs.data[u->writer[dy]];
    const tensor *pooled = &d->tensors.data[pool->in[1]];
    if (pool->op != HR_OP_MAX_POOL_BWD_INDEX || pooled->dtype != d->tensors.data[gradient->in[0]].dtype ||
        pooled->bytes ==
            d->tensors.data[dy].bytes) { // dx may lie on dy of its size, which would be gathered from
        return;
    }
    op_attr attr = pool->attr;
    attr.act = HR_ACT_NONE;
    attr.epsilon = gradient->attr.epsilon;
    attr.momentum = gradient->attr.momentum;
    gradient->attr = attr;
    gradient->in[DY] = pool->in[1];
    instr_in(gradient, pool->in[0]);
    pool->op = HR_OP_COUNT;
}

hr_status pass_fuse_norms(draft *d, hr_err *err)
{
    draft_uses u;
    if (d->eager || hr_knob_is(d->knobs, HR_KNOB_EXECUTION_FUSE, "off")) {
        return HR_OK;
    }
    HR_TRY(draft_count_uses(d, &u, err));
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        read_through(d, &u, &d->instrs.data[n]);
        unpool_inside(d, &u, &d->instrs.data[n]);
    }
    draft_close_gaps(d);
    draft_uses_deinit(&u);
    return HR_OK;
}
