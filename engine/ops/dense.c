// SPDX-License-Identifier: Apache-2.0
// Dense: y = x·w + b over the last dimension.
#include "ops/rows.h"

static hr_status dense_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                             size_t out_count, hr_err *err)
{
    (void)a, (void)out_count;
    const hr_shape *x = &in[0].shape;
    const hr_shape *w = &in[1].shape;
    if (x->rank != 2) {
        return HR_FAIL(err, MODEL,
                       "a dense layer needs [N,features], had %u dimensions: put a flatten before it",
                       x->rank);
    }
    if (w->rank != 2 || w->dim[0] != x->dim[1]) {
        return HR_FAIL(err, MODEL, "a dense layer over %lld features needs as many weight rows, had %lld",
                       (long long)x->dim[1], (long long)w->dim[0]);
    }
    if (in_count > 2 && (in[2].shape.rank != 1 || in[2].shape.dim[0] != w->dim[1])) {
        return HR_FAIL(err, MODEL, "the bias needs %lld elements, had %lld", (long long)w->dim[1],
                       (long long)in[2].shape.dim[0]);
    }
    out[0] = in[0];
    out[0].shape = shape_of(2, (const int64_t[]){x->dim[0], w->dim[1]});
    return HR_OK;
}

static uint64_t dense_flops(const op_query *q)
{
    return 2 * op_in_elements(q, 0) * (uint64_t)q->in[1].shape.dim[1];
}

static uint64_t dense_bwd_data_flops(const op_query *q)
{
    return 2 * op_out_elements(q, 0) * (uint64_t)q->in[1].shape.dim[1];
}

static uint64_t dense_bwd_weights_flops(const op_query *q)
{
    return 2 * op_in_elements(q, 0) * (uint64_t)q->in[1].shape.dim[1];
}

const op_row op_row_DENSE = {
    .name = "dense",
    .min_in = 2,
    .max_in = 3,
    .min_out = 1,
    .max_out = 1,
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
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .flops = dense_bwd_data_flops,
    .in_place = -1,
};

const op_row op_row_DENSE_BWD_WEIGHTS = {
    .name = "dense_bwd_weights",
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 2,
    .flops = dense_bwd_weights_flops,
    .in_place = -1,
};
