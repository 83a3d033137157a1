// SPDX-License-Identifier: Apache-2.0
// Pass fake_quantize (compress.quantize qat), right behind build: quantization-aware training as tfmot's default 8-bit scheme has it
// (default_8bit_quantize_registry.py). All of it is float: what is deployed later has eight bits, training has more tensors.
//
//   weights      of products and convolutions are read through a copy at 255 levels, of all of them or, of convolutions
//                that are not depthwise, of each filter
//   activations  behind sums, products, means and activation functions, where no normalisation or activation function alone
//                reads them, are read through a copy at 256 levels of a range that follows them (track_range)
//   images       the same; their range is the widest that there was
//
// Ranges are persistent (STATE); an evaluation reads them, and they stay. A teacher (compress.distill) stays as it is.
#include <string.h>

#include "ops/fake_quant.h"
#include "program/draft.h"

// What the scheme knows of an operation.
typedef enum quant_role {
    QUANT_NONE,
    QUANT_BEFORE, // its result is quantised, unless what alone reads it is QUANT_BEHIND
    QUANT_BEHIND, // the same; what stands before it is not
} quant_role;

static quant_role role_of(hr_op op)
{
    switch ((int)op) {
    case HR_OP_CONV2D:
    case HR_OP_CONV2D_TRANSPOSE:
    case HR_OP_DENSE:
    case HR_OP_ADD:
    case HR_OP_MULTIPLY:
    case HR_OP_CONCAT:
    case HR_OP_AVG_POOL:
    case HR_OP_GLOBAL_AVG_POOL:
    case HR_OP_ADAPTIVE_POOL:
    case HR_OP_UPSAMPLE:
    case HR_OP_RESIZE:
        return QUANT_BEFORE;
    case HR_OP_BATCH_NORM:
    case HR_OP_RELU:
    case HR_OP_RELU6:
    case HR_OP_GELU:
    case HR_OP_SILU:
    case HR_OP_TANH:
    case HR_OP_SIGMOID:
    case HR_OP_HARD_SIGMOID:
    case HR_OP_HARD_SWISH:
    case HR_OP_LEAKY_RELU:
    case HR_OP_SOFTPLUS:
    case HR_OP_MISH:
        return QUANT_BEHIND;
    default:
        return QUANT_NONE;
    }
}

static bool is_aware(const draft *d)
{
    return hr_knob_is(d->knobs, HR_KNOB_COMPRESS_QUANTIZE, "qat");
}

static bool is_teachers(const hr_model *m, uint32_t layer)
{
    return layer != HR_NO_ID && layer >= m->own_layers;
}

// ---- which values ---------------------------------------------------------------------------------------------

// readers[value]: how many nodes read it; behind[value]: one of them normalises or is an activation function.
typedef struct value_readers {
    uint32_t *readers;
    bool *behind;
} value_readers;

static void count_readers(const hr_model *m, const value_readers *r)
{
    for (uint32_t n = 0; n < m->node_count; n++) {
        const model_node *node = &m->nodes[n];
        for (uint32_t k = 0; k < node->in_count && !is_teachers(m, node->layer); k++) {
            if (!node->in[k].is_param) {
                r->readers[node->in[k].index]++;
                r->behind[node->in[k].index] |= role_of(node->op) == QUANT_BEHIND;
            }
        }
    }
}

static hr_status add_range(draft *d, uint32_t value, hr_err *err)
{
    const model_value *v = &d->model->values[value];
    const op_operand o = {.shape = shape_of(1, (const int64_t[]){2}), .dtype = HR_F32};
    uint32_t *id = &d->range[value];
    HR_TRY(draft_tensor(d, draft_suffixed(d, v->name, "range"), &o, HR_CATEGORY_STATE, v->layer, id, err));
    d->tensors.data[*id].initial = FAKE_QUANT_INITIAL;
    return HR_OK;
}

// In canonical order: of the images that come in, then node by node.
static hr_status add_ranges(draft *d, const value_readers *r, hr_err *err)
{
    const hr_model *m = d->model;
    for (uint32_t k = 0; k < m->slot_count; k++) {
        const bool image = !m->slots[k].is_label && m->values[m->slots[k].value].dtype == HR_F32;
        HR_TRY(image ? add_range(d, m->slots[k].value, err) : HR_OK);
    }
    for (uint32_t n = 0; n < m->node_count; n++) {
        const uint32_t value = m->nodes[n].out[0];
        const quant_role role = is_teachers(m, m->nodes[n].layer) ? QUANT_NONE : role_of(m->nodes[n].op);
        const bool alone = r->readers[value] == 1 && r->behind[value];
        HR_TRY(role != QUANT_NONE && !alone ? add_range(d, value, err) : HR_OK);
    }
    return HR_OK;
}

hr_status draft_add_ranges(draft *d, hr_err *err)
{
    if (!is_aware(d)) {
        return HR_OK;
    }
    const uint32_t count = d->model->value_count;
    value_readers r = {.readers = hr_calloc(count, sizeof *r.readers),
                       .behind = hr_calloc(count, sizeof *r.behind)};
    d->range = hr_calloc(count, sizeof *d->range);
    hr_status status = HR_OK;
    if (r.readers == NULL || r.behind == NULL || d->range == NULL) {
        status = HR_FAIL(err, NOMEM, "no host memory for the ranges of %u values", count);
    } else {
        memset(d->range, 0xff, count * sizeof *d->range);
        count_readers(d->model, &r);
        status = add_ranges(d, &r, err);
    }
    hr_free(r.readers);
    hr_free(r.behind);
    return status;
}

// ---- the list -------------------------------------------------------------------------------------------------

typedef struct rewriting {
    draft *d;
    instr_list list;
    uint32_t *range; // [tensors before the pass]: what it is quantised by, HR_NO_ID
    uint32_t *copy;  // [the same]: what its readers read instead, HR_NO_ID
} rewriting;

static hr_status no_memory(hr_err *err)
{
    return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
}

static hr_status add_copy(rewriting *w, uint32_t from, hr_op op, uint32_t layer, hr_err *err)
{
    const tensor *t = &w->d->tensors.data[from];
    const op_operand o = tensor_operand(t);
    const hr_category category = op == HR_OP_FAKE_QUANT_WEIGHTS ? HR_CATEGORY_CASTS : HR_CATEGORY_ACTIVATIONS;
    HR_TRY(draft_tensor(w->d, draft_suffixed(w->d, t->name, "fake_quant"), &o, category, t->layer,
                        &w->copy[from], err));
    instr *i = draft_instr(w->d, &w->list, op, HR_PHASE_FORWARD, layer);
    if (i == NULL) {
        return no_memory(err);
    }
    instr_in(i, from);
    instr_out(i, w->copy[from]);
    return HR_OK;
}

// Filters have levels of their own, but for depthwise ones, whose last dimension tfmot takes for one.
static hr_status quantize_weights(rewriting *w, const instr *reader, uint32_t weights, hr_err *err)
{
    const bool filters = reader->op == HR_OP_CONV2D && reader->attr.groups <= 1;
    HR_TRY(add_copy(w, weights, HR_OP_FAKE_QUANT_WEIGHTS, reader->layer, err));
    w->list.data[w->list.count - 1].attr.count = filters;
    return HR_OK;
}

static hr_status quantize_value(rewriting *w, uint32_t t, bool image, hr_err *err)
{
    const uint32_t layer = w->d->tensors.data[t].layer;
    if (w->d->mode == PROGRAM_TRAIN) {
        instr *i = draft_instr(w->d, &w->list, HR_OP_TRACK_RANGE, HR_PHASE_FORWARD, layer);
        if (i == NULL) {
            return no_memory(err);
        }
        i->attr.momentum = image ? 0.0 : FAKE_QUANT_DECAY;
        instr_in(i, t);
        instr_in(i, w->range[t]);
        instr_out(i, w->range[t]);
    }
    HR_TRY(add_copy(w, t, HR_OP_FAKE_QUANT, layer, err));
    instr_in(&w->list.data[w->list.count - 1], w->range[t]);
    return HR_OK;
}

static bool multiplies(hr_op op)
{
    return op == HR_OP_CONV2D || op == HR_OP_CONV2D_TRANSPOSE || op == HR_OP_DENSE;
}

static hr_status read_copies(rewriting *w, instr *i, hr_err *err)
{
    for (uint32_t k = 0; k < i->in_count; k++) {
        const uint32_t from = i->in[k];
        const bool weights =
            k == 1 && multiplies(i->op) && w->d->tensors.data[from].category == HR_CATEGORY_WEIGHTS;
        HR_TRY(weights && w->copy[from] == HR_NO_ID ? quantize_weights(w, i, from, err) : HR_OK);
        i->in[k] =
            w->copy[from] != HR_NO_ID && (weights || w->range[from] != HR_NO_ID) ? w->copy[from] : from;
    }
    if (op_row_of(i->op)->view) {
        w->d->tensors.data[i->out[0]].storage = draft_owner(w->d, i->in[0]);
    }
    return HR_OK;
}

static hr_status rewrite(rewriting *w, hr_err *err)
{
    for (uint32_t n = 0; n < w->d->instrs.count; n++) {
        instr i = w->d->instrs.data[n];
        const bool image = i.phase == HR_PHASE_INPUT;
        HR_TRY(image || is_teachers(w->d->model, i.layer) ? HR_OK : read_copies(w, &i, err));
        instr *placed = vec_push(&w->list);
        if (placed == NULL) {
            return no_memory(err);
        }
        *placed = i;
        for (uint32_t k = 0; k < i.out_count; k++) {
            HR_TRY(w->range[i.out[k]] != HR_NO_ID ? quantize_value(w, i.out[k], image, err) : HR_OK);
        }
    }
    return HR_OK;
}

hr_status pass_fake_quantize(draft *d, hr_err *err)
{
    if (!is_aware(d)) {
        return HR_OK;
    }
    const uint32_t count = d->tensors.count;
    rewriting w = {
        .d = d, .range = hr_calloc(count, sizeof *w.range), .copy = hr_calloc(count, sizeof *w.copy)};
    hr_status status = HR_OK;
    if (w.range == NULL || w.copy == NULL) {
        status = HR_FAIL(err, NOMEM, "no host memory for the copies of %u tensors", count);
    } else {
        memset(w.range, 0xff, count * sizeof *w.range);
        memset(w.copy, 0xff, count * sizeof *w.copy);
        for (uint32_t v = 0; v < d->model->value_count; v++) {
            if (d->value_tensor[v] != HR_NO_ID && d->range[v] != HR_NO_ID) {
                w.range[d->value_tensor[v]] = d->range[v];
            }
        }
        status = rewrite(&w, err);
    }
    if (status == HR_OK) {
        const instr_list gone = d->instrs;
        d->instrs = w.list;
        w.list = gone;
    }
    vec_deinit(&w.list);
    hr_free(w.range);
    hr_free(w.copy);
    return status;
}
