// SPDX-License-Identifier: Apache-2.0
// A forward instruction that runs again in backward.
#include "program/checkpoint_again.h"

uint32_t draft_self(const draft *d, const draft_again *a, uint32_t id)
{
    return d->tensors.data[id].dropped && a->self[id] != HR_NO_ID ? a->self[id] : id;
}

static hr_status second_self(draft *d, const draft_again *a, uint32_t id, uint32_t *out, hr_err *err)
{
    const tensor first = d->tensors.data[id];
    const op_operand o = tensor_operand(&first);
    const char *name = draft_suffixed(d, first.name, "again");
    HR_TRY(draft_tensor(d, name, &o, first.category, first.layer, out, err));
    if (first.storage != id) {
        const uint32_t source = first.storage;
        const bool moved = d->tensors.data[source].dropped && a->self[source] != HR_NO_ID;
        d->tensors.data[*out].storage = moved ? a->self[source] : source;
    }
    if (a->gone == NULL || a->gone[id]) {
        a->self[id] = *out;
    }
    return HR_OK;
}

hr_op draft_op_again(hr_op op)
{
    return op == HR_OP_BATCH_NORM ? HR_OP_BATCH_NORM_APPLY : op;
}

static void apply_statistics(instr *i, const instr *first)
{
    i->in[3] = first->out[1];
    i->in[4] = first->out[2];
    i->out_count = 1;
}

hr_status draft_run_again(draft *d, uint32_t n, const draft_again *a, instr_list *list, hr_err *err)
{
    const instr first = d->instrs.data[n];
    instr *i = draft_instr(d, list, first.op, HR_PHASE_BACKWARD, first.layer);
    if (i == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    const uint32_t id = i->id;
    *i = first;
    i->id = id;
    i->phase = HR_PHASE_BACKWARD;
    i->again = true;
    i->serves = first.id;
    i->op = draft_op_again(first.op);
    if (first.op == HR_OP_BATCH_NORM) {
        apply_statistics(i, &first);
    }
    for (uint32_t k = 0; k < i->in_count; k++) {
        i->in[k] = draft_self(d, a, i->in[k]);
    }
    for (uint32_t k = 0; k < i->out_count; k++) {
        HR_TRY(second_self(d, a, first.out[k], &i->out[k], err));
    }
    return HR_OK;
}
