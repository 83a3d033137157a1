// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts: who computes a token, its way to them and back, and their products.
#include "ops/experts.h"

#include "ops/rows.h"

static int64_t last(const hr_shape *s)
{
    return s->dim[s->rank - 1];
}

// ---- choice -----------------------------------------------------------------------------------------------

static hr_status route_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                             size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count;
    const hr_shape *logits = &in[0].shape;
    if (logits->rank != 3 || logits->dim[2] > OP_MAX_EXPERTS) {
        char had[64];
        return HR_FAIL(err, MODEL,
                       "a choice of experts needs logits [N,tokens,experts] of at most %d, had %s",
                       OP_MAX_EXPERTS, shape_text(logits, had, sizeof had));
    }
    if (a->choices < 1 || a->choices > OP_MAX_CHOICES || a->choices > logits->dim[2]) {
        return HR_FAIL(err, MODEL, "a token has 1 to %d experts, and no more than the %lld there are, had %d",
                       OP_MAX_CHOICES, (long long)logits->dim[2], a->choices);
    }
    if (a->slots < 1 || a->slots > INT32_MAX / logits->dim[2]) {
        return HR_FAIL(err, MODEL, "an expert needs slots, in all at most %d, had %d for each", INT32_MAX,
                       a->slots);
    }
    out[0] = in[0];
    out[0].dtype = op_wide_dtype(in[0].dtype);
    out[0].shape.dim[2] = a->choices;
    out[1] = out[0];
    out[1].dtype = HR_I32;
    return HR_OK;
}

// Maximum, exponential and sum of every row, and the search for each choice.
static uint64_t route_flops(const op_query *q)
{
    return op_in_elements(q, 0) * (3 + (uint64_t)q->attr.choices);
}

static uint64_t route_bwd_flops(const op_query *q)
{
    return 7 * op_out_elements(q, 0);
}

const op_row op_row_ROUTE = {
    .name = "route",
    .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 1,
    .max_in = 1,
    .min_out = 2,
    .max_out = 2,
    .shape = route_shape,
    .flops = route_flops,
    .in_place = -1,
    .wide_in = 0x1,
    .wide_out = 0x1,
    .keep_in = 0x1,
    .keep_out = 0x2,
    .state_out = 0x2,
    .grad_count = 1,
    .grad = {{.op = HR_OP_ROUTE_BWD,
              .operand_count = 3,
              .operand = {{OP_SRC_IN, 0}, {OP_SRC_OUT, 1}, {OP_SRC_GRAD, 0}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_ROUTE_BWD = {
    .name = "route_bwd",
    .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 3,
    .max_in = 3,
    .min_out = 1,
    .max_out = 1,
    .flops = route_bwd_flops,
    .in_place = -1,
};

// ---- balance ----------------------------------------------------------------------------------------------

static hr_status check_slots(const op_operand *tokens, const op_operand *slots, hr_err *err)
{
    const hr_shape *t = &tokens->shape, *s = &slots->shape;
    if (slots->dtype == HR_I32 && t->rank == 3 && s->rank == 3 && t->dim[0] == s->dim[0] &&
        t->dim[1] == s->dim[1]) {
        return HR_OK;
    }
    char had[64], needed[64];
    return HR_FAIL(err, MODEL, "tokens %s need int32 slots of as many, had %s of %s",
                   shape_text(t, needed, sizeof needed), dtype_name((hr_dtype)slots->dtype),
                   shape_text(s, had, sizeof had));
}

static hr_status balance_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                               size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count;
    HR_TRY(check_slots(&in[0], &in[1], err));
    out[0] = (op_operand){.shape = shape_of(1, (const int64_t[]){1}),
                          .dtype = op_wide_dtype(in[0].dtype),
                          .layout = HR_LAYOUT_PLAIN};
    return HR_OK;
}

static uint64_t balance_flops(const op_query *q)
{
    return 5 * op_in_elements(q, 0);
}

static uint64_t balance_bwd_flops(const op_query *q)
{
    return 7 * op_in_elements(q, 0);
}

const op_row op_row_BALANCE = {
    .name = "load_balance",
    .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .shape = balance_shape,
    .flops = balance_flops,
    .in_place = -1,
    .wide_in = 0x1,
    .wide_out = 0x1,
    .keep_in = 0x3,
    .grad_count = 1,
    .grad = {{.op = HR_OP_BALANCE_BWD,
              .operand_count = 2,
              .operand = {{OP_SRC_IN, 0}, {OP_SRC_IN, 1}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_BALANCE_BWD = {
    .name = "load_balance_bwd",
    .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 3,
    .min_out = 1,
    .max_out = 1,
    .flops = balance_bwd_flops,
    .in_place = -1,
};

// ---- there and back ---------------------------------------------------------------------------------------

static hr_status dispatch_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                                size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count;
    HR_TRY(check_slots(&in[0], &in[1], err));
    if (a->slots < 1 || a->experts < 1) {
        return HR_FAIL(err, MODEL, "a dispatch needs experts with slots, had %d with %d", a->experts,
                       a->slots);
    }
    const hr_shape *x = &in[0].shape;
    out[0] = in[0];
    out[0].shape = shape_of(4, (const int64_t[]){x->dim[0], a->slots, a->experts, x->dim[2]});
    return HR_OK;
}

static uint64_t choices_flops(const op_query *q)
{
    return op_out_elements(q, 0) * (uint64_t)last(&q->in[1].shape);
}

const op_row op_row_DISPATCH = {
    .name = "dispatch",
    .traits = {COST_COPY, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .shape = dispatch_shape,
    .flops = op_no_flops,
    .in_place = -1,
    .keep_in = 0x2,
    .grad_count = 1,
    .grad = {{.op = HR_OP_DISPATCH_BWD,
              .operand_count = 2,
              .operand = {{OP_SRC_GRAD, 0}, {OP_SRC_IN, 1}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_DISPATCH_BWD = {
    .name = "dispatch_bwd",
    .traits = {COST_ELEMENTWISE, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .flops = choices_flops,
    .in_place = -1,
};

static hr_status gather_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                              size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count;
    const hr_shape *y = &in[0].shape;
    HR_TRY(check_slots(&in[1], &in[2], err));
    if (y->rank != 4 || y->dim[0] != in[1].shape.dim[0] || last(&in[1].shape) != last(&in[2].shape)) {
        char had[64], gates[64];
        return HR_FAIL(err, MODEL,
                       "experts give [N,slots,experts,features] to [N,tokens,choices] gates, had %s and %s",
                       shape_text(y, had, sizeof had), shape_text(&in[1].shape, gates, sizeof gates));
    }
    out[0] = in[0];
    out[0].shape = shape_of(3, (const int64_t[]){y->dim[0], in[1].shape.dim[1], y->dim[3]});
    return HR_OK;
}

static uint64_t gather_flops(const op_query *q)
{
    return 2 * choices_flops(q);
}

static uint64_t gather_bwd_flops(const op_query *q)
{
    return 3 * op_in_elements(q, 3) * (uint64_t)last(&q->in[1].shape);
}

const op_row op_row_GATHER = {
    .name = "gather_experts",
    .traits = {COST_ELEMENTWISE, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 3,
    .max_in = 3,
    .min_out = 1,
    .max_out = 1,
    .shape = gather_shape,
    .flops = gather_flops,
    .in_place = -1,
    .wide_in = 0x2,
    .keep_in = 0x7,
    .grad_count = 1,
    .grad = {{.op = HR_OP_GATHER_BWD,
              .operand_count = 4,
              .operand = {{OP_SRC_IN, 0}, {OP_SRC_IN, 1}, {OP_SRC_IN, 2}, {OP_SRC_GRAD, 0}},
              .result_count = 2,
              .result = {0, 1}}},
};

const op_row op_row_GATHER_BWD = {
    .name = "gather_experts_bwd",
    .traits = {COST_ELEMENTWISE, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 4,
    .max_in = 4,
    .min_out = 2,
    .max_out = 2,
    .flops = gather_bwd_flops,
    .in_place = -1,
};

// ---- products ---------------------------------------------------------------------------------------------

static hr_status expert_dense_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                                    size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count;
    const hr_shape *x = &in[0].shape, *w = &in[1].shape;
    if (x->rank != 4 || w->rank != 3 || x->dim[2] != w->dim[0] || x->dim[3] != w->dim[1]) {
        char had[64], weights[64];
        return HR_FAIL(
            err, MODEL,
            "experts need [N,slots,experts,features] and weights [experts,features,units], had %s and %s",
            shape_text(x, had, sizeof had), shape_text(w, weights, sizeof weights));
    }
    out[0] = in[0];
    out[0].shape.dim[3] = w->dim[2];
    return HR_OK;
}

static uint64_t expert_dense_flops(const op_query *q)
{
    return 2 * op_out_elements(q, 0) * (uint64_t)last(&q->in[0].shape);
}

static uint64_t expert_dense_bwd_weights_flops(const op_query *q)
{
    return 2 * op_in_elements(q, 0) * (uint64_t)last(&q->in[1].shape);
}

const op_row op_row_EXPERT_DENSE = {
    .name = "expert_dense",
    .traits = {COST_PRODUCT, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .shape = expert_dense_shape,
    .flops = expert_dense_flops,
    .in_place = -1,
    .keep_in = 0x3,
    .grad_count = 2,
    .grad =
        {
            {.op = HR_OP_EXPERT_DENSE_BWD_WEIGHTS,
             .operand_count = 2,
             .operand = {{OP_SRC_IN, 0}, {OP_SRC_GRAD, 0}},
             .result_count = 1,
             .result = {1}},
            {.op = HR_OP_EXPERT_DENSE_BWD_DATA,
             .operand_count = 2,
             .operand = {{OP_SRC_GRAD, 0}, {OP_SRC_IN, 1}},
             .result_count = 1,
             .result = {0}},
        },
};

const op_row op_row_EXPERT_DENSE_BWD_DATA = {
    .name = "expert_dense_bwd_data",
    .traits = {COST_PRODUCT, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .flops = expert_dense_flops,
    .in_place = -1,
};

const op_row op_row_EXPERT_DENSE_BWD_WEIGHTS = {
    .name = "expert_dense_bwd_weights",
    .traits = {COST_PRODUCT, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .flops = expert_dense_bwd_weights_flops,
    .in_place = -1,
};
