// SPDX-License-Identifier: Apache-2.0
#include "program/draft.h"

#include <string.h>

#include "ops/pytorch.h"
#include "ops/tensorflow.h"

op_operand tensor_operand(const tensor *t)
{
    return (op_operand){.shape = t->shape, .dtype = t->dtype, .layout = t->layout};
}

const char *draft_name(draft *d, const char *name)
{
    size_t bytes = strlen(name) + 1;
    char *copy = arena_take(&d->names, bytes, 1);
    if (copy != NULL) {
        memcpy(copy, name, bytes);
    }
    return copy;
}

const char *draft_suffixed(draft *d, const char *name, const char *suffix)
{
    const size_t length = strlen(name), bytes = strlen(suffix) + 1;
    char *text = arena_take(&d->names, length + 1 + bytes, 1);
    if (text != NULL) {
        memcpy(text, name, length);
        text[length] = ':';
        memcpy(text + length + 1, suffix, bytes);
    }
    return text;
}

hr_status draft_measure(tensor *t, hr_err *err)
{
    op_operand o = tensor_operand(t);
    if (!operand_bytes(&o, &t->bytes, &t->padding_bytes)) {
        char shape[64];
        return HR_FAIL(err, MODEL, "tensor %s of shape %s is larger than 2^64 bytes or empty", t->name,
                       shape_text(&t->shape, shape, sizeof shape));
    }
    return HR_OK;
}

hr_status draft_tensor(draft *d, const char *name, const op_operand *like, hr_category category,
                       uint32_t layer, uint32_t *id, hr_err *err)
{
    tensor *t = name != NULL ? vec_push(&d->tensors) : NULL;
    if (t == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for tensor %u of the program", d->tensors.count);
    }
    *id = d->tensors.count - 1;
    *t = (tensor){.name = name,
                  .shape = like->shape,
                  .dtype = (hr_dtype)like->dtype,
                  .layout = (hr_layout)like->layout,
                  .category = category,
                  .storage = *id,
                  .layer = layer,
                  .param = HR_NO_ID,
                  .held = HR_NO_ID};
    return draft_measure(t, err);
}

instr *draft_instr(draft *d, instr_list *list, hr_op op, hr_phase phase, uint32_t layer)
{
    instr *i = vec_push(list);
    if (i != NULL) {
        i->id = d->next_instr_id++;
        i->op = op;
        i->phase = (uint8_t)phase;
        i->lane = HR_LANE_COMPUTE;
        i->layer = layer;
        i->workspace = HR_NO_ID;
    }
    return i;
}

void instr_in(instr *i, uint32_t tensor_id)
{
    i->in[i->in_count++] = tensor_id;
}

void instr_out(instr *i, uint32_t tensor_id)
{
    i->out[i->out_count++] = tensor_id;
}

uint32_t draft_owner(const draft *d, uint32_t tensor_id)
{
    while (d->tensors.data[tensor_id].storage != tensor_id) {
        tensor_id = d->tensors.data[tensor_id].storage;
    }
    return tensor_id;
}

const framework_rule *draft_rule(const draft *d, hr_op op)
{
    return d->pytorch ? pytorch_rule_of(op) : d->tensorflow ? tensorflow_rule_of(op) : NULL;
}

void draft_query(const draft *d, const instr *i, op_query *q)
{
    *q = (op_query){.op = i->op, .attr = i->attr, .in_count = i->in_count, .out_count = i->out_count};
    for (uint32_t k = 0; k < i->in_count; k++) {
        q->in[k] = tensor_operand(&d->tensors.data[i->in[k]]);
    }
    for (uint32_t k = 0; k < i->out_count; k++) {
        q->out[k] = tensor_operand(&d->tensors.data[i->out[k]]);
    }
}

hr_status draft_hold(draft *d, instr_list *list, const draft_held *held, uint32_t *id, hr_err *err)
{
    const op_operand o = {.shape = shape_of(1, (const int64_t[]){(int64_t)held->bytes}), .dtype = HR_U8};
    HR_TRY(draft_tensor(d, held->name, &o, held->category, held->layer, id, err));
    d->tensors.data[*id].held_until = held->until;
    instr *i = draft_instr(d, list, HR_OP_HOLD, held->phase, held->layer);
    if (i == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    instr_out(i, *id);
    return HR_OK;
}
