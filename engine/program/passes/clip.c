// SPDX-License-Identifier: Apache-2.0
// Pass clip, before the optimizer: with optimizer.clip_norm the squares of all gradients are summed, and every gradient is scaled so that
// the norm of all of them is at most that. The scaled ones take the place of the gradients for the passes behind.
#include "program/draft.h"

static bool has_gradient(const draft *d, uint32_t param)
{
    return d->model->params[param].trainable && d->gradient[d->param_tensor[param]] != HR_NO_ID;
}

static instr *update_instr(draft *d, hr_op op, uint32_t param, hr_err *err)
{
    instr *i = draft_instr(d, &d->instrs, op, HR_PHASE_UPDATE, d->model->params[param].layer);
    if (i == NULL) {
        (void)HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    return i;
}

static hr_status add_square_sums(draft *d, uint32_t *sum, hr_err *err)
{
    const op_operand one = {.shape = shape_of(1, (const int64_t[]){1}),
                            .dtype = d->real == HR_F64 ? HR_F64 : HR_F32,
                            .layout = HR_LAYOUT_PLAIN};
    bool begun = false;
    HR_TRY(draft_tensor(d, "gradients:square_sum", &one, HR_CATEGORY_TEMPORARIES, HR_NO_ID, sum, err));
    for (uint32_t k = 0; k < d->model->param_count; k++) {
        if (!has_gradient(d, k)) {
            continue;
        }
        instr *i = update_instr(d, HR_OP_SQUARE_SUM, k, err);
        if (i == NULL) {
            return HR_NOMEM;
        }
        instr_in(i, d->gradient[d->param_tensor[k]]);
        if (begun) {
            instr_in(i, *sum);
        }
        instr_out(i, *sum);
        begun = true;
    }
    return HR_OK;
}

static hr_status add_clip(draft *d, uint32_t param, uint32_t sum, hr_err *err)
{
    const uint32_t variable = d->param_tensor[param], gradient = d->gradient[variable];
    const op_operand like = tensor_operand(&d->tensors.data[gradient]);
    const char *name = draft_suffixed(d, d->model->params[param].name, "clipped");
    uint32_t clipped = 0;
    HR_TRY(draft_tensor(d, name, &like, HR_CATEGORY_GRADIENTS, d->model->params[param].layer, &clipped, err));
    d->tensors.data[clipped].param = param;
    instr *i = update_instr(d, HR_OP_CLIP, param, err);
    if (i == NULL) {
        return HR_NOMEM;
    }
    i->attr.epsilon = hr_knob_real(d->knobs, HR_KNOB_OPTIMIZER_CLIP_NORM);
    instr_in(i, gradient);
    instr_in(i, sum);
    instr_out(i, clipped);
    d->gradient[variable] = clipped;
    return HR_OK;
}

hr_status pass_clip(draft *d, hr_err *err)
{
    uint32_t sum = 0;
    if (!hr_knob_is_set(d->knobs, HR_KNOB_OPTIMIZER_CLIP_NORM)) {
        return HR_OK;
    }
    HR_TRY(add_square_sums(d, &sum, err));
    for (uint32_t k = 0; k < d->model->param_count; k++) {
        if (has_gradient(d, k)) {
            HR_TRY(add_clip(d, k, sum, err));
        }
    }
    return HR_OK;
}
