// SPDX-License-Identifier: Apache-2.0
// Pass fuse: an activation that is the only reader of an operation's result moves into that operation, where
// the target can do it while the result is still in registers. The intermediate tensor is never born.
#include "program/draft.h"

// The operations that may become an activation.
static const struct {
    hr_op op;
    hr_act act;
} activations[] = {{HR_OP_RELU, HR_ACT_RELU}, {HR_OP_RELU6, HR_ACT_RELU6}};

static hr_act activation_of(hr_op op)
{
    for (size_t k = 0; k < sizeof activations / sizeof activations[0]; k++) {
        if (activations[k].op == op) {
            return activations[k].act;
        }
    }
    return HR_ACT_NONE;
}

bool draft_can_fuse(const draft *d, const draft_uses *u, uint32_t position)
{
    const instr *activation = &d->instrs.data[position];
    if (activation_of(activation->op) == HR_ACT_NONE || d->pytorch || d->tensorflow ||
        hr_knob_is(d->knobs, HR_KNOB_EXECUTION_FUSE, "off")) {
        return false;
    }
    const uint32_t middle = activation->in[0], writer = u->writer[middle];
    if (writer == HR_NO_ID || writer >= position || !draft_is_passing(d, u, middle)) {
        return false;
    }
    const instr *producer = &d->instrs.data[writer];
    return producer->out[0] == middle && producer->attr.act == HR_ACT_NONE &&
           d->target->fuses(d->target->context, producer->op, activation_of(activation->op));
}

hr_status pass_fuse(draft *d, hr_err *err)
{
    draft_uses u;
    HR_TRY(draft_count_uses(d, &u, err));
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        instr *i = &d->instrs.data[n];
        if (draft_can_fuse(d, &u, n)) {
            instr *producer = &d->instrs.data[u.writer[i->in[0]]];
            producer->attr.act = (int32_t)activation_of(i->op);
            producer->out[0] = i->out[0];
            u.writer[i->out[0]] = u.writer[i->in[0]];
            i->op = HR_OP_COUNT;
        }
    }
    draft_close_gaps(d);
    draft_uses_deinit(&u);
    return HR_OK;
}
