// SPDX-License-Identifier: Apache-2.0
// Sums and means over neighbouring axes.
#include "ops/rows.h"

static hr_status reduce_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                              size_t out_count, hr_err *err)
{
    (void)out_count;
    const hr_shape *x = &in[0].shape;
    if (in_count > 1 && !shape_equal(x, &in[1].shape)) {
        return HR_FAIL(err, MODEL, "a sum of products needs two equal shapes");
    }
    const int64_t behind = (int64_t)a->axis + a->count;
    if (a->axis < 0 || a->count < 1 || behind > (int64_t)x->rank) {
        return HR_FAIL(err, MODEL, "a sum over %d axes from axis %d needs as many, had %u dimensions",
                       a->count, a->axis, x->rank);
    }
    out[0] = in[0];
    out[0].layout = HR_LAYOUT_PLAIN;
    out[0].shape = shape_of((uint32_t)a->axis, x->dim);
    for (int64_t k = behind; k < (int64_t)x->rank; k++) {
        out[0].shape.dim[out[0].shape.rank++] = x->dim[k];
    }
    if (out[0].shape.rank == 0) {
        out[0].shape = shape_of(1, (const int64_t[]){1});
    }
    return HR_OK;
}

static uint64_t reduce_flops(const op_query *q)
{
    return q->in_count * op_in_elements(q, 0);
}

// Only the shape of x is needed, yet the tape keeps it whole (reference tensorflow.md D3).
const op_row op_row_REDUCE = {
    .name = "reduce",
    .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 1,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .shape = reduce_shape,
    .flops = reduce_flops,
    .in_place = -1,
    .keep_in = 0x1,
    .grad_count = 1,
    .grad = {{.op = HR_OP_REDUCE_BWD,
              .operand_count = 1,
              .operand = {{OP_SRC_GRAD, 0}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_REDUCE_BWD = {.name = "reduce_bwd",
                                  .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                                  .min_in = 1,
                                  .max_in = 1,
                                  .min_out = 1,
                                  .max_out = 1,
                                  .in_place = -1};
