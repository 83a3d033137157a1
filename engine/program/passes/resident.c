// SPDX-License-Identifier: Apache-2.0
// Pass resident (pipeline.resident on): a training step copies no batch. The one that lies in the input slots stays there,
// where the program that feeds has put it; nothing else writes them.
#include "program/draft.h"

hr_status pass_resident(draft *d, hr_err *err)
{
    (void)err;
    uint32_t kept = 0;
    if (d->mode != PROGRAM_TRAIN || !hr_knob_is(d->knobs, HR_KNOB_PIPELINE_RESIDENT, "on")) {
        return HR_OK;
    }
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        if (d->instrs.data[n].op != HR_OP_INPUT) {
            d->instrs.data[kept++] = d->instrs.data[n];
        }
    }
    d->instrs.count = kept;
    return HR_OK;
}
