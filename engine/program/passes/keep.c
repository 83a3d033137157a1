// SPDX-License-Identifier: Apache-2.0
// Pass keep: forward tensors that live on for backward are marked `saved`.
//
// eager: by the tape's rules, row by row, whether backward will read them or not (reference tensorflow.md D3); the tape
// records only operations that a variable flows into.
// graph: what backward instructions really read.
#include "program/draft.h"

static void keep_on_tape(draft *d, const instr *i, const bool *watched)
{
    const op_row *row = op_row_of(i->op);
    bool recorded = false;
    for (uint32_t k = 0; k < i->in_count; k++) {
        recorded = recorded || watched[i->in[k]];
    }
    if (!recorded) {
        return;
    }
    for (uint32_t k = 0; k < i->in_count; k++) {
        tensor *t = &d->tensors.data[i->in[k]];
        t->saved |= (row->keep_in >> k & 1) != 0 && !t->dropped;
    }
    for (uint32_t k = 0; k < i->out_count; k++) {
        tensor *t = &d->tensors.data[i->out[k]];
        t->saved |= (row->keep_out >> k & 1) != 0 && !t->dropped;
    }
}

static bool is_model_input(const draft *d, uint32_t tensor_id)
{
    const uint32_t slot = tensor_id - d->first_input;
    return tensor_id >= d->first_input && slot < d->model->slot_count && !d->model->slots[slot].is_label;
}

// In eager mode x lives until the next step whatever the tape records, and is counted among what is saved; where a
// cast alone reads it, the tape's copy is the cast's result.
static void keep_inputs(draft *d)
{
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        for (uint32_t k = 0; i->phase == HR_PHASE_FORWARD && i->op != HR_OP_CAST && k < i->in_count; k++) {
            d->tensors.data[i->in[k]].saved |= is_model_input(d, i->in[k]);
        }
    }
}

hr_status pass_keep(draft *d, hr_err *err)
{
    bool *forward = hr_calloc(d->tensors.count, sizeof *forward);
    bool *watched = hr_calloc(d->tensors.count, sizeof *watched);
    if (forward == NULL || watched == NULL) {
        hr_free(forward);
        hr_free(watched);
        return HR_FAIL(err, NOMEM, "no host memory for %u tensors", d->tensors.count);
    }
    draft_mark_watched(d, watched);
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        const instr *i = &d->instrs.data[n];
        if (i->phase == HR_PHASE_FORWARD && d->eager) {
            keep_on_tape(d, i, watched);
        }
        for (uint32_t k = 0; k < i->out_count; k++) {
            forward[i->out[k]] |= i->phase == HR_PHASE_INPUT || i->phase == HR_PHASE_FORWARD;
        }
        for (uint32_t k = 0; i->phase == HR_PHASE_BACKWARD && !d->eager && k < i->in_count; k++) {
            d->tensors.data[i->in[k]].saved |= forward[i->in[k]];
        }
    }
    if (d->eager) {
        keep_inputs(d);
    }
    hr_free(forward);
    hr_free(watched);
    return HR_OK;
}
