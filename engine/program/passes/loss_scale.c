// SPDX-License-Identifier: Apache-2.0
// Loss scaling, in three places of the list (reference tensorflow.md B2, B4):
//
//   scale_loss, behind autodiff    every loss gradient is multiplied by the scale
//   unscale, before the optimizer  finite checks and counts every gradient, unscale divides it in place
//   rescale, behind the optimizer  the scale follows the verdict, and the host reads both
//
// A step whose gradients are not finite changes nothing: the updates read the verdict.
#include "knobs/loss_scale.h"

#include "ops/loss_scale.h"
#include "program/draft.h"

enum { HEALTH_COLUMNS = 3 };

static hr_status add_scalar(draft *d, const char *name, hr_dtype dtype, float initial, uint32_t *id,
                            hr_err *err)
{
    const op_operand o = {.shape = shape_of(1, (const int64_t[]){1}), .dtype = dtype};
    HR_TRY(draft_tensor(d, name, &o, HR_CATEGORY_STATE, HR_NO_ID, id, err));
    d->tensors.data[*id].initial = initial;
    return HR_OK;
}

hr_status draft_add_scaling(draft *d, hr_err *err)
{
    loss_scale_choice choice;
    (void)loss_scale_of(d->knobs, &choice);
    draft_scaling *s = &d->scaling;
    *s = (draft_scaling){choice.dynamic, choice.fixed, HR_NO_ID, HR_NO_ID, HR_NO_ID, HR_NO_ID};
    if (s->dynamic) {
        HR_TRY(add_scalar(d, "loss_scale", HR_F32, OP_SCALE_INITIAL, &s->scale, err));
        HR_TRY(add_scalar(d, "loss_scale:clean_steps", HR_I32, 0, &s->clean, err));
    }
    if (s->dynamic || hr_knob_is(d->knobs, HR_KNOB_PRECISION_HEALTH, "on")) {
        const op_operand o = {.shape = shape_of(2, (const int64_t[]){d->model->param_count, HEALTH_COLUMNS}),
                              .dtype = HR_F32};
        HR_TRY(draft_tensor(d, "gradient_health", &o, HR_CATEGORY_TEMPORARIES, HR_NO_ID, &s->health, err));
    }
    return HR_OK;
}

static bool is_loss_gradient(hr_op op)
{
    return op == HR_OP_SOFTMAX_XENT_BWD || op == HR_OP_SOFTMAX_XENT_STREAM_BWD || op == HR_OP_MSE_BWD ||
           op == HR_OP_KL_BWD || op == HR_OP_BALANCE_BWD || op == HR_OP_BINARY_XENT_BWD ||
           op == HR_OP_FOCAL_BWD;
}

hr_status pass_scale_loss(draft *d, hr_err *err)
{
    (void)err;
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        instr *i = &d->instrs.data[n];
        if (!is_loss_gradient(i->op)) {
            continue;
        }
        if (d->scaling.dynamic) {
            instr_in(i, d->scaling.scale);
        } else if (d->scaling.fixed != 1) {
            i->attr.scale = (i->attr.scale == 0 ? 1 : i->attr.scale) * d->scaling.fixed;
        }
    }
    return HR_OK;
}

static instr *add_update(draft *d, hr_op op, uint32_t layer)
{
    return draft_instr(d, &d->instrs, op, HR_PHASE_UPDATE, layer);
}

static hr_status no_memory(hr_err *err)
{
    return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
}

static hr_status add_finite(draft *d, uint32_t param, uint32_t gradient, hr_err *err)
{
    draft_scaling *s = &d->scaling;
    const bool first = s->finite == HR_NO_ID;
    if (first) {
        const op_operand o = {.shape = shape_of(1, (const int64_t[]){1}), .dtype = HR_I32};
        HR_TRY(draft_tensor(d, "gradients_finite", &o, HR_CATEGORY_STATE, HR_NO_ID, &s->finite, err));
    }
    instr *i = add_update(d, HR_OP_FINITE, d->tensors.data[gradient].layer);
    if (i == NULL) {
        return no_memory(err);
    }
    i->attr.slot = (int32_t)param;
    instr_in(i, gradient);
    if (!first) {
        instr_in(i, s->finite);
        instr_in(i, s->health);
    }
    instr_out(i, s->finite);
    instr_out(i, s->health);
    return HR_OK;
}

static hr_status add_unscale(draft *d, uint32_t gradient, hr_err *err)
{
    instr *i = add_update(d, HR_OP_UNSCALE, d->tensors.data[gradient].layer);
    if (i == NULL) {
        return no_memory(err);
    }
    instr_in(i, gradient);
    if (d->scaling.dynamic) {
        instr_in(i, d->scaling.scale);
    } else {
        i->attr.scale = d->scaling.fixed;
    }
    instr_out(i, gradient);
    return HR_OK;
}

static uint32_t gradient_of(const draft *d, uint32_t param)
{
    return d->model->params[param].trainable ? d->gradient[d->param_tensor[param]] : HR_NO_ID;
}

// From the last variable to the first, as backward completes their gradients: an update may follow each at once.
// Variables whose gradients are equal share one (pass dedup): it is divided once, when all have been counted.
static hr_status add_checks(draft *d, uint32_t *variables, hr_err *err)
{
    for (uint32_t k = 0; k < d->model->param_count; k++) {
        if (gradient_of(d, k) != HR_NO_ID) {
            variables[gradient_of(d, k)]++;
        }
    }
    for (uint32_t k = d->model->param_count; k-- > 0;) {
        const uint32_t gradient = gradient_of(d, k);
        if (gradient == HR_NO_ID) {
            continue;
        }
        if (d->scaling.health != HR_NO_ID) {
            HR_TRY(add_finite(d, k, gradient, err));
        }
        if (--variables[gradient] == 0 && (d->scaling.dynamic || d->scaling.fixed != 1)) {
            HR_TRY(add_unscale(d, gradient, err));
        }
    }
    return HR_OK;
}

hr_status pass_unscale(draft *d, hr_err *err)
{
    uint32_t *variables = hr_calloc(d->tensors.count, sizeof *variables);
    const hr_status status = variables == NULL ? no_memory(err) : add_checks(d, variables, err);
    hr_free(variables);
    return status;
}

static hr_status add_read(draft *d, read_slot slot, uint32_t first, uint32_t second, hr_err *err)
{
    instr *i = add_update(d, HR_OP_READ, HR_NO_ID);
    if (i == NULL) {
        return no_memory(err);
    }
    i->lane = HR_LANE_D2H;
    i->attr.slot = (int32_t)slot;
    instr_in(i, first);
    if (second != HR_NO_ID) {
        instr_in(i, second);
    }
    return HR_OK;
}

static hr_status add_scale_update(draft *d, hr_err *err)
{
    const draft_scaling *s = &d->scaling;
    instr *i = add_update(d, HR_OP_SCALE_UPDATE, HR_NO_ID);
    if (i == NULL) {
        return no_memory(err);
    }
    i->attr.count = OP_SCALE_GROWTH_STEPS;
    i->attr.epsilon = hr_knob_is(d->knobs, HR_KNOB_PRECISION_LOSS_SCALE_FLOOR, "one") ? 1 : 0;
    instr_in(i, s->scale);
    instr_in(i, s->clean);
    instr_in(i, s->finite);
    instr_out(i, s->scale);
    instr_out(i, s->clean);
    return HR_OK;
}

hr_status pass_rescale(draft *d, hr_err *err)
{
    const draft_scaling *s = &d->scaling;
    if (s->finite == HR_NO_ID) {
        return HR_OK;
    }
    if (s->dynamic) {
        HR_TRY(add_scale_update(d, err));
        HR_TRY(add_read(d, READ_FINITE, s->finite, s->scale, err));
    }
    return add_read(d, READ_HEALTH, s->health, HR_NO_ID, err);
}
