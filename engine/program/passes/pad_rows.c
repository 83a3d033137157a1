// SPDX-License-Identifier: Apache-2.0
// Pass pad_rows (graph only, part of execution.fuse): logits over a vocabulary whose rows are no multiple of sixteen bytes, and their gradient, are
// laid in rows that are, where all that write and read them take them so. GPT-2's 50,257 become rows of 50,304.
//
// Activations alone: a weight's rows are as long as the layer is wide, and weights stay as people know them.
#include "program/draft.h"

enum { LEAST_COLUMNS = 1024, ROW_ALIGNMENT = 16 }; // shorter rows would be padding for a large part

static bool may_pad(const tensor *t, uint32_t id)
{
    const hr_shape *s = &t->shape;
    const int64_t columns = s->rank < 2 ? 0 : s->dim[s->rank - 1];
    return t->category == HR_CATEGORY_ACTIVATIONS && !t->persistent && t->storage == id &&
           t->layout == HR_LAYOUT_PLAIN && dtype_is_real(t->dtype) && columns >= LEAST_COLUMNS &&
           columns * (int64_t)dtype_bytes(t->dtype) % ROW_ALIGNMENT != 0;
}

// Lays what may be padded so; whether there is any.
static bool pad_all(draft *d)
{
    bool any = false;
    for (uint32_t k = d->persistent_count; k < d->tensors.count; k++) {
        tensor *t = &d->tensors.data[k];
        t->layout = may_pad(t, k) ? HR_LAYOUT_PADDED : t->layout;
        any |= t->layout == HR_LAYOUT_PADDED;
    }
    for (uint32_t k = d->persistent_count; k < d->tensors.count; k++) {
        const uint32_t owner = draft_owner(d, k);
        if (owner != k && d->tensors.data[owner].layout == HR_LAYOUT_PADDED) { // a view sees plain rows
            d->tensors.data[owner].layout = HR_LAYOUT_PLAIN;
        }
    }
    return any;
}

static tensor *operand_of(draft *d, const instr *i, uint32_t k)
{
    return &d->tensors.data[k < i->in_count ? i->in[k] : i->out[k - i->in_count]];
}

// Takes the padding back from operands that this instruction does not take so; whether there were any.
static bool refuse(draft *d, const instr *i)
{
    const uint32_t operands = (uint32_t)i->in_count + i->out_count;
    bool padded = false;
    for (uint32_t k = 0; k < operands; k++) {
        padded |= operand_of(d, i, k)->layout == HR_LAYOUT_PADDED;
    }
    if (!padded) {
        return false;
    }
    op_query q;
    draft_query(d, i, &q);
    if (d->target->pads_rows(d->target->context, &q)) {
        return false;
    }
    for (uint32_t k = 0; k < operands; k++) {
        tensor *t = operand_of(d, i, k);
        t->layout = t->layout == HR_LAYOUT_PADDED ? HR_LAYOUT_PLAIN : t->layout;
    }
    return true;
}

hr_status pass_pad_rows(draft *d, hr_err *err)
{
    if (d->eager || hr_knob_is(d->knobs, HR_KNOB_EXECUTION_FUSE, "off") || d->target->pads_rows == NULL ||
        !pad_all(d)) {
        return HR_OK;
    }
    for (bool refused = true; refused;) {
        refused = false;
        for (uint32_t n = 0; n < d->instrs.count; n++) {
            refused |= refuse(d, &d->instrs.data[n]);
        }
    }
    for (uint32_t k = d->persistent_count; k < d->tensors.count; k++) {
        if (d->tensors.data[k].layout == HR_LAYOUT_PADDED) {
            HR_TRY(draft_measure(&d->tensors.data[k], err));
        }
    }
    return HR_OK;
}
