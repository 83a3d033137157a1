// SPDX-License-Identifier: Apache-2.0
// Dense: y = x·w + b over the last dimension; with OP_FLAG_TRANSPOSE y = x·wᵀ + b, so that the table of an
// embedding serves as the weights of the classifier behind it.
#include "ops/rows.h"

static bool is_transposed(const op_attr *a)
{
    return (a->flags & OP_FLAG_TRANSPOSE) != 0;
}

static hr_status dense_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                             size_t out_count, hr_err *err)
{
    const hr_shape *x = &in[0].shape;
    const hr_shape *w = &in[1].shape;
    if (x->rank < 2 || x->rank > 4) {
        return HR_FAIL(err, MODEL, "a dense layer needs [N,features] or up to two dimensions more, had %u",
                       x->rank);
    }
    const int rows = is_transposed(a) ? 1 : 0;
    const int64_t features = x->dim[x->rank - 1], units = w->dim[1 - rows];
    if (w->rank != 2 || w->dim[rows] != features) {
        return HR_FAIL(err, MODEL, "a dense layer over %lld features needs as many weight rows, had %lld",
                       (long long)features, (long long)w->dim[rows]);
    }
    const size_t added = (a->flags & OP_FLAG_ADDED) != 0;
    if (in_count - added > 2 && (in[2].shape.rank != 1 || in[2].shape.dim[0] != units)) {
        return HR_FAIL(err, MODEL, "the bias needs %lld elements, had %lld", (long long)units,
                       (long long)in[2].shape.dim[0]);
    }
    out[0] = in[0];
    out[0].shape.dim[x->rank - 1] = units;
    for (size_t k = 1; k < out_count; k++) {
        out[k] = out[0];
    }
    return HR_OK;
}

// Two FLOPs per multiply-add; `features` has the elements of x, `units` those of y.
static uint64_t product_flops(const op_operand *features, const op_operand *units)
{
    uint64_t elements = 0;
    (void)shape_elements(&features->shape, &elements);
    return 2 * elements * (uint64_t)units->shape.dim[units->shape.rank - 1];
}

static uint64_t dense_flops(const op_query *q)
{
    return product_flops(&q->in[0], &q->out[0]);
}

static uint64_t dense_bwd_data_flops(const op_query *q)
{
    return product_flops(&q->out[0], &q->in[0]);
}

static uint64_t dense_bwd_weights_flops(const op_query *q)
{
    return product_flops(&q->in[0], &q->in[1]);
}

const op_row op_row_DENSE = {
    .name = "dense",
    .traits = {COST_PRODUCT, OP_COSTLY, OP_ACTS, OP_WHOLE},
    .min_in = 2,
    .max_in = 4,
    .min_out = 1,
    .max_out = 2,
    .shape = dense_shape,
    .flops = dense_flops,
    .in_place = -1,
    .keep_in = 0x3,
    .grad_count = 2,
    .grad =
        {
            {.op = HR_OP_DENSE_BWD_WEIGHTS,
             .operand_count = 2,
             .operand = {{OP_SRC_IN, 0}, {OP_SRC_GRAD, 0}},
             .result_count = 2,
             .result = {1, 2}},
            {.op = HR_OP_DENSE_BWD_DATA,
             .operand_count = 2,
             .operand = {{OP_SRC_GRAD, 0}, {OP_SRC_IN, 1}},
             .result_count = 1,
             .result = {0}},
        },
};

const op_row op_row_DENSE_BWD_DATA = {
    .name = "dense_bwd_data",
    .traits = {COST_PRODUCT, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 3,
    .min_out = 1,
    .max_out = 1,
    .flops = dense_bwd_data_flops,
    .in_place = -1,
};

const op_row op_row_DENSE_BWD_WEIGHTS = {
    .name = "dense_bwd_weights",
    .traits = {COST_PRODUCT, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 2,
    .flops = dense_bwd_weights_flops,
    .in_place = -1,
};
