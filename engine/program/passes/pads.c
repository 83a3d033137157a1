// SPDX-License-Identifier: Apache-2.0
// Pass pads (execution.as=pytorch), behind build: PyTorch's convolutions pad both ends alike. What a convolution of ours pads more
// at one end is a padded copy there, which the convolution reads and autograd keeps:
//
//   conv2d(x), pads l ≠ r     becomes   zero_pad(x) → padded, conv2d(padded), pads min(l, r)
//
// That is padding="same" of a kernel of even length, and F.pad in front of a causal convolution. PyTorch has no "same" with
// a stride; whoever writes it pads by F.pad alone, so that a convolution with a stride has no pads left.
#include "program/draft.h"

typedef struct pads {
    int32_t top, bottom, left, right;
} pads;

static int32_t beyond(int32_t here, int32_t there)
{
    return here > there ? here - there : 0;
}

// What is padded beside the convolution; all 0: nothing.
static pads apart_of(const op_attr *a)
{
    if (a->pad_top == a->pad_bottom && a->pad_left == a->pad_right) {
        return (pads){0};
    }
    if (a->stride_h > 1 || a->stride_w > 1) {
        return (pads){a->pad_top, a->pad_bottom, a->pad_left, a->pad_right};
    }
    return (pads){beyond(a->pad_top, a->pad_bottom), beyond(a->pad_bottom, a->pad_top),
                  beyond(a->pad_left, a->pad_right), beyond(a->pad_right, a->pad_left)};
}

static hr_status pad_apart(draft *d, instr_list *list, instr *conv, const pads *p, hr_err *err)
{
    op_operand o = tensor_operand(&d->tensors.data[conv->in[0]]);
    const char *name = draft_suffixed(d, d->tensors.data[conv->out[0]].name, "padded");
    uint32_t padded = 0;
    o.shape.dim[1] += (int64_t)p->top + p->bottom;
    o.shape.dim[2] += (int64_t)p->left + p->right;
    HR_TRY(draft_tensor(d, name, &o, HR_CATEGORY_ACTIVATIONS, conv->layer, &padded, err));
    instr *i = draft_instr(d, list, HR_OP_ZERO_PAD, (hr_phase)conv->phase, conv->layer);
    if (i == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    i->attr =
        (op_attr){.pad_top = p->top, .pad_bottom = p->bottom, .pad_left = p->left, .pad_right = p->right};
    instr_in(i, conv->in[0]);
    instr_out(i, padded);
    conv->in[0] = padded;
    conv->attr.pad_top -= p->top;
    conv->attr.pad_bottom -= p->bottom;
    conv->attr.pad_left -= p->left;
    conv->attr.pad_right -= p->right;
    return HR_OK;
}

static hr_status pad_all(draft *d, instr_list *list, hr_err *err)
{
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        instr i = d->instrs.data[n];
        const pads p = i.op == HR_OP_CONV2D ? apart_of(&i.attr) : (pads){0};
        if (p.top > 0 || p.bottom > 0 || p.left > 0 || p.right > 0) {
            HR_TRY(pad_apart(d, list, &i, &p, err));
        }
        instr *placed = vec_push(list);
        if (placed == NULL) {
            return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
        }
        *placed = i;
    }
    return HR_OK;
}

hr_status pass_pads(draft *d, hr_err *err)
{
    instr_list list = {NULL, 0, 0};
    if (!d->pytorch) {
        return HR_OK;
    }
    const hr_status status = pad_all(d, &list, err);
    if (status != HR_OK) {
        vec_deinit(&list);
        return status;
    }
    vec_deinit(&d->instrs);
    d->instrs = list;
    return HR_OK;
}
