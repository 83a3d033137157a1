// SPDX-License-Identifier: Apache-2.0
// Pass lower: the target says for each operation what scratch it needs and which operands it wants in the
// library's own layout; scratch and reordered copies become temporaries, reorders become instructions.
// Where the target has no kernel in a two-byte type, the operation runs in float32 between casts, with temporaries.
// This is the last pass that adds tensors.
#include <string.h>

#include "program/draft.h"

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

static hr_status ask(draft *d, const instr *i, target_answer *answer, hr_err *err)
{
    op_query q;
    draft_query(d, i, &q);
    return target_ask(d->target, &q, hr_knob_bytes(d->knobs, HR_KNOB_WORKSPACE_LIMIT, UINT64_MAX), answer,
                      err);
}

// Its temporaries are those of its peer: only who does it is asked for.
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

static hr_status lower_native(draft *d, instr_list *list, instr i, const target_answer *asked, hr_err *err)
{
    const target_answer answer = *asked;
    uint32_t original[TARGET_MAX_REORDERS] = {0};
    for (uint8_t k = 0; k < answer.reorder_count; k++) {
        uint8_t operand = answer.reorder[k].operand;
        uint32_t *slot = is_input_reorder(&answer, k) ? &i.in[operand] : &i.out[operand & 0x7f];
        uint32_t copy = 0;
        original[k] = *slot;
        HR_TRY(library_copy(d, original[k], answer.reorder[k].bytes, &copy, err));
        if (is_input_reorder(&answer, k)) {
            HR_TRY(add_reorder(d, list, &i, operand, original[k], copy, err));
        }
        *slot = copy;
    }
    HR_TRY(add_workspace(d, &i, answer.workspace_bytes, err));
    i.impl = answer.impl;
    i.instead = answer.instead;
    i.behind = answer.behind;
    instr *placed = vec_push(list);
    if (placed == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    *placed = i;
    for (uint8_t k = 0; k < answer.reorder_count; k++) {
        uint8_t operand = answer.reorder[k].operand;
        if (!is_input_reorder(&answer, k)) {
            HR_TRY(add_reorder(d, list, &i, operand, i.out[operand & 0x7f], original[k], err));
        }
    }
    return HR_OK;
}

static bool is_half(const draft *d, uint32_t id)
{
    return d->tensors.data[id].dtype == HR_F16 || d->tensors.data[id].dtype == HR_BF16;
}

static hr_status float32_copy(draft *d, uint32_t original, uint32_t *id, hr_err *err)
{
    const tensor *t = &d->tensors.data[original];
    op_operand o = tensor_operand(t);
    o.dtype = HR_F32;
    return draft_tensor(d, arena_print(&d->names, "%s:float32", t->name), &o, HR_CATEGORY_TEMPORARIES,
                        t->layer, id, err);
}

static hr_status lower_cast(draft *d, instr_list *list, const instr *peer, uint32_t from, uint32_t to,
                            hr_err *err)
{
    target_answer answer;
    instr cast = {.id = d->next_instr_id++,
                  .op = HR_OP_CAST,
                  .phase = peer->phase,
                  .lane = HR_LANE_COMPUTE,
                  .device = peer->device,
                  .layer = peer->layer,
                  .workspace = HR_NO_ID};
    instr_in(&cast, from);
    instr_out(&cast, to);
    HR_TRY(ask(d, &cast, &answer, err));
    return lower_native(d, list, cast, &answer, err);
}

// An operand that is updated in place has one float32 copy on both sides.
static hr_status lower_widened(draft *d, instr_list *list, instr i, hr_err *err)
{
    uint32_t narrow[OP_MAX_OUT], in[OP_MAX_IN], out_count = i.out_count;
    memcpy(in, i.in, sizeof in);
    memcpy(narrow, i.out, sizeof narrow);
    for (uint32_t k = 0; k < i.in_count; k++) {
        uint32_t first = 0; // the same tensor may be read twice
        while (in[first] != in[k]) {
            first++;
        }
        if (first < k) {
            i.in[k] = i.in[first];
        } else if (is_half(d, in[k])) {
            HR_TRY(float32_copy(d, in[k], &i.in[k], err));
            HR_TRY(lower_cast(d, list, &i, in[k], i.in[k], err));
        }
    }
    for (uint32_t k = 0; k < out_count; k++) {
        uint32_t twin = 0;
        while (twin < i.in_count && in[twin] != narrow[k]) {
            twin++;
        }
        if (twin < i.in_count) {
            i.out[k] = i.in[twin];
        } else if (is_half(d, narrow[k])) {
            HR_TRY(float32_copy(d, narrow[k], &i.out[k], err));
        }
    }
    target_answer answer;
    HR_TRY(ask(d, &i, &answer, err));
    HR_TRY(lower_native(d, list, i, &answer, err));
    for (uint32_t k = 0; k < out_count; k++) {
        if (is_half(d, narrow[k])) {
            HR_TRY(lower_cast(d, list, &i, i.out[k], narrow[k], err));
        }
    }
    return HR_OK;
}

static hr_status lower_one(draft *d, instr_list *list, instr i, hr_err *err)
{
    target_answer answer;
    HR_TRY(ask(d, &i, &answer, err));
    return answer.widen ? lower_widened(d, list, i, err) : lower_native(d, list, i, &answer, err);
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
