// SPDX-License-Identifier: Apache-2.0
// Pass dequantize, behind keep: weights that are held as whole numbers (compress.lora_base) become real numbers in front of each
// instruction that reads them, forward and backward, and go behind it. No tape keeps them: backward makes them again, as bitsandbytes
// does. They have the type that is computed in from the start.
#include "program/draft.h"

// [tensors] the parameter that a tensor stands for, HR_NO_ID
static uint32_t *stand_ins(const draft *d)
{
    uint32_t *param = hr_calloc(d->tensors.count, sizeof *param);
    for (uint32_t k = 0; param != NULL && k < d->tensors.count; k++) {
        param[k] = HR_NO_ID;
    }
    for (uint32_t k = 0; param != NULL && k < d->model->param_count; k++) {
        if (d->first_part[k] != HR_NO_ID) {
            param[d->param_tensor[k]] = k;
        }
    }
    return param;
}

static hr_status make_real(draft *d, instr_list *list, const instr *reader, uint32_t param, uint32_t *id,
                           hr_err *err)
{
    const tensor *stand_in = &d->tensors.data[d->param_tensor[param]];
    const op_operand o = tensor_operand(stand_in);
    held_parts parts;
    held_parts_of(&stand_in->shape, d->model->params[param].held, &parts);
    HR_TRY(draft_tensor(d, stand_in->name, &o, HR_CATEGORY_TEMPORARIES, stand_in->layer, id, err));
    instr *i = draft_instr(d, list, HR_OP_DEQUANTIZE, (hr_phase)reader->phase, reader->layer);
    if (i == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    i->attr.rule = (int32_t)d->model->params[param].held;
    for (uint32_t k = 0; k < parts.count; k++) {
        instr_in(i, d->first_part[param] + k);
    }
    instr_out(i, *id);
    return HR_OK;
}

static hr_status place(draft *d, instr_list *list, const uint32_t *param, uint32_t count, instr i,
                       hr_err *err)
{
    for (uint32_t k = 0; k < i.in_count; k++) {
        if (i.in[k] < count && param[i.in[k]] != HR_NO_ID) {
            HR_TRY(make_real(d, list, &i, param[i.in[k]], &i.in[k], err));
        }
    }
    instr *placed = vec_push(list);
    if (placed == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    *placed = i;
    return HR_OK;
}

static bool holds_any(const draft *d)
{
    bool any = false;
    for (uint32_t k = 0; k < d->model->param_count && !any; k++) {
        any = d->first_part[k] != HR_NO_ID;
    }
    return any;
}

hr_status pass_dequantize(draft *d, hr_err *err)
{
    if (!holds_any(d)) {
        return HR_OK;
    }
    const uint32_t count = d->tensors.count;
    uint32_t *param = stand_ins(d);
    if (param == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the weights of %u tensors", count);
    }
    instr_list list = {NULL, 0, 0};
    hr_status status = HR_OK;
    for (uint32_t n = 0; n < d->instrs.count && status == HR_OK; n++) {
        status = place(d, &list, param, count, d->instrs.data[n], err);
    }
    for (uint32_t k = 0; k < count; k++) {
        d->tensors.data[k].bytes *= param[k] == HR_NO_ID; // what stood for them is never born
    }
    hr_free(param);
    vec_deinit(&d->instrs);
    d->instrs = list;
    return status;
}
