// SPDX-License-Identifier: Apache-2.0
// Pass layout: with execution.layout auto, images stay in the library's blocked layout from one operation to
// the next wherever every operation that touches them gains by it. What a person sees is NHWC all the same.
//
// An image is blocked only if all its users agree; operations that work element by element need one layout for
// all their images, so one plain operand makes the others plain, until nothing changes.
#include "program/draft.h"

static bool is_image(const tensor *t)
{
    return t->shape.rank == 4 && t->category == HR_CATEGORY_ACTIVATIONS &&
           (t->dtype == HR_F32 || t->dtype == HR_U8) && t->shape.dim[3] % OP_BLOCK_CHANNELS == 0;
}

static bool wants_blocked(const draft *d, const instr *i)
{
    op_query q;
    draft_query(d, i, &q);
    return d->target->prefers_blocked(d->target->context, &q);
}

static bool is_convolution(hr_op op)
{
    return op == HR_OP_CONV2D || op == HR_OP_CONV2D_BWD_DATA || op == HR_OP_CONV2D_BWD_WEIGHTS;
}

static bool make_plain(const instr *i, bool *blocked)
{
    bool changed = false;
    for (uint32_t k = 0; k < i->in_count; k++) {
        changed |= blocked[i->in[k]];
        blocked[i->in[k]] = false;
    }
    for (uint32_t k = 0; k < i->out_count; k++) {
        changed |= blocked[i->out[k]];
        blocked[i->out[k]] = false;
    }
    return changed;
}

// Has this operation an image that is not blocked while another one is? The model's input, which a convolution
// reads as it came, does not count.
static bool is_mixed(const draft *d, const instr *i, const bool *blocked)
{
    bool any_plain = false;
    bool any_blocked = false;
    for (uint32_t k = 0; k < (uint32_t)i->in_count + i->out_count; k++) {
        uint32_t id = k < i->in_count ? i->in[k] : i->out[k - i->in_count];
        const tensor *t = &d->tensors.data[id];
        bool counts = t->category == HR_CATEGORY_ACTIVATIONS ||
                      (t->category == HR_CATEGORY_INPUT && !is_convolution(i->op));
        if (t->shape.rank == 4 && counts) {
            any_plain |= !blocked[id];
            any_blocked |= blocked[id];
        }
    }
    return any_plain && any_blocked;
}

static bool settle(const draft *d, bool *blocked)
{
    bool changed = false;
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        if (is_mixed(d, &d->instrs.data[n], blocked)) {
            changed |= make_plain(&d->instrs.data[n], blocked);
        }
    }
    return changed;
}

hr_status pass_layout(draft *d, hr_err *err)
{
    if (d->target->prefers_blocked == NULL || !hr_knob_is(d->knobs, HR_KNOB_EXECUTION_LAYOUT, "auto")) {
        return HR_OK;
    }
    bool *blocked = hr_calloc(d->tensors.count, sizeof *blocked);
    if (blocked == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the layouts of %u tensors", d->tensors.count);
    }
    for (uint32_t k = 0; k < d->tensors.count; k++) {
        blocked[k] = is_image(&d->tensors.data[k]);
    }
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        if (!wants_blocked(d, &d->instrs.data[n])) {
            (void)make_plain(&d->instrs.data[n], blocked);
        }
    }
    while (settle(d, blocked)) {
    }
    hr_status status = HR_OK;
    for (uint32_t k = 0; k < d->tensors.count && status == HR_OK; k++) {
        if (blocked[k]) {
            d->tensors.data[k].layout = HR_LAYOUT_BLOCKED;
            status = draft_measure(&d->tensors.data[k], err);
        }
    }
    hr_free(blocked);
    return status;
}
