// SPDX-License-Identifier: Apache-2.0
// Operations that work element by element.
#include "ops/rows.h"

static hr_status check_equal(const char *what, const op_operand *in, hr_err *err)
{
    if (!shape_equal(&in[0].shape, &in[1].shape)) {
        char left[64];
        char right[64];
        return HR_FAIL(err, MODEL, "%s needs two equal shapes, had %s and %s", what,
                       shape_text(&in[0].shape, left, sizeof left),
                       shape_text(&in[1].shape, right, sizeof right));
    }
    return HR_OK;
}

static hr_status add_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                           size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count;
    HR_TRY(check_equal("an addition", in, err));
    out[0] = in[0];
    return HR_OK;
}

static hr_status multiply_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                                size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count;
    HR_TRY(check_equal("a multiplication", in, err));
    out[0] = in[0];
    return HR_OK;
}

static hr_status scale_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                             size_t out_count, hr_err *err)
{
    (void)a, (void)out_count;
    if (in_count > 1 && (in[1].shape.rank != 1 || in[1].shape.dim[0] != 1)) {
        char text[64];
        return HR_FAIL(err, MODEL, "a factor is one number, had %s",
                       shape_text(&in[1].shape, text, sizeof text));
    }
    out[0] = in[0];
    return HR_OK;
}

static uint64_t multiply_bwd_flops(const op_query *q)
{
    return 2 * op_out_elements(q, 0);
}

const op_row op_row_RELU = {
    .name = "relu",
    .keeps_channels = true,
    .traits = {COST_ELEMENTWISE, OP_CHEAP, OP_NO_ACT, OP_WHOLE},
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

const op_row op_row_RELU_BWD = {.name = "relu_bwd",
                                .traits = {COST_ELEMENTWISE, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                                .min_in = 2,
                                .max_in = 3,
                                .min_out = 1,
                                .max_out = 1,
                                .in_place = 1};

const op_row op_row_RELU6 = {
    .name = "relu6",
    .keeps_channels = true,
    .traits = {COST_ELEMENTWISE, OP_CHEAP, OP_NO_ACT, OP_BY_ELEMENT},
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .shape = op_shape_like_first,
    .in_place = 0,
    .keep_out = 0x1,
    .grad_count = 1,
    .grad = {{.op = HR_OP_RELU6_BWD,
              .operand_count = 2,
              .operand = {{OP_SRC_OUT, 0}, {OP_SRC_GRAD, 0}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_RELU6_BWD = {.name = "relu6_bwd",
                                 .traits = {COST_ELEMENTWISE, OP_COSTLY, OP_NO_ACT, OP_BY_ELEMENT},
                                 .min_in = 2,
                                 .max_in = 3,
                                 .min_out = 1,
                                 .max_out = 1,
                                 .in_place = 1};

// The gradient of both inputs is the gradient of the sum: no instruction, no bytes.
const op_row op_row_ADD = {
    .name = "add",
    .traits = {COST_ELEMENTWISE, OP_CHEAP, OP_ACTS, OP_BY_ELEMENT},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .shape = add_shape,
    .in_place = 0,
    .passes_gradient = 0x3,
    .keep_in = 0x3,
};

const op_row op_row_MULTIPLY = {
    .name = "multiply",
    .traits = {COST_ELEMENTWISE, OP_COSTLY, OP_NO_ACT, OP_BY_ELEMENT},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .shape = multiply_shape,
    .in_place = 0,
    .keep_in = 0x3,
    .grad_count = 1,
    .grad = {{.op = HR_OP_MULTIPLY_BWD,
              .operand_count = 3,
              .operand = {{OP_SRC_IN, 0}, {OP_SRC_IN, 1}, {OP_SRC_GRAD, 0}},
              .result_count = 2,
              .result = {0, 1}}},
};

// da may take dy's storage: both gradients of an element are known before the first is written.
const op_row op_row_MULTIPLY_BWD = {.name = "multiply_bwd",
                                    .traits = {COST_ELEMENTWISE, OP_COSTLY, OP_NO_ACT, OP_BY_ELEMENT},
                                    .min_in = 3,
                                    .max_in = 3,
                                    .min_out = 2,
                                    .max_out = 2,
                                    .flops = multiply_bwd_flops,
                                    .in_place = 2};

// The factor is no parameter: it gets no gradient, and takes part in that of x.
const op_row op_row_SCALE = {
    .name = "scale",
    .keeps_channels = true,
    .traits = {COST_ELEMENTWISE, OP_COSTLY, OP_NO_ACT, OP_BY_ELEMENT, .whole = 0x2},
    .min_in = 1,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .shape = scale_shape,
    .in_place = 0,
    .wide_in = 0x2,
    .grad_count = 1,
    .grad = {{.op = HR_OP_SCALE,
              .operand_count = 2,
              .operand = {{OP_SRC_GRAD, 0}, {OP_SRC_IN, 1}},
              .result_count = 1,
              .result = {0}}},
};
