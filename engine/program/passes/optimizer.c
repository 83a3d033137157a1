// SPDX-License-Identifier: Apache-2.0
// Pass 5, optimizer: one update per trainable variable in canonical order, then the loss is read.
#include <string.h>

#include "program/draft.h"

static hr_op update_op(const draft *d)
{
    if (hr_knob_is(d->knobs, HR_KNOB_OPTIMIZER_KIND, "adam")) {
        return HR_OP_ADAM;
    }
    return hr_knob_is(d->knobs, HR_KNOB_OPTIMIZER_KIND, "momentum") ? HR_OP_MOMENTUM : HR_OP_SGD;
}

static hr_status add_update(draft *d, hr_op op, uint32_t variable, uint32_t first_slot, hr_err *err)
{
    instr *i = draft_instr(d, &d->instrs, op, HR_PHASE_UPDATE, d->tensors.data[variable].layer);
    if (i == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    i->attr.momentum = op == HR_OP_MOMENTUM ? hr_knob_real(d->knobs, HR_KNOB_OPTIMIZER_MOMENTUM) : 0;
    i->attr.beta1 = 0.9;
    i->attr.beta2 = 0.999;
    i->attr.epsilon = 1e-7;
    instr_in(i, variable);
    instr_in(i, d->gradient[variable]);
    instr_out(i, variable);
    unsigned slots = op_row_of(op)->max_out - 1u;
    for (unsigned s = 0; s < slots; s++) {
        instr_in(i, first_slot + s);
        instr_out(i, first_slot + s);
    }
    return HR_OK;
}

static hr_status add_loss_read(draft *d, const model_loss *loss, hr_err *err)
{
    instr *i = draft_instr(d, &d->instrs, HR_OP_READ,
                           d->mode == PROGRAM_TRAIN ? HR_PHASE_UPDATE : HR_PHASE_FORWARD, HR_NO_ID);
    if (i == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    i->lane = HR_LANE_D2H;
    i->attr.slot = READ_LOSS;
    i->attr.scale = loss->weight;
    instr_in(i, d->value_tensor[loss->value]);
    return HR_OK;
}

static uint32_t first_slot_tensor(const draft *d)
{
    uint32_t k = 0;
    while (k < d->persistent_count && d->tensors.data[k].category != HR_CATEGORY_OPTIMIZER) {
        k++;
    }
    return k;
}

hr_status pass_optimizer(draft *d, hr_err *err)
{
    hr_op op = update_op(d);
    uint32_t slot = first_slot_tensor(d);
    for (uint32_t k = 0; d->mode == PROGRAM_TRAIN && k < d->model->param_count; k++) {
        uint32_t variable = d->param_tensor[k];
        if (!d->model->params[k].trainable) {
            continue;
        }
        if (d->gradient[variable] != HR_NO_ID) {
            HR_TRY(add_update(d, op, variable, slot, err));
        }
        slot += op_row_of(op)->max_out - 1u;
    }
    for (uint32_t k = 0; k < d->model->loss_count; k++) {
        HR_TRY(add_loss_read(d, &d->model->losses[k], err));
    }
    return HR_OK;
}
