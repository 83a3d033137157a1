// SPDX-License-Identifier: Apache-2.0
// Pass retain: the leaks of execution.retain, on purpose (reference tensorflow.md D4).
//
//   losses, predictions   a list that is never emptied: the value lives to the end of the step, where `retain` hands
//                         its bytes to the executor
//   variables             a layer made anew in every step and tracked: fresh weights and optimizer slots of the
//                         model's last layer that has any
//
// What is retained has its category from birth, storage of its own, and no `free`.
#include <string.h>

#include "program/draft.h"

// A round of batch.accumulate leaves its own values behind: the last instruction goes to the end of the loop, if there
// is one.
static void move_into_loop(draft *d)
{
    uint32_t last = d->instrs.count - 1;
    uint32_t end = 0;
    while (end < last && d->instrs.data[end].op != HR_OP_END) {
        end++;
    }
    if (d->instrs.data[last].op != HR_OP_RETAIN) {
        return; // a persistent value needs none
    }
    const instr moved = d->instrs.data[last];
    memmove(&d->instrs.data[end + 1], &d->instrs.data[end], (last - end) * sizeof moved);
    d->instrs.data[end] = moved;
}

static hr_status retain(draft *d, uint32_t id, hr_err *err)
{
    uint32_t owner = draft_owner(d, id);
    if (d->tensors.data[owner].persistent || d->tensors.data[owner].category == HR_CATEGORY_RETAINED) {
        return HR_OK; // it lives on anyway, or another loss judges it too
    }
    instr *i = draft_instr(d, &d->instrs, HR_OP_RETAIN, HR_PHASE_UPDATE, d->tensors.data[owner].layer);
    if (i == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    instr_in(i, owner);
    d->tensors.data[owner].category = HR_CATEGORY_RETAINED;
    return HR_OK;
}

static uint32_t last_trained_layer(const draft *d)
{
    uint32_t layer = HR_NO_ID;
    for (uint32_t k = 0; k < d->model->param_count; k++) {
        layer = d->model->params[k].trainable ? d->model->params[k].layer : layer;
    }
    return layer;
}

static hr_status make_fresh(draft *d, uint32_t like, hr_err *err)
{
    uint32_t id = 0;
    uint32_t layer = d->tensors.data[like].layer;
    op_operand o = tensor_operand(&d->tensors.data[like]);
    const char *name = draft_suffixed(d, d->tensors.data[like].name, "fresh");
    HR_TRY(draft_tensor(d, name, &o, HR_CATEGORY_ACTIVATIONS, layer, &id, err));
    instr *zeros = draft_instr(d, &d->instrs, HR_OP_ZEROS, HR_PHASE_UPDATE, layer);
    if (zeros == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    instr_out(zeros, id);
    return retain(d, id, err);
}

static hr_status retain_variables(draft *d, hr_err *err)
{
    uint32_t layer = last_trained_layer(d);
    for (uint32_t k = 0; k < d->persistent_count; k++) {
        const tensor *t = &d->tensors.data[k];
        bool variable = t->category == HR_CATEGORY_WEIGHTS || t->category == HR_CATEGORY_OPTIMIZER;
        if (variable && t->layer == layer) {
            HR_TRY(make_fresh(d, k, err));
        }
    }
    return HR_OK;
}

hr_status pass_retain(draft *d, hr_err *err)
{
    bool losses = hr_knob_is(d->knobs, HR_KNOB_EXECUTION_RETAIN, "losses");
    bool predictions = hr_knob_is(d->knobs, HR_KNOB_EXECUTION_RETAIN, "predictions");
    if (d->mode != PROGRAM_TRAIN) {
        return HR_OK;
    }
    for (uint32_t k = 0; (losses || predictions) && k < d->model->loss_count; k++) {
        const model_loss *loss = &d->model->losses[k];
        HR_TRY(retain(d, d->value_tensor[losses ? loss->value : loss->prediction], err));
        move_into_loop(d);
    }
    return hr_knob_is(d->knobs, HR_KNOB_EXECUTION_RETAIN, "variables") ? retain_variables(d, err) : HR_OK;
}
