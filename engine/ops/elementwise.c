// SPDX-License-Identifier: Apache-2.0
// Operations that work element by element.
#include "ops/rows.h"

static hr_status add_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                           size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count;
    if (!shape_equal(&in[0].shape, &in[1].shape)) {
        char left[64];
        char right[64];
        return HR_FAIL(err, MODEL, "an addition needs two equal shapes, had %s and %s",
                       shape_text(&in[0].shape, left, sizeof left),
                       shape_text(&in[1].shape, right, sizeof right));
    }
    out[0] = in[0];
    return HR_OK;
}

const op_row op_row_RELU = {
    .name = "relu",
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .shape = op_shape_like_first,
    .in_place = 0,
    .keep_out = 0x1,
    .grad_count = 1,
    .grad = {{.op = HR_OP_RELU_BWD,
              .operand_count = 2,
              .operand = {{OP_SRC_OUT, 0}, {OP_SRC_GRAD, 0}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_RELU_BWD = {
    .name = "relu_bwd", .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1, .in_place = 1};

// The gradient of both inputs is the gradient of the sum: no instruction, no bytes.
const op_row op_row_ADD = {
    .name = "add",
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .shape = add_shape,
    .in_place = 0,
    .passes_gradient = 0x3,
    .keep_in = 0x3,
};
