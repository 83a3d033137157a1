// SPDX-License-Identifier: Apache-2.0
// Pass clip, before the optimizer: with optimizer.clip_norm the squares of all gradients are summed, and every gradient is scaled so that
// the norm of all of them is at most that. The scaled ones take the place of the gradients for the passes behind.
//
// execution.as=pytorch scales gradients where they lie, as torch.nn.utils.clip_grad_norm_ does, and holds what it makes on the way
// (ForeachReduceOp.cu: where each gradient's chunks begin, a part of the norm for each chunk; clip_grad.py: the norms, their
// norm, and the factor in four steps).
#include "program/draft.h"

enum { FOREACH_CHUNK = 65536 }; // elements that a block of PyTorch's multi-tensor kernels takes

static bool has_gradient(const draft *d, uint32_t param)
{
    return d->model->params[param].trainable && d->gradient[d->param_tensor[param]] != HR_NO_ID;
}

// Has PyTorch a gradient of its own for it?
static bool is_one(const draft *d, uint32_t param)
{
    return has_gradient(d, param) && d->pack[param] != 0;
}

static instr *update_instr(draft *d, hr_op op, uint32_t param, hr_err *err)
{
    instr *i = draft_instr(d, &d->instrs, op, HR_PHASE_UPDATE, d->model->params[param].layer);
    if (i == NULL) {
        (void)HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    return i;
}

static hr_status add_hold(draft *d, const char *name, uint64_t bytes, uint32_t *id, hr_err *err)
{
    const draft_held held = {.name = name,
                             .bytes = bytes,
                             .category = HR_CATEGORY_TEMPORARIES,
                             .phase = HR_PHASE_UPDATE,
                             .layer = HR_NO_ID};
    return draft_hold(d, &d->instrs, &held, id, err);
}

static uint32_t last_id(const draft *d)
{
    return d->instrs.data[d->instrs.count - 1].id;
}

static void hold_to_here(draft *d, uint32_t first, uint32_t end)
{
    for (uint32_t k = first; k < end; k++) {
        d->tensors.data[k].held_until = last_id(d);
    }
}

// Before the squares are summed: *first to *end are the norms, which go when they have been.
static hr_status hold_norms(draft *d, uint32_t *first, uint32_t *end, hr_err *err)
{
    uint64_t chunks = 0, count = 0;
    uint32_t id = 0;
    for (uint32_t k = 0; k < d->model->param_count; k++) {
        uint64_t elements = 0;
        if (is_one(d, k) && shape_elements(&d->model->params[k].shape, &elements)) {
            chunks += (elements * d->pack[k] + FOREACH_CHUNK - 1) / FOREACH_CHUNK;
            count++;
        }
    }
    HR_TRY(add_hold(d, "gradients:first_chunks", (count + 1) * sizeof(uint64_t), first, err));
    HR_TRY(add_hold(d, "gradients:chunk_norms", chunks * sizeof(float), &id, err));
    for (uint32_t k = 0; k < d->model->param_count; k++) {
        const char *gradient = d->tensors.data[d->param_tensor[k]].name;
        HR_TRY(is_one(d, k) ? add_hold(d, draft_suffixed(d, gradient, "norm"), sizeof(float), &id, err)
                            : HR_OK);
    }
    hold_to_here(d, *first, *first + 2);
    HR_TRY(add_hold(d, "gradients:norms", count * sizeof(float), &id, err));
    *first += 2;
    *end = d->tensors.count;
    return HR_OK;
}

// Behind the sum, until *clamped, the factor that gradients are multiplied by.
static hr_status hold_factor(draft *d, uint32_t *clamped, hr_err *err)
{
    uint32_t moved = 0, inverse = 0, factor = 0;
    HR_TRY(add_hold(d, "gradients:norm_and_epsilon", sizeof(float), &moved, err));
    HR_TRY(add_hold(d, "gradients:inverse_norm", sizeof(float), &inverse, err));
    HR_TRY(add_hold(d, "gradients:factor", sizeof(float), &factor, err));
    hold_to_here(d, moved, factor);
    HR_TRY(add_hold(d, "gradients:clamped_factor", sizeof(float), clamped, err));
    hold_to_here(d, factor, *clamped);
    return HR_OK;
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

static hr_status clipped_tensor(draft *d, uint32_t param, uint32_t gradient, uint32_t *id, hr_err *err)
{
    const op_operand like = tensor_operand(&d->tensors.data[gradient]);
    const char *name = draft_suffixed(d, d->model->params[param].name, "clipped");
    HR_TRY(draft_tensor(d, name, &like, HR_CATEGORY_GRADIENTS, d->model->params[param].layer, id, err));
    d->tensors.data[*id].param = param;
    return HR_OK;
}

static hr_status add_clip(draft *d, uint32_t param, uint32_t sum, hr_err *err)
{
    const uint32_t variable = d->param_tensor[param], gradient = d->gradient[variable];
    uint32_t clipped = gradient;
    const bool in_place =
        d->pytorch && d->tensors.data[gradient].param == param; // else another variable's, too
    HR_TRY(in_place ? HR_OK : clipped_tensor(d, param, gradient, &clipped, err));
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
    uint32_t sum = 0, first = 0, end = 0, clamped = 0;
    if (!hr_knob_is_set(d->knobs, HR_KNOB_OPTIMIZER_CLIP_NORM)) {
        return HR_OK;
    }
    HR_TRY(d->pytorch ? hold_norms(d, &first, &end, err) : HR_OK);
    HR_TRY(add_square_sums(d, &sum, err));
    hold_to_here(d, first, end);
    HR_TRY(d->pytorch ? hold_factor(d, &clamped, err) : HR_OK);
    for (uint32_t k = 0; k < d->model->param_count; k++) {
        if (has_gradient(d, k)) {
            HR_TRY(add_clip(d, k, sum, err));
        }
    }
    if (d->pytorch) {
        hold_to_here(d, clamped, clamped + 1);
    }
    return HR_OK;
}
