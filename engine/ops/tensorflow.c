// SPDX-License-Identifier: Apache-2.0
#include "ops/tensorflow.h"

#include <stddef.h>

#include "ops/rows.h"

enum { INT32_BYTES = 4, MATRIX = 2 };

static uint64_t real_bytes(const op_query *forward)
{
    return dtype_bytes((hr_dtype)forward->out[0].dtype);
}

static uint64_t like_result(const op_query *forward)
{
    return op_out_elements(forward, 0) * real_bytes(forward);
}

// Of everything that has an output k of ours for it: a mean, a variance or a loss.
static uint64_t like_second(const op_query *forward)
{
    return op_out_elements(forward, 1) * dtype_bytes((hr_dtype)forward->out[1].dtype);
}

static uint64_t channels(const op_query *forward)
{
    const hr_shape *x = &forward->in[0].shape;
    return (uint64_t)x->dim[x->rank - 1] * real_bytes(forward);
}

// GroupNormalization multiplies its weights with what a sample has a group of.
static uint64_t channels_a_sample(const op_query *forward)
{
    return (uint64_t)forward->in[0].shape.dim[0] * channels(forward);
}

static uint64_t scalar(const op_query *forward)
{
    return real_bytes(forward);
}

// A Dense layer of more than rows is a product of rows, whose Reshape keeps what it reads: the product before its bias, or
// without one the result.
static bool is_reshaped(const op_query *forward)
{
    return forward->out[0].shape.rank > MATRIX;
}

static bool is_product(const op_query *forward)
{
    return is_reshaped(forward) && forward->in_count <= MATRIX;
}

static uint64_t product_before_bias(const op_query *forward)
{
    return is_reshaped(forward) && !is_product(forward) ? like_result(forward) : 0;
}

// A Conv1D is a Conv2D of an image of one row, whose Squeeze keeps the product before its bias.
static uint64_t row_before_bias(const op_query *forward)
{
    const int64_t *x = forward->in[0].shape.dim;
    return x[1] == 1 && x[2] > 1 && forward->in_count > MATRIX ? like_result(forward) : 0;
}

// gelu is a chain of operations; its tanh form is a longer one.
static uint64_t like_result_of_tanh(const op_query *forward)
{
    return (forward->attr.flags & OP_FLAG_TANH) != 0 ? like_result(forward) : 0;
}

// keras.ops.repeat along the height, then along the width.
static uint64_t repeated_rows(const op_query *forward)
{
    return like_result(forward) / (uint64_t)forward->attr.kernel_w;
}

// tf.where counts negative places from behind.
static uint64_t indices(const op_query *forward)
{
    return op_in_elements(forward, 0) * INT32_BYTES;
}

// The mean over the last dimension, and before that what was squared.
static uint64_t like_prediction(const op_query *forward)
{
    return op_in_elements(forward, 0) * dtype_bytes((hr_dtype)forward->in[0].dtype);
}

static uint64_t losses_of_rows(const op_query *forward)
{
    const hr_shape *x = &forward->in[0].shape;
    return like_prediction(forward) / (uint64_t)x->dim[x->rank - 1];
}

// clang-format off
static const framework_rule rules[HR_OP_COUNT] = {
    [HR_OP_RESHAPE] = {"Reshape", .keep_in = 0x1},
    [HR_OP_CONV2D] = {"Conv2D, DepthwiseConv2dNative, BiasAdd", .keep_in = 0x3,
                      .extra = {{"product", EXTRA_KEPT, row_before_bias}}},
    [HR_OP_CONV2D_TRANSPOSE] = {"Conv2DBackpropInput, BiasAdd", .keep_in = 0x3},
    [HR_OP_DENSE] = {"MatMul, BiasAdd", .keep_in = 0x3, .keeps_result = is_product,
                     .extra = {{"product", EXTRA_KEPT, product_before_bias}}},
    // tf.nn.moments and batch_normalization: (x - mean)², x times the scale, and the result that the next layer keeps. Of the channels
    // two products for each moving statistic, the root, and what x is multiplied with and what is added to that.
    [HR_OP_BATCH_NORM] = {"Mean, SquaredDifference, Rsqrt, Mul, AddV2", .keep_in = 0x1, .keep_out = 0x6,
                          .extra = {{"squared_difference", EXTRA_KEPT, like_result}, {"moving", EXTRA_KEPT, channels, .copies = 4},
                                    {"root", EXTRA_KEPT, channels}, {"scaled", EXTRA_KEPT, like_result},
                                    {"scale", EXTRA_KEPT, channels, .copies = 3}}},
    [HR_OP_BATCH_NORM_EVAL] = {"Mul, AddV2"},
    [HR_OP_LAYER_NORM] = {"Mean, SquaredDifference, Rsqrt, Mul, AddV2", .keep_in = 0x1, .keep_out = 0x6,
                          .extra = {{"squared_difference", EXTRA_KEPT, like_result}, {"root", EXTRA_KEPT, like_second, .copies = 2},
                                    {"scaled", EXTRA_KEPT, like_result, .copies = 4}}},
    [HR_OP_GROUP_NORM] = {"Mean, SquaredDifference, Rsqrt, Mul, AddV2, Reshape", .keep_in = 0x1, .keep_out = 0x7,
                          .extra = {{"squared_difference", EXTRA_KEPT, like_result}, {"root", EXTRA_KEPT, like_second, .copies = 2},
                                    {"scale", EXTRA_KEPT, channels_a_sample, .copies = 3}, {"scaled", EXTRA_KEPT, like_result}}},
    [HR_OP_RMS_NORM] = {"Square, Mean, Rsqrt, Mul", .keep_in = 0x1, .keep_out = 0x2,
                        .extra = {{"square", EXTRA_KEPT, like_result}, {"root", EXTRA_KEPT, like_second},
                                  {"normalised", EXTRA_KEPT, like_result}}},
    [HR_OP_RELU] = {"Relu", .keep_out = 0x1},
    [HR_OP_RELU6] = {"Relu6", .keep_out = 0x1},
    [HR_OP_LEAKY_RELU] = {"LeakyRelu", .keep_in = 0x1, .gradient_of_in = true},
    [HR_OP_GELU] = {"Mul, Neg, Erfc; Mul, Pow, AddV2, Tanh", .keep_in = 0x1,
                    .extra = {{"chain", EXTRA_KEPT, like_result, .copies = 4}, {"chain_of_tanh", EXTRA_KEPT, like_result_of_tanh, .copies = 2}}},
    // A gradient of its own, tf.custom_gradient, while what its forward pass did has been recorded, too.
    [HR_OP_SILU] = {"swish_impl", .keep_in = 0x1, .extra = {{"sigmoid", EXTRA_KEPT, like_result, .to_the_end = true}}},
    [HR_OP_TANH] = {"Tanh", .keep_out = 0x1},
    // The result has its logits as an attribute (_keras_logits).
    [HR_OP_SIGMOID] = {"Sigmoid", .keep_in = 0x1, .keep_out = 0x1},
    [HR_OP_SOFTMAX] = {"Softmax", .keep_in = 0x1, .keep_out = 0x1},
    [HR_OP_HARD_SIGMOID] = {"AddV2, Relu6, RealDiv", .keep_in = 0x1, .extra = {{"relu6", EXTRA_KEPT, like_result}}},
    [HR_OP_HARD_SWISH] = {"AddV2, Relu6, RealDiv, Mul", .keep_in = 0x1, .extra = {{"gate", EXTRA_KEPT, like_result, .copies = 2}}},
    [HR_OP_SOFTPLUS] = {"Softplus", .keep_in = 0x1},
    [HR_OP_MISH] = {"Softplus, Tanh, Mul", .keep_in = 0x1, .extra = {{"tanh", EXTRA_KEPT, like_result}}},
    [HR_OP_MAX_POOL] = {"MaxPool", .keep_in = 0x1, .keep_out = 0x1},
    [HR_OP_AVG_POOL] = {"AvgPool", .keep_in = 0x1},
    [HR_OP_GLOBAL_AVG_POOL] = {"Mean", .keep_in = 0x1},
    [HR_OP_ADD] = {"AddV2", .keep_in = 0x3}, // for their shapes alone
    [HR_OP_ADD_BROADCAST] = {"AddV2", .keep_in = 0x3},
    [HR_OP_MULTIPLY] = {"Mul", .keep_in = 0x3},
    [HR_OP_MULTIPLY_BROADCAST] = {"Mul", .keep_in = 0x3},
    [HR_OP_SCALE] = {"Mul", .keep_in = 0x1},
    [HR_OP_CONCAT] = {"ConcatV2", .keep_in = 0x3f},
    [HR_OP_ZERO_PAD] = {"Pad", .keep_in = 0x1},
    [HR_OP_UPSAMPLE] = {"Tile, Reshape", .keep_in = 0x1, .keeps_result = is_reshaped,
                        .extra = {{"repeated_rows", EXTRA_KEPT, repeated_rows}}},
    [HR_OP_RESIZE] = {"ResizeBilinear", .keep_in = 0x1}, // for its shape alone
    [HR_OP_EMBEDDING] = {"SelectV2, GatherV2", .extra = {{"indices", EXTRA_KEPT, indices}}},
    [HR_OP_DROPOUT] = {"Mul, GreaterEqual, SelectV2", .keep_in = 0x1, .keep_out = 0x2,
                       .extra = {{"scaled", EXTRA_KEPT, like_result}}},
    // The gradient of the logits is made with the losses; those are kept one by one, and their sum.
    [HR_OP_SOFTMAX_XENT] = {"SparseSoftmaxCrossEntropyWithLogits, Sum, DivNoNan", .keep_in = 0x1, .keep_out = 0x1,
                            .extra = {{"losses", EXTRA_KEPT, losses_of_rows}, {"sum", EXTRA_KEPT, scalar}}},
    [HR_OP_MSE] = {"Sub, Square, Mean, Sum, DivNoNan", .keep_in = 0x1,
                   .extra = {{"difference", EXTRA_KEPT, like_prediction, .copies = 2}, {"losses", EXTRA_KEPT, losses_of_rows},
                             {"sum", EXTRA_KEPT, scalar}}},
    [HR_OP_ACCURACY] = {"ArgMax, Equal, Sum"},
};
// clang-format on

const framework_rule *tensorflow_rule_of(hr_op op)
{
    return rules[op].theirs == NULL ? NULL : &rules[op];
}
