// SPDX-License-Identifier: Apache-2.0
// Activations but ReLU and ReLU6. Those whose derivative follows from the result keep the result, the others what they read;
// a gradient may take the storage of the one it came from.
#include "ops/rows.h"

// An exponential counts as one operation, as in the softmax.
static uint64_t two(const op_query *q)
{
    return 2 * op_out_elements(q, 0);
}

static uint64_t three(const op_query *q)
{
    return 3 * op_out_elements(q, 0);
}

static uint64_t four(const op_query *q)
{
    return 4 * op_out_elements(q, 0);
}

static uint64_t eight(const op_query *q)
{
    return 8 * op_out_elements(q, 0);
}

static uint64_t twelve(const op_query *q)
{
    return 12 * op_out_elements(q, 0);
}

// Last whether f(0) is 0.
#define ROW(id, text, cost, in_bit, out_bit, kept, of_zero)                                                  \
    const op_row op_row_##id = {.name = text,                                                                \
                                .traits = {COST_ELEMENTWISE, OP_CHEAP, OP_NO_ACT, OP_BY_ELEMENT},            \
                                .min_in = 1,                                                                 \
                                .max_in = 1,                                                                 \
                                .min_out = 1,                                                                \
                                .max_out = 1,                                                                \
                                .shape = op_shape_like_first,                                                \
                                .flops = cost,                                                               \
                                .keeps_channels = of_zero,                                                   \
                                .in_place = 0,                                                               \
                                .keep_in = in_bit,                                                           \
                                .keep_out = out_bit,                                                         \
                                .grad_count = 1,                                                             \
                                .grad = {{.op = HR_OP_##id##_BWD,                                            \
                                          .operand_count = 2,                                                \
                                          .operand = {{kept, 0}, {OP_SRC_GRAD, 0}},                          \
                                          .result_count = 1,                                                 \
                                          .result = {0}}}};

#define BWD_ROW(id, text, cost)                                                                              \
    const op_row op_row_##id = {.name = text,                                                                \
                                .traits = {COST_ELEMENTWISE, OP_COSTLY, OP_NO_ACT, OP_BY_ELEMENT},           \
                                .min_in = 2,                                                                 \
                                .max_in = 2,                                                                 \
                                .min_out = 1,                                                                \
                                .max_out = 1,                                                                \
                                .flops = cost,                                                               \
                                .in_place = 1};

ROW(GELU, "gelu", eight, 0x1, 0, OP_SRC_IN, true)
ROW(SILU, "silu", four, 0x1, 0, OP_SRC_IN, true)
ROW(TANH, "tanh", four, 0, 0x1, OP_SRC_OUT, true)
ROW(SIGMOID, "sigmoid", three, 0, 0x1, OP_SRC_OUT, false)
BWD_ROW(GELU_BWD, "gelu_bwd", twelve)
BWD_ROW(SILU_BWD, "silu_bwd", eight)
BWD_ROW(TANH_BWD, "tanh_bwd", three)
BWD_ROW(SIGMOID_BWD, "sigmoid_bwd", three)

ROW(HARD_SIGMOID, "hard_sigmoid", three, 0, 0x1, OP_SRC_OUT, false)
ROW(HARD_SWISH, "hard_swish", four, 0x1, 0, OP_SRC_IN, true)
ROW(LEAKY_RELU, "leaky_relu", two, 0, 0x1, OP_SRC_OUT, true)
ROW(SOFTPLUS, "softplus", three, 0x1, 0, OP_SRC_IN, false)
ROW(MISH, "mish", eight, 0x1, 0, OP_SRC_IN, true)
BWD_ROW(HARD_SIGMOID_BWD, "hard_sigmoid_bwd", three)
BWD_ROW(HARD_SWISH_BWD, "hard_swish_bwd", four)
BWD_ROW(LEAKY_RELU_BWD, "leaky_relu_bwd", two)
BWD_ROW(SOFTPLUS_BWD, "softplus_bwd", four)
BWD_ROW(MISH_BWD, "mish_bwd", twelve)
