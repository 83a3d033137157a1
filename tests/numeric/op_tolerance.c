// SPDX-License-Identifier: Apache-2.0
#include "numeric/op_tolerance.h"

#include <check.h>

// Rounding to eight digits is off by 2^-9 at most, by about 0.0017 in the mean; results that are stored between two
// roundings (a mean's spread) may lie two apart. Float16 has three digits more, and numbers near 6e-5 have fewer.
#define BF16_FARTHEST 4e-3
#define F16_FARTHEST  5e-4

// Float32 has 6e-8 of rounding: comparisons and single additions are exact, sums over K terms wander by its square root,
// and the data gradient of batch normalisation is a difference of sums. Two-byte types: 0 stands for one rounding of the
// result.
static const struct {
    hr_op op;
    double f32, f16, bf16;
} rows[] = {
    {HR_OP_CONV2D, 1e-6, 0, 0},
    {HR_OP_CONV2D_BWD_DATA, 1e-6, 0, 0},
    {HR_OP_CONV2D_BWD_WEIGHTS, 1e-6, 0, 0},
    {HR_OP_DENSE, 1e-6, 0, 0},
    {HR_OP_DENSE_BWD_DATA, 1e-6, 0, 0},
    {HR_OP_DENSE_BWD_WEIGHTS, 1e-6, 0, 0},
    {HR_OP_BATCH_NORM, 2e-6, 0, 0},
    {HR_OP_BATCH_NORM_EVAL, 1e-6, 0, 0},
    {HR_OP_BATCH_NORM_STATISTICS, 2e-6, 0, 0},
    {HR_OP_BATCH_NORM_BWD, 5e-6, 0, 0},
    {HR_OP_RELU, 0, 0, 0},
    {HR_OP_RELU_BWD, 0, 0, 0},
    {HR_OP_MAX_POOL, 0, 0, 0},
    {HR_OP_MAX_POOL_BWD, 1e-7, 0, 0},
    {HR_OP_MAX_POOL_BWD_INDEX, 1e-7, 0, 0},
    {HR_OP_GLOBAL_AVG_POOL, 1e-6, 0, 0},
    {HR_OP_GLOBAL_AVG_POOL_BWD, 1e-7, 0, 0},
    {HR_OP_ADD, 0, 0, 0},
    {HR_OP_SOFTMAX_XENT, 1e-6, 0, 0},
    {HR_OP_SOFTMAX_XENT_BWD, 1e-6, 0, 0},
    {HR_OP_SOFTMAX_XENT_STREAM, 1e-6, 0, 0},
    {HR_OP_SOFTMAX_XENT_STREAM_BWD, 1e-6, 0, 0},
    {HR_OP_SOFTMAX_XENT_GRADIENT, 1e-6, 0, 0},
    {HR_OP_ACCURACY, 0, 0, 0},
    {HR_OP_BATCH_NORM_APPLY, 1e-6, 0, 0},
    {HR_OP_CONV2D_TRANSPOSE, 1e-6, 0, 0},
    {HR_OP_CONV2D_TRANSPOSE_BWD_DATA, 1e-6, 0, 0},
    {HR_OP_CONV2D_TRANSPOSE_BWD_WEIGHTS, 1e-6, 0, 0},
    {HR_OP_MSE, 1e-6, 0, 0},
    {HR_OP_MSE_BWD, 2e-7, 0, 0},
    {HR_OP_KL, 2e-6, 0, 0},
    {HR_OP_KL_BWD, 1e-6, 0, 0},
    {HR_OP_BINARY_XENT, 1e-6, 0, 0},
    {HR_OP_BINARY_XENT_BWD, 1e-6, 0, 0},
    {HR_OP_FOCAL, 2e-6, 0, 0},
    {HR_OP_FOCAL_BWD, 2e-6, 0, 0},
    {HR_OP_RELU6, 0, 0, 0},
    {HR_OP_RELU6_BWD, 0, 0, 0},
    {HR_OP_MULTIPLY, 0, 0, 0},
    {HR_OP_MULTIPLY_BWD, 0, 0, 0},
    {HR_OP_MULTIPLY_BROADCAST, 0, 0, 0},
    {HR_OP_SCALE, 1e-7, 0, 0},
    {HR_OP_ZEROS, 0, 0, 0},
    {HR_OP_CONCAT, 0, 0, 0},
    {HR_OP_SLICE, 0, 0, 0},
    {HR_OP_SLICE_BWD, 0, 0, 0},
    {HR_OP_STACK, 0, 0, 0},
    {HR_OP_REDUCE, 1e-6, 0, 0},
    {HR_OP_REDUCE_BWD, 1e-7, 0, 0},
    {HR_OP_ZERO_PAD, 0, 0, 0},
    {HR_OP_ZERO_PAD_BWD, 0, 0, 0},
    {HR_OP_UPSAMPLE, 0, 0, 0},
    {HR_OP_PERMUTE, 0, 0, 0},
    {HR_OP_ROLL, 0, 0, 0},
    {HR_OP_UPSAMPLE_BWD, 1e-7, 0, 0},
    {HR_OP_ADAPTIVE_POOL, 5e-7, 0, 0},
    {HR_OP_ADAPTIVE_POOL_BWD, 5e-7, 0, 0},
    {HR_OP_RESIZE, 5e-7, 0, 0},
    {HR_OP_RESIZE_BWD, 5e-7, 0, 0},
    {HR_OP_AVG_POOL, 2e-7, 0, 0},
    {HR_OP_AVG_POOL_BWD, 2e-7, 0, 0},
    {HR_OP_LAYER_NORM, 1e-6, 0, 0},
    {HR_OP_LAYER_NORM_BWD, 2e-6, 0, 0},
    {HR_OP_RMS_NORM, 1e-6, 0, 0},
    {HR_OP_RMS_NORM_BWD, 2e-6, 0, 0},
    {HR_OP_GELU, 5e-7, 0, 0},
    {HR_OP_GELU_BWD, 1e-6, 0, 0},
    {HR_OP_SILU, 5e-7, 0, 0},
    {HR_OP_SILU_BWD, 5e-7, 0, 0},
    {HR_OP_TANH, 5e-7, 0, 0},
    {HR_OP_TANH_BWD, 5e-7, 0, 0},
    {HR_OP_SIGMOID, 5e-7, 0, 0},
    {HR_OP_SIGMOID_BWD, 5e-7, 0, 0},
    {HR_OP_HARD_SIGMOID, 2e-7, 0, 0},
    {HR_OP_HARD_SIGMOID_BWD, 2e-7, 0, 0},
    {HR_OP_HARD_SWISH, 2e-7, 0, 0},
    {HR_OP_HARD_SWISH_BWD, 2e-7, 0, 0},
    {HR_OP_LEAKY_RELU, 1e-7, 0, 0},
    {HR_OP_LEAKY_RELU_BWD, 1e-7, 0, 0},
    {HR_OP_SOFTPLUS, 5e-7, 0, 0},
    {HR_OP_SOFTPLUS_BWD, 5e-7, 0, 0},
    {HR_OP_MISH, 1e-6, 0, 0},
    {HR_OP_MISH_BWD, 1e-6, 0, 0},
    {HR_OP_EMBEDDING, 0, 0, 0},
    {HR_OP_EMBEDDING_BWD, 1e-6, 0, 0},
    {HR_OP_ADD_BROADCAST, 0, 0, 0},
    {HR_OP_BROADCAST, 0, 0, 0},
    {HR_OP_DROPOUT, 1e-7, 0, 0},
    {HR_OP_DROP_PATH, 1e-7, 0, 0},
    {HR_OP_FAKE_QUANT_WEIGHTS, 0, 0, 0}, // the same level, to the bit
    {HR_OP_FAKE_QUANT, 0, 0, 0},
    {HR_OP_FAKE_QUANT_BWD, 0, 0, 0},
    {HR_OP_TRACK_RANGE, 0, 0, 0},
    {HR_OP_DROP_PATH_BWD, 1e-7, 0, 0},
    {HR_OP_DROPOUT_BWD, 1e-7, 0, 0},
    {HR_OP_DROPOUT_BWD_MASK, 1e-7, 0, 0},
    {HR_OP_MATMUL, 1e-6, 0, 0},
    {HR_OP_MATMUL_BWD_A, 1e-6, 0, 0},
    {HR_OP_MATMUL_BWD_B, 1e-6, 0, 0},
    {HR_OP_ROUTE, 1e-6, 0, 0},
    {HR_OP_ROUTE_BWD, 2e-6, 0, 0},
    {HR_OP_BALANCE, 1e-6, 0, 0},
    {HR_OP_BALANCE_BWD, 2e-6, 0, 0},
    {HR_OP_DISPATCH, 0, 0, 0},
    {HR_OP_DISPATCH_BWD, 1e-7, 0, 0},
    {HR_OP_GATHER, 1e-6, 0, 0},
    {HR_OP_GATHER_BWD, 1e-6, 0, 0},
    {HR_OP_QUANTIZE_INT8, 0, 0, 0},
    {HR_OP_QUANTIZE_INT4, 0, 0, 0},
    {HR_OP_DENSE_INT8, 1e-6, 0, 0},
    {HR_OP_DENSE_INT8_WEIGHTS, 1e-6, 0, 0},
    {HR_OP_DENSE_INT4_WEIGHTS, 1e-6, 0, 0},
    {HR_OP_EMBEDDING_INT8, 0, 0, 0},
    {HR_OP_EMBEDDING_INT4, 0, 0, 0},
    {HR_OP_DEQUANTIZE, 0, 0, 0},
    {HR_OP_EXPERT_DENSE, 1e-6, 0, 0},
    {HR_OP_EXPERT_DENSE_BWD_DATA, 1e-6, 0, 0},
    {HR_OP_EXPERT_DENSE_BWD_WEIGHTS, 1e-6, 0, 0},
    {HR_OP_SOFTMAX, 1e-6, 0, 0},
    {HR_OP_SOFTMAX_BWD, 1e-6, 0, 0},
    {HR_OP_ATTENTION_SCORES, 1e-6, 0, 0},
    {HR_OP_ATTENTION_SCORES_BWD_Q, 1e-6, 0, 0},
    {HR_OP_ATTENTION_SCORES_BWD_K, 1e-6, 0, 0},
    {HR_OP_ATTENTION_VALUES, 1e-6, 0, 0},
    {HR_OP_ATTENTION_VALUES_BWD_P, 1e-6, 0, 0},
    {HR_OP_ATTENTION_VALUES_BWD_V, 1e-6, 0, 0},
    {HR_OP_ATTENTION, 1e-6, 0, 0},
    {HR_OP_ROTARY, 2e-7, 0, 0},
    {HR_OP_ROTARY_BWD, 2e-7, 0, 0},
    {HR_OP_GROUP_NORM, 2e-6, 0, 0},
    {HR_OP_GROUP_NORM_BWD, 5e-6, 0, 0},
    {HR_OP_RELATIVE_BIAS, 2e-7, 0, 0},
    {HR_OP_RELATIVE_BIAS_BWD, 1e-6, 0, 0},
    // dp less its mean, which are nearly equal where one weight is nearly 1; a library rounds weights and ds on the way.
    {HR_OP_ATTENTION_BWD, 1e-5, 7.5e-4, 6e-3},
    {HR_OP_SGD, 1e-7, 0, 0},
    {HR_OP_MOMENTUM, 1e-7, 0, 0},
    {HR_OP_RMSPROP, 1e-6, 0, 0},
    {HR_OP_ADAM, 1e-6, 0, 0},
    {HR_OP_LION, 1e-7, 0, 0},
    {HR_OP_ADAFACTOR, 1e-6, 0, 0},
    {HR_OP_ADAFACTOR_KERAS, 1e-6, 0, 0},
    {HR_OP_ADAM8BIT, 1e-2, 0, 0}, // where a ratio lies between two codes, rounding chooses
    {HR_OP_SQUARE_SUM, 1e-6, 0, 0},
    {HR_OP_CLIP, 1e-6, 0, 0},
    {HR_OP_EMA, 1e-6, 0, 0},
    {HR_OP_ACCUMULATE, 1e-7, 0, 0},
    {HR_OP_PRUNE, 0, 0, 0},
    {HR_OP_PRUNE_CHANNELS, 0, 0, 0},
    {HR_OP_LSTM, 1e-6, 0, 0},
    {HR_OP_LSTM_BWD, 2e-6, 0, 0},
    {HR_OP_GRU, 1e-6, 0, 0},
    {HR_OP_GRU_BWD, 2e-6, 1e-3, 8e-3}, // what the last product and the sum are made of is rounded before, too
};

double op_tolerance(hr_op op, hr_dtype real)
{
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (rows[k].op != op) {
            continue;
        }
        if (real == HR_F32) {
            return rows[k].f32;
        }
        const double farthest = real == HR_F16 ? F16_FARTHEST : BF16_FARTHEST;
        const double own = real == HR_F16 ? rows[k].f16 : rows[k].bf16;
        return own == 0 ? farthest : own;
    }
    ck_abort_msg("%s has no row", op_name(op));
}
