// SPDX-License-Identifier: Apache-2.0
// Softmax over the last dimension. With OP_FLAG_CAUSAL x is [...,Lq,Lk], row i is the distribution over columns
// 0 to i, and 0 behind them.
#include "ops/rows.h"

static hr_status softmax_shape(const op_attr *attr, const op_operand *in, size_t in_count, op_operand *out,
                               size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count;
    const bool causal = (attr->flags & OP_FLAG_CAUSAL) != 0;
    const uint32_t rank = in[0].shape.rank, least = causal ? 2 : 1;
    if (rank < least || rank > 4) {
        return HR_FAIL(err, MODEL, "a %ssoftmax needs %u to 4 dimensions, had %u", causal ? "causal " : "",
                       least, rank);
    }
    out[0] = in[0];
    return HR_OK;
}

// Maximum, subtraction, exponential, sum, division.
static uint64_t softmax_flops(const op_query *q)
{
    return 5 * op_out_elements(q, 0);
}

// Product and sum, subtraction, product.
static uint64_t softmax_bwd_flops(const op_query *q)
{
    return 4 * op_out_elements(q, 0);
}

// y may take x's storage: a row is read whole before it is written.
const op_row op_row_SOFTMAX = {
    .name = "softmax",
    .traits = {COST_REDUCTION, OP_CHEAP, OP_NO_ACT, OP_BY_ROW},
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .shape = softmax_shape,
    .flops = softmax_flops,
    .in_place = 0,
    .keep_out = 0x1,
    .grad_count = 1,
    .grad = {{.op = HR_OP_SOFTMAX_BWD,
              .operand_count = 2,
              .operand = {{OP_SRC_OUT, 0}, {OP_SRC_GRAD, 0}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_SOFTMAX_BWD = {
    .name = "softmax_bwd",
    .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_BY_ROW},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .flops = softmax_bwd_flops,
    .in_place = 1,
};
