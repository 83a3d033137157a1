// SPDX-License-Identifier: Apache-2.0
// Pass read: the losses go to the host, each with its weight.
#include "program/draft.h"

static hr_status add_loss_read(draft *d, const model_loss *loss, double weight, hr_err *err)
{
    instr *i = draft_instr(d, &d->instrs, HR_OP_READ,
                           d->mode == PROGRAM_TRAIN ? HR_PHASE_UPDATE : HR_PHASE_FORWARD, HR_NO_ID);
    if (i == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    i->lane = HR_LANE_D2H;
    i->attr.slot = READ_LOSS;
    i->attr.scale = weight;
    i->attr.rule = loss->teaches              ? READ_OF_TEACHER
                   : loss->labels == HR_NO_ID ? READ_OF_LAYER
                                              : READ_OF_LABELS;
    instr_in(i, d->value_tensor[loss->value]);
    return HR_OK;
}

hr_status pass_read(draft *d, hr_err *err)
{
    for (uint32_t k = 0; k < d->model->loss_count; k++) {
        const model_loss *loss = &d->model->losses[k];
        const double weight = d->mode == PROGRAM_TRAIN ? loss->weight : loss->evaluated;
        HR_TRY(weight > 0 ? add_loss_read(d, loss, weight, err) : HR_OK);
    }
    return HR_OK;
}
