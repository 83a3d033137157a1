// SPDX-License-Identifier: Apache-2.0
// Pass lower: the target says for each operation what scratch it needs and which operands it wants in the
// library's own layout; scratch and reordered copies become temporaries, reorders become instructions.
// This is the last pass that adds tensors.
#include <string.h>

#include "program/draft.h"

enum { COPY_ALIGNMENT = 256 };

typedef struct lowering {
    target_answer answer;
    bool
        inside; // its copies lie in its workspace, behind what the kernel works in; else they are tensors of their own
    uint64_t room; // where they begin there
} lowering;

static hr_status library_copy(draft *d, uint32_t original, uint64_t bytes, uint32_t *id, hr_err *err)
{
    const tensor *t = &d->tensors.data[original];
    op_operand o = tensor_operand(t);
    uint64_t plain_bytes = t->bytes;
    const char *name = arena_print(&d->names, "%s:library", t->name);
    HR_TRY(draft_tensor(d, name, &o, HR_CATEGORY_TEMPORARIES, t->layer, id, err));
    tensor *copy = &d->tensors.data[*id];
    copy->layout = HR_LAYOUT_LIBRARY;
    copy->bytes = bytes;
    copy->padding_bytes = bytes > plain_bytes ? bytes - plain_bytes : 0;
    return HR_OK;
}

static uint64_t workspace_limit(const draft *d)
{
    return hr_knob_bytes(d->knobs, HR_KNOB_WORKSPACE_LIMIT, UINT64_MAX);
}

static hr_status ask(draft *d, const instr *i, target_answer *answer, hr_err *err)
{
    op_query q;
    draft_query(d, i, &q);
    return target_ask(d->target, &q, workspace_limit(d), answer, err);
}

static uint64_t copies_bytes(const target_answer *a)
{
    uint64_t bytes = 0;
    for (uint8_t k = 0; k < a->reorder_count; k++) {
        bytes += (a->reorder[k].bytes + COPY_ALIGNMENT - 1) / COPY_ALIGNMENT * COPY_ALIGNMENT;
    }
    return bytes;
}

static bool has_same_copies(const target_answer *a, const target_answer *b)
{
    bool same = a->reorder_count == b->reorder_count;
    for (uint8_t k = 0; k < a->reorder_count && same; k++) {
        same = a->reorder[k].operand == b->reorder[k].operand && a->reorder[k].bytes == b->reorder[k].bytes;
    }
    return same;
}

// Ours in a workspace of PyTorch's. It asks for no copies in a library's order: they lie at its end where they have room there.
static hr_status ask_within(draft *d, const op_query *q, uint64_t theirs_bytes, lowering *l, hr_err *err)
{
    target_answer less = {0};
    hr_err why;
    HR_TRY(target_ask(d->target, q, theirs_bytes, &l->answer, err));
    const uint64_t copies = copies_bytes(&l->answer);
    if (copies > 0 && copies <= theirs_bytes) {
        const uint64_t room = (theirs_bytes - copies) / COPY_ALIGNMENT * COPY_ALIGNMENT;
        const hr_status status = target_ask(d->target, q, room, &less, &why);
        if (status == HR_OK && less.workspace_bytes <= room && has_same_copies(&less, &l->answer)) {
            l->answer = less;
            l->inside = true;
            l->room = room;
        } else if (status != HR_OK && status != HR_DEVICE) {
            return HR_FAIL(err, NOMEM, "no host memory to ask for a workspace: %s", why.sentence);
        }
    }
    if (l->answer.workspace_bytes < theirs_bytes) {
        l->answer.workspace_bytes = theirs_bytes;
    }
    return HR_OK;
}

// What PyTorch takes for a convolution is there, and ours works in it. For products there is none beside those of cuBLAS' handles.
// Where PyTorch's library has no engine at all, ours takes its own, and `theirs` says so.
static hr_status ask_as_pytorch(draft *d, instr *i, lowering *l, hr_err *err)
{
    const pytorch_images images = {.channels_last =
                                       hr_knob_is(d->knobs, HR_KNOB_EXECUTION_MEMORY_FORMAT, "channels_last"),
                                   .tf32 = hr_knob_is(d->knobs, HR_KNOB_EXECUTION_CUDNN_TF32, "on")};
    target_answer theirs = {0};
    op_query q;
    draft_query(d, i, &q);
    if (pytorch_convolves(i->op)) {
        HR_TRY(target_ask_pytorch(d->target, &q, &images, workspace_limit(d), &theirs, err));
    }
    i->theirs = theirs.instead;
    return theirs.instead != TARGET_INSTEAD_NONE ? ask(d, i, &l->answer, err)
                                                 : ask_within(d, &q, theirs.workspace_bytes, l, err);
}

static hr_status ask_for(draft *d, instr *i, lowering *l, hr_err *err)
{
    const bool theirs = d->pytorch && d->target->ask_pytorch != NULL &&
                        (pytorch_convolves(i->op) || pytorch_multiplies(i->op));
    *l = (lowering){.inside = false};
    return theirs ? ask_as_pytorch(d, i, l, err) : ask(d, i, &l->answer, err);
}

// Its temporaries are those of its peer: only its implementation is asked for.
static const char *who_reorders(draft *d, const instr *i)
{
    target_answer answer;
    return ask(d, i, &answer, NULL) == HR_OK ? answer.impl : NULL;
}

static hr_status add_reorder(draft *d, instr_list *list, const instr *peer, uint8_t operand, uint32_t from,
                             uint32_t to, hr_err *err)
{
    instr *r = draft_instr(d, list, HR_OP_REORDER, (hr_phase)peer->phase, peer->layer);
    if (r == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    r->attr.peer = peer->id;
    r->attr.peer_operand = operand;
    instr_in(r, from);
    instr_out(r, to);
    r->impl = who_reorders(d, r);
    return HR_OK;
}

static hr_status add_workspace(draft *d, instr *i, uint64_t bytes, hr_err *err)
{
    if (bytes == 0) {
        return HR_OK;
    }
    op_operand o = {.shape = shape_of(1, (const int64_t[]){(int64_t)bytes}), .dtype = HR_U8};
    const char *layer = i->layer == HR_NO_ID ? "step" : d->model->layers[i->layer].name;
    const char *name = arena_print(&d->names, "%s/%s:workspace", layer, op_name(i->op));
    return draft_tensor(d, name, &o, HR_CATEGORY_TEMPORARIES, i->layer, &i->workspace, err);
}

static bool is_input_reorder(const target_answer *a, uint8_t k)
{
    return (a->reorder[k].operand & 0x80) == 0;
}

// copy[k]: of reorder k.
static void lay_inside(draft *d, const instr *i, const lowering *l, const uint32_t *copy)
{
    uint64_t at = l->room;
    for (uint8_t k = 0; l->inside && k < l->answer.reorder_count; k++) {
        tensor *t = &d->tensors.data[copy[k]];
        t->storage = i->workspace;
        t->offset = at;
        at += (t->bytes + COPY_ALIGNMENT - 1) / COPY_ALIGNMENT * COPY_ALIGNMENT;
    }
}

// Its copies in the library's order, and the instructions that make those that it reads.
static hr_status add_copies(draft *d, instr_list *list, instr *i, const target_answer *a, uint32_t *original,
                            uint32_t *copy, hr_err *err)
{
    for (uint8_t k = 0; k < a->reorder_count; k++) {
        uint8_t operand = a->reorder[k].operand;
        uint32_t *slot = is_input_reorder(a, k) ? &i->in[operand] : &i->out[operand & 0x7f];
        original[k] = *slot;
        HR_TRY(library_copy(d, original[k], a->reorder[k].bytes, &copy[k], err));
        if (is_input_reorder(a, k)) {
            HR_TRY(add_reorder(d, list, i, operand, original[k], copy[k], err));
        }
        *slot = copy[k];
    }
    return HR_OK;
}

static hr_status lower_one(draft *d, instr_list *list, instr i, hr_err *err)
{
    lowering l;
    const target_answer *answer = &l.answer;
    uint32_t original[TARGET_MAX_REORDERS] = {0}, copy[TARGET_MAX_REORDERS] = {0};
    HR_TRY(ask_for(d, &i, &l, err));
    HR_TRY(add_copies(d, list, &i, answer, original, copy, err));
    HR_TRY(add_workspace(d, &i, answer->workspace_bytes, err));
    lay_inside(d, &i, &l, copy);
    i.impl = answer->impl;
    i.instead = answer->instead;
    i.behind = answer->behind;
    instr *placed = vec_push(list);
    if (placed == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    *placed = i;
    for (uint8_t k = 0; k < answer->reorder_count; k++) {
        uint8_t operand = answer->reorder[k].operand;
        if (!is_input_reorder(answer, k)) {
            HR_TRY(add_reorder(d, list, &i, operand, i.out[operand & 0x7f], original[k], err));
        }
    }
    return HR_OK;
}

hr_status pass_lower(draft *d, hr_err *err)
{
    instr_list lowered = {NULL, 0, 0};
    hr_status status = HR_OK;
    for (uint32_t n = 0; n < d->instrs.count && status == HR_OK; n++) {
        status = lower_one(d, &lowered, d->instrs.data[n], err);
    }
    vec_deinit(&d->instrs);
    d->instrs = lowered;
    return status;
}
