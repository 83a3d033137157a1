// SPDX-License-Identifier: Apache-2.0
// Pass fuse_gelu (graph only), behind fuse_sums: GELU in its tanh form behind a product, and its gradient behind the gradient
// of the next product, move into them.
//
//   dense(x, w) → z, gelu(z) → y              becomes   dense+gelu(x, w) → y, z     z only where something else reads it
//   dense_bwd_data(dy, w) → d, gelu_bwd(z, d)  becomes   dense_bwd_data+gelu(dy, w, z)
//
// What is kept for backward is z as before, and not a byte more. The product's float32 sums are not rounded on the way.
#include "program/draft.h"

enum {
    BEFORE = 0,
    GRADIENT = 1,
    PLAIN_BWD = 2
}; // operands of gelu_bwd; how many those of dense_bwd_data are

static bool is_gelu(const draft *d, const instr *i, hr_op op, hr_op product)
{
    return i->op == op && (i->attr.flags & OP_FLAG_TANH) != 0 &&
           d->target->fuses(d->target->context, product, HR_ACT_GELU);
}

// The plain product that wrote it; NULL: something else did.
static instr *product_of(draft *d, const draft_uses *u, uint32_t made, hr_op op)
{
    instr *p = u->writer[made] == HR_NO_ID ? NULL : &d->instrs.data[u->writer[made]];
    return p != NULL && p->op == op && p->out_count == 1 && p->attr.act == HR_ACT_NONE &&
                   (p->attr.flags & OP_FLAG_ADDED) == 0
               ? p
               : NULL;
}

static bool forward_inside(draft *d, draft_uses *u, const instr *gelu)
{
    const uint32_t before = gelu->in[0];
    instr *dense = product_of(d, u, before, HR_OP_DENSE);
    if (dense == NULL || d->tensors.data[before].persistent) {
        return false;
    }
    const bool alone = draft_is_passing(d, u, before);
    dense->attr.act = HR_ACT_GELU;
    dense->out[0] = gelu->out[0];
    if (!alone) {
        instr_out(dense, before);
    }
    u->writer[gelu->out[0]] = u->writer[before];
    return true;
}

static bool backward_inside(draft *d, draft_uses *u, const instr *gelu)
{
    const uint32_t before = gelu->in[BEFORE], gradient = gelu->in[GRADIENT];
    instr *dense = product_of(d, u, gradient, HR_OP_DENSE_BWD_DATA);
    if (dense == NULL || dense->in_count != PLAIN_BWD || !draft_is_passing(d, u, gradient) ||
        u->writer[before] == HR_NO_ID || u->writer[before] >= u->writer[gradient]) {
        return false;
    }
    dense->attr.act = HR_ACT_GELU;
    dense->out[0] = gelu->out[0];
    instr_in(dense, before);
    u->writer[gelu->out[0]] = u->writer[gradient];
    return true;
}

hr_status pass_fuse_gelu(draft *d, hr_err *err)
{
    draft_uses u;
    if (d->eager || hr_knob_is(d->knobs, HR_KNOB_EXECUTION_FUSE, "off")) {
        return HR_OK;
    }
    HR_TRY(draft_count_uses(d, &u, err));
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        instr *i = &d->instrs.data[n];
        if ((is_gelu(d, i, HR_OP_GELU, HR_OP_DENSE) && forward_inside(d, &u, i)) ||
            (is_gelu(d, i, HR_OP_GELU_BWD, HR_OP_DENSE_BWD_DATA) && backward_inside(d, &u, i))) {
            i->op = HR_OP_COUNT;
        }
    }
    draft_close_gaps(d);
    draft_uses_deinit(&u);
    return HR_OK;
}
