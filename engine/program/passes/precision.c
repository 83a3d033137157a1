// SPDX-License-Identifier: Apache-2.0
// Pass precision, between build and autodiff: operations compute in the policy's compute type. What an operation reads in another type is cast
// by an instruction of its own, once for all its readers: variables (category CASTS), float inputs, and values that
// must be float32, as logits before a loss. Results take the type they are computed in.
//
//   policy            variables, gradients, slots   activations    losses and statistics
//   float32, float64  as named                      as named       as named
//   mixed_…           float32                       half           float32
//   float16, bfloat16 half                          half           float32
//
// Which operands are float32 whatever the policy says is data: wide_in and wide_out of the operation's row.
//
// Under execution.as=pytorch a mixed policy is torch.autocast: an operation computes in the type that its rule says
// (ops/pytorch.h), most in what comes; only casts of variables serve more than one reader, the
// others are made in their reader's layer, and run again with it.
#include "program/compile.h"
#include "program/draft.h"

typedef struct policy_types {
    const char *policy;
    hr_dtype variables, compute;
} policy_types;

static const policy_types policies[] = {
    {"float32", HR_F32, HR_F32},         {"float64", HR_F64, HR_F64}, {"mixed_float16", HR_F32, HR_F16},
    {"mixed_bfloat16", HR_F32, HR_BF16}, {"float16", HR_F16, HR_F16}, {"bfloat16", HR_BF16, HR_BF16},
};

void precision_types(const hr_knobs *knobs, hr_dtype *variables, hr_dtype *compute)
{
    *variables = *compute = HR_F32;
    for (size_t k = 0; k < sizeof policies / sizeof *policies; k++) {
        if (hr_knob_is(knobs, HR_KNOB_PRECISION_POLICY, policies[k].policy)) {
            *variables = policies[k].variables;
            *compute = policies[k].compute;
        }
    }
}

// The casts that exist already: of each tensor one to the compute type, one to float32; HR_NO_ID: none.
typedef struct cast_table {
    uint32_t *to_compute, *to_wide; // [tensors before the pass]
    uint32_t *module; // [tensors before the pass] the layer of a packed product that cast it last, HR_NO_ID
} cast_table;

static bool is_half(hr_dtype dtype)
{
    return dtype == HR_F16 || dtype == HR_BF16;
}

static bool is_wide(const instr *i, uint32_t k)
{
    return (op_row_of(i->op)->wide_in >> k & 1) != 0;
}

static hr_dtype widest(const draft *d, const instr *i)
{
    bool wide = false;
    for (uint32_t k = 0; k < i->in_count; k++) {
        wide = wide || (!is_wide(i, k) && d->tensors.data[i->in[k]].dtype == HR_F32);
    }
    return wide ? HR_F32 : d->compute;
}

// What the operation computes in.
static hr_dtype computes_in(const draft *d, const instr *i)
{
    const framework_rule *rule = d->pytorch ? draft_rule(d, i->op) : NULL;
    if (rule == NULL || rule->autocast == PYTORCH_NARROW) {
        return d->compute;
    }
    const bool wide = rule->autocast == PYTORCH_WIDE ||
                      (rule->autocast == PYTORCH_WIDE_SUM && (i->attr.flags & OP_FLAG_MEAN) == 0);
    return wide ? HR_F32 : widest(d, i);
}

static bool is_mask(const draft *d, uint32_t id)
{
    bool is = false;
    for (uint32_t k = 0; k < d->model->param_count; k++) {
        is = is || d->mask[k] == id;
    }
    return is;
}

// Running statistics are float32 in every policy; a mask is of its kernel's type.
static hr_status widen_state(draft *d, hr_err *err)
{
    for (uint32_t k = 0; k < d->persistent_count; k++) {
        tensor *t = &d->tensors.data[k];
        if (t->category == HR_CATEGORY_STATE && is_half(t->dtype) && !is_mask(d, k)) {
            t->dtype = HR_F32;
            HR_TRY(draft_measure(t, err));
        }
    }
    return HR_OK;
}

// autocast keeps the casts of variables until it ends; a module of packed attention casts once for its one product.
static bool is_shared(const draft *d, const instr *reader, uint32_t from)
{
    return !d->pytorch || d->tensors.data[from].category == HR_CATEGORY_WEIGHTS ||
           (reader->attr.flags & OP_FLAG_PACKED) != 0;
}

// A cast that serves one reader is of that reader's layer.
static hr_status add_cast(draft *d, instr_list *list, const instr *reader, uint32_t from, hr_dtype to,
                          uint32_t *id, hr_err *err)
{
    const tensor *t = &d->tensors.data[from];
    op_operand o = tensor_operand(t);
    const hr_category category =
        t->category == HR_CATEGORY_WEIGHTS ? HR_CATEGORY_CASTS : HR_CATEGORY_ACTIVATIONS;
    const uint32_t layer = t->layer == HR_NO_ID || !is_shared(d, reader, from) ? reader->layer : t->layer;
    o.dtype = (uint32_t)to;
    HR_TRY(draft_tensor(d, draft_suffixed(d, t->name, dtype_name(to)), &o, category, layer, id, err));
    instr *i = draft_instr(d, list, HR_OP_CAST, HR_PHASE_FORWARD, layer);
    if (i == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
    }
    instr_in(i, from);
    instr_out(i, *id);
    return HR_OK;
}

// Most operations of PyTorch read operands of other types as they are: the result lies over our cast where it may. A loss takes
// the log-softmax of its logits before the cast.
static void note_reader(const draft *d, instr *cast, instr *reader, uint32_t k)
{
    const framework_rule *rule = d->pytorch ? draft_rule(d, reader->op) : NULL;
    const bool widens = d->tensors.data[cast->out[0]].dtype == HR_F32;
    if (rule == NULL || !widens) {
        return;
    }
    const bool logits = reader->op == HR_OP_SOFTMAX_XENT;
    cast->attr.flags |= rule->autocast == PYTORCH_AS_IT_COMES ? OP_FLAG_PROMOTED
                        : logits                              ? OP_FLAG_LOGITS
                                                              : 0;
    reader->attr.flags |= logits ? OP_FLAG_LOGITS : 0;
    reader->attr.flags |= op_row_of(reader->op)->in_place == (int)k ? OP_FLAG_IN_PLACE : 0;
}

// Did the latest instructions cast to it?
static bool is_cast_here(const instr_list *list, uint32_t tensor_id)
{
    const instr *last = list->count == 0 ? NULL : &list->data[list->count - 1];
    return last != NULL && last->op == HR_OP_CAST && last->out[0] == tensor_id &&
           (last->attr.flags & OP_FLAG_PROMOTED) != 0;
}

// Where the cast of `from` is noted that this reader may share: `own` if none. One that another module made is forgotten.
static uint32_t *noted_cast(const draft *d, const instr *reader, uint32_t from, bool wide,
                            const cast_table *casts, uint32_t *own)
{
    uint32_t *noted = wide ? &casts->to_wide[from] : &casts->to_compute[from];
    if (!is_shared(d, reader, from)) {
        return own;
    }
    if (d->pytorch && d->tensors.data[from].category != HR_CATEGORY_WEIGHTS &&
        casts->module[from] != reader->layer) {
        casts->module[from] = reader->layer;
        *noted = HR_NO_ID;
    }
    return noted;
}

static hr_status cast_input(draft *d, instr_list *list, instr *i, uint32_t k, hr_dtype computed,
                            const cast_table *casts, hr_err *err)
{
    const bool wide = is_wide(i, k) || computed == HR_F32;
    const hr_dtype wanted = wide ? HR_F32 : computed;
    const uint32_t from = i->in[k];
    if (!dtype_is_real(d->tensors.data[from].dtype) || d->tensors.data[from].dtype == wanted) {
        return HR_OK;
    }
    uint32_t own = HR_NO_ID, *made = noted_cast(d, i, from, wide, casts, &own);
    if (*made == HR_NO_ID) {
        HR_TRY(add_cast(d, list, i, from, wanted, made, err));
        note_reader(d, &list->data[list->count - 1], i, k);
    }
    i->in[k] = *made;
    return HR_OK;
}

static hr_status cast_inputs(draft *d, instr_list *list, instr *i, const cast_table *casts, hr_err *err)
{
    const hr_dtype computed = computes_in(d, i);
    for (uint32_t n = 0; n < i->in_count && !op_row_of(i->op)->view; n++) {
        const uint32_t k =
            d->pytorch ? i->in_count - 1 - n : n; // C++ evaluates PyTorch's casts from the last on
        HR_TRY(cast_input(d, list, i, k, computed, casts, err));
    }
    if (d->pytorch && i->op == HR_OP_ADD && is_cast_here(list, i->in[1])) { // a result lies over the first
        const uint32_t first = i->in[0];
        i->in[0] = i->in[1];
        i->in[1] = first;
        i->attr.flags |= OP_FLAG_IN_PLACE;
    }
    return HR_OK;
}

static hr_status type_outputs(draft *d, const instr *i, hr_err *err)
{
    const op_row *row = op_row_of(i->op);
    const hr_dtype computed = computes_in(d, i);
    for (uint32_t k = 0; k < i->out_count; k++) {
        tensor *t = &d->tensors.data[i->out[k]];
        if (t->persistent || !dtype_is_real(t->dtype)) {
            continue;
        }
        t->dtype = row->view                       ? d->tensors.data[i->in[0]].dtype
                   : (row->wide_out >> k & 1) != 0 ? HR_F32
                                                   : computed;
        HR_TRY(draft_measure(t, err));
    }
    return HR_OK;
}

static hr_status cast_program(draft *d, const cast_table *casts, instr_list *list, hr_err *err)
{
    for (uint32_t n = 0; n < d->instrs.count; n++) {
        instr i = d->instrs.data[n];
        if (i.phase == HR_PHASE_FORWARD && i.lane == HR_LANE_COMPUTE) {
            HR_TRY(cast_inputs(d, list, &i, casts, err));
            HR_TRY(type_outputs(d, &i, err));
        }
        instr *placed = vec_push(list);
        if (placed == NULL) {
            return HR_FAIL(err, NOMEM, "no host memory for the program's instructions");
        }
        *placed = i;
    }
    return HR_OK;
}

hr_status pass_precision(draft *d, hr_err *err)
{
    if (!is_half(d->compute)) {
        return HR_OK;
    }
    const uint32_t count = d->tensors.count;
    cast_table casts = {.to_compute = hr_calloc(count, sizeof(uint32_t)),
                        .to_wide = hr_calloc(count, sizeof(uint32_t)),
                        .module = hr_calloc(count, sizeof(uint32_t))};
    instr_list list = {NULL, 0, 0};
    hr_status status = casts.to_compute != NULL && casts.to_wide != NULL && casts.module != NULL
                           ? widen_state(d, err)
                           : HR_FAIL(err, NOMEM, "no host memory for the casts of %u tensors", count);
    for (uint32_t k = 0; status == HR_OK && k < count; k++) {
        casts.to_compute[k] = casts.to_wide[k] = casts.module[k] = HR_NO_ID;
    }
    if (status == HR_OK) {
        status = cast_program(d, &casts, &list, err);
    }
    if (status == HR_OK) {
        vec_deinit(&d->instrs);
        d->instrs = list;
    } else {
        vec_deinit(&list);
    }
    hr_free(casts.to_compute);
    hr_free(casts.to_wide);
    hr_free(casts.module);
    return status;
}
