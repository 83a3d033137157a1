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

// Index of the instruction that writes each tensor and how many read it.
typedef struct uses {
    uint32_t *writer, *readers;
} uses;

static bool count_uses(const draft *d, uses *u)
{
    u->writer = hr_calloc(d->tensors.count, sizeof *u->writer);
    u->readers = hr_calloc(d->tensors.count, sizeof *u->readers);
    if (u->writer == NULL || u->readers == NULL) {
        return false;
    }
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        for (uint32_t k = 0; k < i->in_count; k++) {
            u->readers[i->in[k]]++;
        }
        for (uint32_t k = 0; k < i->out_count; k++) {
            u->writer[i->out[k]] = n;
        }
    }
    return true;
}

static bool can_fuse(const draft *d, const uses *u, const instr *activation, uint32_t position)
{
    uint32_t middle = activation->in[0];
    const instr *producer = &d->instrs.data[u->writer[middle]];
    const tensor *t = &d->tensors.data[middle];
    return u->writer[middle] < position && producer->out_count > 0 && producer->out[0] == middle &&
           u->readers[middle] == 1 && !t->persistent && !t->saved && producer->attr.act == HR_ACT_NONE &&
           d->target->fuses(d->target->context, producer->op, activation_of(activation->op));
}

hr_status pass_fuse(draft *d, hr_err *err)
{
    uses u = {NULL, NULL};
    if (hr_knob_is(d->knobs, HR_KNOB_EXECUTION_FUSE, "off")) {
        return HR_OK;
    }
    if (!count_uses(d, &u)) {
        hr_free(u.writer);
        hr_free(u.readers);
        return HR_FAIL(err, NOMEM, "no host memory for the uses of %u tensors", d->tensors.count);
    }
    uint32_t kept = 0;
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        instr i = d->instrs.data[n];
        if (activation_of(i.op) != HR_ACT_NONE && can_fuse(d, &u, &i, kept)) {
            instr *producer = &d->instrs.data[u.writer[i.in[0]]];
            producer->attr.act = activation_of(i.op);
            producer->out[0] = i.out[0];
            u.writer[i.out[0]] = u.writer[i.in[0]];
            continue;
        }
        for (uint32_t k = 0; k < i.out_count; k++) {
            u.writer[i.out[k]] = kept;
        }
        d->instrs.data[kept++] = i;
    }
    d->instrs.count = kept;
    hr_free(u.writer);
    hr_free(u.readers);
    return HR_OK;
}
