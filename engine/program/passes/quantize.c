// SPDX-License-Identifier: Apache-2.0
// Pass quantize, behind build, of evaluations: dense layers and lookups compute with whole-number weights, as they will where the model is
// deployed (compress.quantize). A QUANTIZE in front of the first reader makes them of the variable, or of its average, and its copies
// (category CASTS) serve every reader; training is as without it.
#include "program/draft.h"

typedef struct quantize_ops {
    const char *word;
    hr_op quantize, dense, lookup;
    uint32_t parts; // results of the former: whole numbers, scales, zero points
} quantize_ops;

static const quantize_ops modes[] = {
    {"int8", HR_OP_QUANTIZE_INT8, HR_OP_DENSE_INT8, HR_OP_EMBEDDING_INT8, 2},
    {"int8_weights", HR_OP_QUANTIZE_INT8, HR_OP_DENSE_INT8_WEIGHTS, HR_OP_EMBEDDING_INT8, 2},
    {"int4_weights", HR_OP_QUANTIZE_INT4, HR_OP_DENSE_INT4_WEIGHTS, HR_OP_EMBEDDING_INT4, 3},
};

static const quantize_ops *mode_of(const draft *d)
{
    for (size_t k = 0; k < sizeof modes / sizeof *modes; k++) {
        if (hr_knob_is(d->knobs, HR_KNOB_COMPRESS_QUANTIZE, modes[k].word)) {
            return &modes[k];
        }
    }
    return NULL;
}

static bool takes(const draft *d, const instr *i)
{
    const bool reads = i->op == HR_OP_DENSE || i->op == HR_OP_EMBEDDING;
    const uint32_t param = reads ? d->tensors.data[i->in[1]].param : HR_NO_ID;
    return param != HR_NO_ID && model_param_quantized(d->model, param) != MODEL_AS_IT_IS;
}

// The parts of tensor `from`; *made is the first of them.
static hr_status make_parts(draft *d, instr_list *list, const quantize_ops *mode, uint32_t from,
                            uint32_t *made, hr_err *err)
{
    static const char *const suffixes[] = {"q", "scale", "zero"};
    op_operand in = tensor_operand(&d->tensors.data[from]), out[OP_MAX_OUT];
    const uint32_t layer = d->tensors.data[from].layer;
    const bool by_row = model_param_quantized(d->model, d->tensors.data[from].param) == MODEL_BY_ROW;
    const op_attr attr = {.flags = by_row ? OP_FLAG_TRANSPOSE : 0};
    uint32_t ids[OP_MAX_OUT];
    HR_TRY(op_row_of(mode->quantize)->shape(&attr, &in, 1, out, mode->parts, err));
    for (uint32_t k = 0; k < mode->parts; k++) {
        HR_TRY(draft_tensor(d, draft_suffixed(d, d->tensors.data[from].name, suffixes[k]), &out[k],
                            HR_CATEGORY_CASTS, layer, &ids[k], err));
    }
    instr *i = draft_instr(d, list, mode->quantize, HR_PHASE_FORWARD, layer);
    if (i == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    i->attr = attr;
    instr_in(i, from);
    for (uint32_t k = 0; k < mode->parts; k++) {
        instr_out(i, ids[k]);
    }
    *made = ids[0];
    return HR_OK;
}

// x, w, [b] becomes x, q, scale, [zero], [b].
static void take_parts(const draft *d, instr *i, const quantize_ops *mode, uint32_t first)
{
    const instr was = *i;
    i->op = was.op == HR_OP_EMBEDDING ? mode->lookup : mode->dense;
    if (i->op == HR_OP_EMBEDDING_INT4) {
        i->attr.count = (int32_t)d->tensors.data[was.in[1]].shape.dim[1];
    }
    i->in_count = 0;
    instr_in(i, was.in[0]);
    for (uint32_t k = 0; k < mode->parts; k++) {
        instr_in(i, first + k);
    }
    for (uint32_t k = 2; k < was.in_count; k++) {
        instr_in(i, was.in[k]);
    }
}

static hr_status quantize_program(draft *d, const quantize_ops *mode, uint32_t *made, instr_list *list,
                                  hr_err *err)
{
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        instr i = d->instrs.data[n];
        if (takes(d, &i)) {
            const uint32_t from = i.in[1];
            HR_TRY(made[from] == HR_NO_ID ? make_parts(d, list, mode, from, &made[from], err) : HR_OK);
            take_parts(d, &i, mode, made[from]);
        }
        instr *placed = vec_push(list);
        if (placed == NULL) {
            return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
        }
        *placed = i;
    }
    return HR_OK;
}

hr_status pass_quantize(draft *d, hr_err *err)
{
    const quantize_ops *mode = d->mode == PROGRAM_EVALUATE ? mode_of(d) : NULL;
    if (mode == NULL) {
        return HR_OK;
    }
    instr_list list = {NULL, 0, 0};
    const uint32_t count = d->tensors.count;
    uint32_t *made = hr_calloc(count, sizeof *made);
    if (made == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the whole numbers of %u tensors", count);
    }
    for (uint32_t k = 0; k < count; k++) {
        made[k] = HR_NO_ID;
    }
    const hr_status status = quantize_program(d, mode, made, &list, err);
    hr_free(made);
    if (status != HR_OK) {
        vec_deinit(&list);
        return status;
    }
    vec_deinit(&d->instrs);
    d->instrs = list;
    return HR_OK;
}
