// SPDX-License-Identifier: Apache-2.0
// Pass build: the model's parameters, slots and forward operations become tensors and instructions.
//
// Persistent tensors come first, in canonical order: weights, state, masks of pruning, workspaces that stay, optimizer slots, sums of
// gradients, input slots, and those of the batches that are held ahead. Evaluation has no optimizer slots, holds nothing ahead and
// uses running statistics and no teacher; what feeds has the batches held ahead alone, or the input slots where
// none is.
#include <stdio.h>
#include <string.h>

#include "ops/pytorch.h"
#include "program/draft.h"
#include "program/optimizer_rules.h"

enum { INT64_BYTES = 8 };

static op_operand with_real_type(const draft *d, const hr_shape *shape, hr_dtype dtype)
{
    return (op_operand){
        .shape = *shape, .dtype = dtype == HR_F32 ? d->real : dtype, .layout = HR_LAYOUT_PLAIN};
}

// Evaluation looks at the average of a variable where one is held.
static const char *param_name(draft *d, const model_param *param)
{
    const bool averaged = d->mode == PROGRAM_EVALUATE && param->trainable && optimizer_averages(d->knobs);
    return averaged ? draft_suffixed(d, param->name, OPTIMIZER_EMA_SLOT) : draft_name(d, param->name);
}

// Of weights that are held as whole numbers: the parts stay, and what reads the weights reads what pass dequantize makes.
static hr_status add_held(draft *d, uint32_t k, hr_err *err)
{
    const model_param *param = &d->model->params[k];
    held_parts parts;
    held_parts_of(&param->shape, param->held, &parts);
    d->first_part[k] = d->tensors.count;
    for (uint32_t n = 0; n < parts.count; n++) {
        const char *suffix = parts.suffix[n];
        const char *name =
            suffix == NULL ? draft_name(d, param->name) : draft_suffixed(d, param->name, suffix);
        uint32_t id = 0;
        HR_TRY(draft_tensor(d, name, &parts.part[n], param->category, param->layer, &id, err));
        d->tensors.data[id].held = k;
    }
    return HR_OK;
}

// What stands for them until pass dequantize: nobody makes it.
static hr_status add_stand_ins(draft *d, hr_err *err)
{
    for (uint32_t k = 0; k < d->model->param_count; k++) {
        if (d->first_part[k] == HR_NO_ID) {
            continue;
        }
        const model_param *param = &d->model->params[k];
        const op_operand o = {.shape = param->shape, .dtype = d->compute, .layout = HR_LAYOUT_PLAIN};
        HR_TRY(draft_tensor(d, draft_suffixed(d, param->name, "real"), &o, HR_CATEGORY_TEMPORARIES,
                            param->layer, &d->param_tensor[k], err));
    }
    return HR_OK;
}

static hr_status add_params(draft *d, hr_category category, hr_err *err)
{
    const uint32_t count = d->mode == PROGRAM_EVALUATE ? d->model->own_params : d->model->param_count;
    for (uint32_t k = 0; k < count; k++) {
        const model_param *param = &d->model->params[k];
        if (param->category != category) {
            continue;
        }
        if (param->held != HELD_REAL) {
            HR_TRY(add_held(d, k, err));
            continue;
        }
        op_operand o = with_real_type(d, &param->shape, HR_F32);
        HR_TRY(draft_tensor(d, param_name(d, param), &o, category, param->layer, &d->param_tensor[k], err));
        d->tensors.data[d->param_tensor[k]].param = k;
        d->tensors.data[d->param_tensor[k]].of_teacher = k >= d->model->own_params;
    }
    return HR_OK;
}

static hr_status add_slot(draft *d, uint32_t k, const optimizer_slot *slot, bool on_host, hr_err *err)
{
    const model_param *param = &d->model->params[k];
    const op_operand variable = tensor_operand(&d->tensors.data[d->param_tensor[k]]);
    const op_operand o = optimizer_slot_operand(slot, &variable);
    const char *name = draft_suffixed(d, param->name, slot->name);
    uint32_t id = 0;
    HR_TRY(draft_tensor(d, name, &o, HR_CATEGORY_OPTIMIZER, param->layer, &id, err));
    d->tensors.data[id].param = k;
    d->tensors.data[id].device = on_host ? HR_DEVICE_HOST : 0;
    return HR_OK;
}

// Averages stay on the device: evaluation reads them like weights.
static hr_status add_slots_of(draft *d, uint32_t k, hr_err *err)
{
    static const optimizer_slot average = {OPTIMIZER_EMA_SLOT, SLOT_LIKE};
    const optimizer_rule *rule = optimizer_rule_for(d->knobs, &d->model->params[k].shape);
    const bool on_host = hr_knob_is(d->knobs, HR_KNOB_OFFLOAD_OPTIMIZER, "on");
    d->first_slot[k] = d->tensors.count;
    for (const optimizer_slot *slot = rule->slot; slot->name != NULL; slot++) {
        HR_TRY(add_slot(d, k, slot, on_host, err));
    }
    return optimizer_averages(d->knobs) ? add_slot(d, k, &average, false, err) : HR_OK;
}

static hr_status add_slots(draft *d, hr_err *err)
{
    for (uint32_t k = 0; k < d->model->param_count; k++) {
        if (d->model->params[k].trainable) {
            HR_TRY(add_slots_of(d, k, err));
        }
    }
    return HR_OK;
}

// Sums of gradients, where one step adds several up.
static hr_status add_accumulators(draft *d, hr_err *err)
{
    bool sums = d->recorded && hr_knob_int(d->knobs, HR_KNOB_BATCH_ACCUMULATE) > 1;
    for (uint32_t k = 0; sums && k < d->model->param_count; k++) {
        const model_param *param = &d->model->params[k];
        if (!param->trainable) {
            continue;
        }
        const op_operand variable = tensor_operand(&d->tensors.data[d->param_tensor[k]]);
        const char *name = draft_suffixed(d, param->name, "sum");
        HR_TRY(draft_tensor(d, name, &variable, HR_CATEGORY_ACCUMULATORS, param->layer, &d->accumulator[k],
                            err));
        d->tensors.data[d->accumulator[k]].param = k;
    }
    return HR_OK;
}

static hr_status add_workspace(draft *d, const char *name, uint64_t bytes, hr_err *err)
{
    const op_operand o = {.shape = shape_of(1, (const int64_t[]){(int64_t)bytes}), .dtype = HR_U8};
    uint32_t id = 0;
    return draft_tensor(d, draft_name(d, name), &o, HR_CATEGORY_TEMPORARIES, HR_NO_ID, &id, err);
}

// PyTorch gives a handle of cuBLAS its workspace with the first product and leaves it there: one handle of the thread that
// runs the model, one of autograd's. The former's products with a bias are cuBLASLt's, which has another.
static hr_status add_workspaces(draft *d, hr_err *err)
{
    const uint64_t bytes = pytorch_cublas_bytes(d->target->compute_major);
    bool multiplies = false, adds = false;
    for (uint32_t k = 0; d->pytorch && d->target->compute_major > 0 && k < d->model->node_count; k++) {
        const model_node *node = &d->model->nodes[k];
        multiplies = multiplies || pytorch_multiplies(node->op);
        adds = adds || (node->op == HR_OP_DENSE && node->in_count > 2);
    }
    HR_TRY(multiplies ? add_workspace(d, DRAFT_CUBLAS_FORWARD, bytes, err) : HR_OK);
    HR_TRY(adds ? add_workspace(d, DRAFT_CUBLASLT, PYTORCH_CUBLASLT_BYTES, err) : HR_OK);
    return multiplies && d->recorded ? add_workspace(d, DRAFT_CUBLAS_BACKWARD, bytes, err) : HR_OK;
}

// Whether an instruction reads this value, or a view of it, as float32 whatever the policy is.
static bool read_wide(const draft *d, uint32_t value)
{
    for (uint32_t n = 0; n < d->model->node_count; n++) {
        const model_node *node = &d->model->nodes[n];
        const op_row *row = op_row_of(node->op);
        for (uint32_t k = 0; k < node->in_count; k++) {
            if (!node->in[k].is_param && node->in[k].index == value &&
                (row->view ? read_wide(d, node->out[0]) : (row->wide_in >> k & 1) != 0)) {
                return true;
            }
        }
    }
    return false;
}

// Images that come from the host as pipeline.normalise and pipeline.transfer say; HR_DTYPE_COUNT: as everything else.
static hr_dtype image_dtype(const draft *d, uint32_t value)
{
    const hr_knobs *knobs = d->knobs;
    const bool image = model_takes_images(d->model) && d->model->slots[0].value == value;
    if (image && hr_knob_acts(knobs, HR_KNOB_PIPELINE_NORMALISE) &&
        hr_knob_is(knobs, HR_KNOB_PIPELINE_NORMALISE, "device")) {
        return HR_U8;
    }
    if (!image || !hr_knob_acts(knobs, HR_KNOB_PIPELINE_TRANSFER)) {
        return HR_DTYPE_COUNT;
    }
    return hr_knob_is(knobs, HR_KNOB_PIPELINE_TRANSFER, "float32")   ? HR_F32
           : hr_knob_is(knobs, HR_KNOB_PIPELINE_TRANSFER, "float64") ? HR_F64
                                                                     : HR_DTYPE_COUNT;
}

// What a batch is on the device. Under a mixed policy a graph casts nothing there that nobody reads as it was: the host
// rounds the batch to the type that its readers compute in, which is the same rounding, and copies half the bytes.
static op_operand slot_operand(const draft *d, uint32_t value)
{
    const model_value *v = &d->model->values[value];
    op_operand o = with_real_type(d, &v->shape, v->dtype);
    const bool fuses = !d->eager && hr_knob_is(d->knobs, HR_KNOB_EXECUTION_FUSE, "on");
    o.shape.dim[0] = hr_knob_int(d->knobs, HR_KNOB_BATCH_SIZE);
    if (fuses && o.dtype == HR_F32 && !read_wide(d, value)) {
        o.dtype = d->compute;
    }
    const hr_dtype image = image_dtype(d, value);
    o.dtype = image != HR_DTYPE_COUNT ? image : o.dtype;
    return o;
}

// What counts is int64 in PyTorch.
static void widen_integers(const draft *d, tensor *t)
{
    if (d->pytorch && !dtype_is_real(t->dtype)) {
        const uint64_t elements = t->bytes / dtype_bytes(t->dtype);
        t->padding_bytes = elements * (INT64_BYTES - dtype_bytes(t->dtype));
        t->bytes = elements * INT64_BYTES;
    }
}

// A slot has the bytes of a full batch.size whatever the batch of this program is.
static hr_status add_input_slot(draft *d, uint32_t value, hr_err *err)
{
    const model_value *v = &d->model->values[value];
    const op_operand o = slot_operand(d, value);
    uint32_t *id = &d->value_tensor[value];
    HR_TRY(draft_tensor(d, draft_name(d, v->name), &o, HR_CATEGORY_INPUT, v->layer, id, err));
    d->tensors.data[*id].shape.dim[0] = d->batch;
    widen_integers(d, &d->tensors.data[*id]);
    return HR_OK;
}

// An evaluation asks no teacher.
static uint32_t slots_here(const draft *d)
{
    return d->mode == PROGRAM_EVALUATE ? model_data_slots(d->model) : d->model->slot_count;
}

static hr_status add_input_slots(draft *d, hr_err *err)
{
    d->first_input = d->tensors.count;
    for (uint32_t k = 0; k < slots_here(d); k++) {
        HR_TRY(add_input_slot(d, d->model->slots[k].value, err));
    }
    return HR_OK;
}

// Always with room for a full batch: what is copied ahead is whole, however few samples of it are real.
static hr_status add_ahead_slot(draft *d, uint32_t value, uint32_t place, hr_err *err)
{
    const model_value *v = &d->model->values[value];
    const op_operand o = slot_operand(d, value);
    char suffix[16];
    uint32_t id = 0;
    (void)snprintf(suffix, sizeof suffix, "ahead%u", place);
    HR_TRY(draft_tensor(d, draft_suffixed(d, v->name, suffix), &o, HR_CATEGORY_INPUT, v->layer, &id, err));
    widen_integers(d, &d->tensors.data[id]);
    return HR_OK;
}

static hr_status add_ahead_slots(draft *d, hr_err *err)
{
    d->first_ahead = d->tensors.count;
    for (uint32_t place = 1; place <= d->ahead; place++) {
        for (uint32_t k = 0; k < d->model->slot_count; k++) {
            HR_TRY(add_ahead_slot(d, d->model->slots[k].value, place, err));
        }
    }
    return HR_OK;
}

static hr_status add_state(draft *d, hr_err *err)
{
    HR_TRY(add_params(d, HR_CATEGORY_WEIGHTS, err));
    HR_TRY(add_params(d, HR_CATEGORY_STATE, err));
    HR_TRY(draft_add_ranges(d, err));
    if (d->mode == PROGRAM_TRAIN) {
        HR_TRY(draft_add_masks(d, err));
        HR_TRY(draft_add_scaling(d, err));
        HR_TRY(add_workspaces(d, err));
        HR_TRY(add_slots(d, err));
        HR_TRY(add_accumulators(d, err));
    }
    return add_input_slots(d, err);
}

static hr_status add_persistent(draft *d, hr_err *err)
{
    HR_TRY(d->mode != PROGRAM_FEED ? add_state(d, err) : d->ahead == 0 ? add_input_slots(d, err) : HR_OK);
    HR_TRY(add_ahead_slots(d, err));
    d->persistent_count = d->tensors.count;
    for (uint32_t k = 0; k < d->persistent_count; k++) {
        d->tensors.data[k].persistent = true;
    }
    return HR_OK;
}

static hr_status add_input_copy(draft *d, uint32_t value, int32_t slot, hr_err *err)
{
    instr *i = draft_instr(d, &d->instrs, HR_OP_INPUT, HR_PHASE_INPUT, HR_NO_ID);
    if (i == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    i->lane = HR_LANE_H2D;
    i->attr.slot = slot;
    instr_out(i, d->value_tensor[value]);
    return HR_OK;
}

// Images that travel in a type of their own become what their readers take, in the step: bytes are divided by 255.
static hr_status make_images(draft *d, hr_err *err)
{
    const uint32_t value = d->model->slots[0].value, from = d->value_tensor[value];
    op_operand o = tensor_operand(&d->tensors.data[from]);
    const uint32_t travels = o.dtype;
    o.dtype = read_wide(d, value) ? d->real : d->compute;
    if (image_dtype(d, value) == HR_DTYPE_COUNT || o.dtype == travels) {
        return HR_OK;
    }
    const tensor *t = &d->tensors.data[from];
    const char *name = draft_suffixed(d, t->name, dtype_name((hr_dtype)o.dtype));
    HR_TRY(draft_tensor(d, name, &o, HR_CATEGORY_ACTIVATIONS, t->layer, &d->value_tensor[value], err));
    instr *i =
        draft_instr(d, &d->instrs, travels == HR_U8 ? HR_OP_NORMALISE : HR_OP_CAST, HR_PHASE_INPUT, HR_NO_ID);
    if (i == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    instr_in(i, from);
    instr_out(i, d->value_tensor[value]);
    return HR_OK;
}

static hr_category value_category(hr_op op, uint32_t output)
{
    return (op_row_of(op)->state_out >> output & 1) != 0 ? HR_CATEGORY_STATE : HR_CATEGORY_ACTIVATIONS;
}

static hr_status add_output(draft *d, const model_node *node, uint32_t k, uint32_t *id, hr_err *err)
{
    const model_value *v = &d->model->values[node->out[k]];
    op_operand o = with_real_type(d, &v->shape, v->dtype);
    if (v->batched) {
        o.shape.dim[0] *= d->batch;
    }
    HR_TRY(draft_tensor(d, draft_name(d, v->name), &o, value_category(node->op, k), v->layer, id, err));
    d->value_tensor[node->out[k]] = *id;
    return HR_OK;
}

// The second output of one byte per element that an execution mode adds for backward. In graph mode a pooling's
// index stands for x and y, as in PyTorch; in eager mode a dropout's mask is kept, which a graph draws again.
static const char *extra_output(const draft *d, const model_node *node)
{
    const hr_op op = node->op;
    if (!d->recorded || node->teaches) {
        return NULL;
    }
    return op == HR_OP_MAX_POOL && (!d->eager || d->pytorch) ? "index"
           : op == HR_OP_DROPOUT && d->eager                 ? "mask"
                                                             : NULL;
}

static hr_status add_extra_output(draft *d, const model_node *node, uint32_t y, uint32_t *id, hr_err *err)
{
    op_operand o = tensor_operand(&d->tensors.data[y]);
    o.dtype = HR_U8;
    const char *name = draft_suffixed(d, d->tensors.data[y].name, extra_output(d, node));
    return draft_tensor(d, name, &o, value_category(node->op, 1), d->tensors.data[y].layer, id, err);
}

// Whether it computes as in an evaluation.
static bool infers(const draft *d, const model_node *node)
{
    return d->mode == PROGRAM_EVALUATE || node->teaches;
}

// A graph holds no probabilities beside its logits.
static hr_op built_op(const draft *d, const model_node *node)
{
    if (node->op == HR_OP_SOFTMAX_XENT && !d->eager) {
        return HR_OP_SOFTMAX_XENT_STREAM;
    }
    return infers(d, node) && node->op == HR_OP_BATCH_NORM ? HR_OP_BATCH_NORM_EVAL : node->op;
}

// What a streaming loss knows of its rows, where the model has probabilities, and the loss.
static hr_status add_stream_outputs(draft *d, const model_node *node, uint32_t out[3], hr_err *err)
{
    static const char *const names[] = {"max", "rsum"};
    const model_value *probs = &d->model->values[node->out[0]], *loss = &d->model->values[node->out[1]];
    op_operand o = with_real_type(d, &probs->shape, probs->dtype);
    o.shape.dim[0] *= probs->batched ? d->batch : 1;
    o.shape.dim[--o.shape.rank] = 0;
    for (uint32_t k = 0; k < 2; k++) {
        HR_TRY(draft_tensor(d, draft_suffixed(d, loss->name, names[k]), &o, HR_CATEGORY_STATE, loss->layer,
                            &out[k], err));
    }
    return add_output(d, node, 1, &out[2], err);
}

static hr_status add_outputs(draft *d, const model_node *node, hr_op op, uint32_t out[OP_MAX_OUT],
                             uint32_t *count, hr_err *err)
{
    const op_row *row = op_row_of(op);
    if (op == HR_OP_SOFTMAX_XENT_STREAM) {
        *count = row->max_out;
        return add_stream_outputs(d, node, out, err);
    }
    *count = node->out_count < row->max_out ? node->out_count : row->max_out;
    for (uint32_t k = 0; k < *count; k++) {
        HR_TRY(add_output(d, node, k, &out[k], err));
    }
    if (extra_output(d, node) != NULL) {
        HR_TRY(add_extra_output(d, node, out[0], &out[*count], err));
        ++*count;
    }
    return HR_OK;
}

// Without the dropout that only training has.
static op_attr attr_here(const draft *d, const model_node *node)
{
    op_attr attr = node->attr;
    if (infers(d, node) && node->op == HR_OP_ATTENTION) {
        attr.rate = 0.0;
        attr.salt = 0;
    }
    return attr;
}

// Readers of a layer that does nothing here read its input.
static bool left_out(const draft *d, const model_node *node)
{
    if (!infers(d, node) || (node->op != HR_OP_DROPOUT && node->op != HR_OP_DROP_PATH)) {
        return false;
    }
    d->value_tensor[node->out[0]] = d->value_tensor[node->in[0].index];
    return true;
}

static hr_status add_node(draft *d, const model_node *node, hr_err *err)
{
    if ((node->teaches && d->mode == PROGRAM_EVALUATE) || left_out(d, node)) {
        return HR_OK;
    }
    const hr_op op = built_op(d, node);
    uint32_t out[OP_MAX_OUT], outputs = 0;
    HR_TRY(add_outputs(d, node, op, out, &outputs, err));
    instr *i = draft_instr(d, &d->instrs, op, HR_PHASE_FORWARD, node->layer);
    if (i == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    i->attr = attr_here(d, node);
    for (uint32_t k = 0; k < node->in_count; k++) {
        instr_in(i, node->in[k].is_param ? d->param_tensor[node->in[k].index]
                                         : d->value_tensor[node->in[k].index]);
    }
    for (uint32_t k = 0; k < outputs; k++) {
        instr_out(i, out[k]);
    }
    if (op_row_of(op)->view) {
        d->tensors.data[out[0]].storage = draft_owner(d, i->in[0]);
    }
    return HR_OK;
}

static hr_status add_accuracy(draft *d, const model_loss *loss, hr_err *err)
{
    op_operand o = {.shape = shape_of(1, (const int64_t[]){1}), .dtype = HR_I32, .layout = HR_LAYOUT_PLAIN};
    uint32_t id = 0;
    HR_TRY(draft_tensor(d, "correct", &o, HR_CATEGORY_ACTIVATIONS, HR_NO_ID, &id, err));
    instr *i = draft_instr(d, &d->instrs, HR_OP_ACCURACY, HR_PHASE_FORWARD, HR_NO_ID);
    if (i == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    instr_in(i, d->value_tensor[loss->prediction]);
    instr_in(i, d->value_tensor[loss->labels]);
    instr_out(i, id);
    instr *read = draft_instr(d, &d->instrs, HR_OP_READ, HR_PHASE_FORWARD, HR_NO_ID);
    if (read == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    read->lane = HR_LANE_D2H;
    read->attr.slot = READ_CORRECT;
    instr_in(read, id);
    return HR_OK;
}

hr_status pass_build(draft *d, hr_err *err)
{
    const hr_model *m = d->model;
    memset(d->value_tensor, 0xff, m->value_count * sizeof *d->value_tensor);
    HR_TRY(add_persistent(d, err));
    HR_TRY(add_stand_ins(d, err));
    for (uint32_t k = 0; d->mode != PROGRAM_FEED || d->ahead == 0 ? k < slots_here(d) : false; k++) {
        HR_TRY(add_input_copy(d, m->slots[k].value, (int32_t)k, err));
    }
    if (d->mode == PROGRAM_FEED) {
        return HR_OK;
    }
    HR_TRY(make_images(d, err));
    for (uint32_t k = 0; k < m->node_count; k++) {
        HR_TRY(add_node(d, &m->nodes[k], err));
    }
    bool counts = d->mode == PROGRAM_EVALUATE && m->losses[0].classifies;
    return counts ? add_accuracy(d, &m->losses[0], err) : HR_OK;
}
