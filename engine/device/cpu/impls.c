// SPDX-License-Identifier: Apache-2.0
// The table: which implementations an operation has, best first.
#include <string.h>

#include "cpu.h"

enum { MAX_IMPLS = 10 };

static const cpu_impl *const table[HR_OP_COUNT][MAX_IMPLS] = {
    [HR_OP_INPUT] = {&cpu_input},
    [HR_OP_PREFETCH] = {&cpu_input},
    [HR_OP_ADVANCE] = {&cpu_crossing},
    [HR_OP_READ] = {&cpu_read},
    [HR_OP_OFFLOAD] = {&cpu_crossing},
    [HR_OP_FETCH] = {&cpu_crossing},
    [HR_OP_RECORD] = {&cpu_order},
    [HR_OP_WAIT] = {&cpu_order},
    [HR_OP_REORDER] = {&cpu_reorder_library},
    [HR_OP_CONV2D] = {&cpu_depthwise, &cpu_pointwise, &cpu_winograd, &cpu_onednn_conv, &cpu_direct,
                      &cpu_product_half, &cpu_onednn_conv_bf16, &cpu_half_tiles, &cpu_winograd_half,
                      &cpu_half_conv},
    [HR_OP_CONV2D_BWD_DATA] = {&cpu_depthwise_bwd_data, &cpu_pointwise_bwd_data, &cpu_winograd,
                               &cpu_onednn_conv, &cpu_direct_bwd_data, &cpu_product_half,
                               &cpu_onednn_conv_bf16, &cpu_half_tiles, &cpu_winograd_half, &cpu_half_conv},
    [HR_OP_CONV2D_BWD_WEIGHTS] = {&cpu_depthwise_bwd_weights, &cpu_pointwise_bwd_weights, &cpu_winograd,
                                  &cpu_onednn_conv, &cpu_direct_bwd_weights, &cpu_product_half,
                                  &cpu_onednn_conv_bf16, &cpu_half_tiles, &cpu_winograd_half, &cpu_half_conv},
    [HR_OP_CONV2D_TRANSPOSE] = {&cpu_transpose_product, &cpu_transpose_onednn, &cpu_transpose_direct,
                                &cpu_transpose_onednn_bf16, &cpu_half_conv},
    [HR_OP_CONV2D_TRANSPOSE_BWD_DATA] = {&cpu_transpose_onednn, &cpu_transpose_direct,
                                         &cpu_transpose_onednn_bf16, &cpu_half_conv},
    [HR_OP_CONV2D_TRANSPOSE_BWD_WEIGHTS] = {&cpu_transpose_onednn, &cpu_transpose_direct,
                                            &cpu_transpose_onednn_bf16, &cpu_half_conv},
    [HR_OP_DENSE] = {&cpu_dense, &cpu_product_half},
    [HR_OP_DENSE_BWD_DATA] = {&cpu_dense_bwd_data, &cpu_product_half},
    [HR_OP_DENSE_BWD_WEIGHTS] = {&cpu_dense_bwd_weights, &cpu_product_half},
    [HR_OP_BATCH_NORM] = {&cpu_batch_norm},
    [HR_OP_BATCH_NORM_EVAL] = {&cpu_batch_norm_eval},
    [HR_OP_BATCH_NORM_BWD] = {&cpu_batch_norm_bwd},
    [HR_OP_RELU] = {&cpu_relu, &cpu_relu_half},
    [HR_OP_RELU_BWD] = {&cpu_relu_bwd, &cpu_relu_bwd_half},
    [HR_OP_MAX_POOL] = {&cpu_max_pool, &cpu_max_pool_bf16, &cpu_half_tiles},
    [HR_OP_MAX_POOL_BWD] = {&cpu_max_pool_bwd, &cpu_max_pool_bwd_bf16, &cpu_half_tiles},
    [HR_OP_MAX_POOL_BWD_INDEX] = {&cpu_max_pool_bwd, &cpu_max_pool_bwd_bf16, &cpu_half_tiles},
    [HR_OP_GLOBAL_AVG_POOL] = {&cpu_global_avg_pool},
    [HR_OP_GLOBAL_AVG_POOL_BWD] = {&cpu_global_avg_pool},
    [HR_OP_ADD] = {&cpu_add, &cpu_add_bf16, &cpu_half_tiles},
    [HR_OP_RELU6] = {&cpu_relu6, &cpu_half_tiles},
    [HR_OP_RELU6_BWD] = {&cpu_relu6_bwd, &cpu_half_tiles},
    [HR_OP_MULTIPLY] = {&cpu_multiply, &cpu_half_tiles},
    [HR_OP_MULTIPLY_BWD] = {&cpu_multiply_bwd, &cpu_half_tiles},
    [HR_OP_MULTIPLY_BROADCAST] = {&cpu_multiply_broadcast},
    [HR_OP_SCALE] = {&cpu_scale, &cpu_half_tiles},
    [HR_OP_ZEROS] = {&cpu_zeros},
    [HR_OP_CONCAT] = {&cpu_concat},
    [HR_OP_SLICE] = {&cpu_slice},
    [HR_OP_SLICE_BWD] = {&cpu_slice_bwd},
    [HR_OP_STACK] = {&cpu_stack},
    [HR_OP_REDUCE] = {&cpu_reduce},
    [HR_OP_REDUCE_BWD] = {&cpu_reduce_bwd},
    [HR_OP_ZERO_PAD] = {&cpu_zero_pad},
    [HR_OP_ZERO_PAD_BWD] = {&cpu_zero_pad_bwd},
    [HR_OP_PERMUTE] = {&cpu_permute},
    [HR_OP_ROLL] = {&cpu_roll},
    [HR_OP_UPSAMPLE] = {&cpu_upsample, &cpu_half_tiles},
    [HR_OP_UPSAMPLE_BWD] = {&cpu_upsample_bwd, &cpu_half_tiles},
    [HR_OP_ADAPTIVE_POOL] = {&cpu_resize},
    [HR_OP_ADAPTIVE_POOL_BWD] = {&cpu_resize},
    [HR_OP_RESIZE] = {&cpu_resize},
    [HR_OP_RESIZE_BWD] = {&cpu_resize},
    [HR_OP_AVG_POOL] = {&cpu_avg_pool, &cpu_half_tiles},
    [HR_OP_AVG_POOL_BWD] = {&cpu_avg_pool_bwd, &cpu_half_tiles},
    [HR_OP_MSE] = {&cpu_mse},
    [HR_OP_MSE_BWD] = {&cpu_mse_bwd},
    [HR_OP_BINARY_XENT] = {&cpu_binary_xent},
    [HR_OP_BINARY_XENT_BWD] = {&cpu_binary_xent_bwd},
    [HR_OP_FOCAL] = {&cpu_binary_xent},
    [HR_OP_FOCAL_BWD] = {&cpu_binary_xent_bwd},
    [HR_OP_KL] = {&cpu_kl},
    [HR_OP_KL_BWD] = {&cpu_kl_bwd},
    [HR_OP_BATCH_NORM_APPLY] = {&cpu_batch_norm_eval},
    [HR_OP_SOFTMAX_XENT] = {&cpu_softmax_xent},
    [HR_OP_SOFTMAX_XENT_BWD] = {&cpu_softmax_xent_bwd},
    [HR_OP_SOFTMAX_XENT_STREAM] = {&cpu_softmax_xent_stream},
    [HR_OP_SOFTMAX_XENT_STREAM_BWD] = {&cpu_softmax_xent_stream_bwd},
    [HR_OP_SOFTMAX_XENT_GRADIENT] = {&cpu_softmax_xent_gradient},
    [HR_OP_ACCURACY] = {&cpu_accuracy},
    [HR_OP_MATMUL] = {&cpu_matmul, &cpu_matmul_half},
    [HR_OP_MATMUL_BWD_A] = {&cpu_matmul, &cpu_matmul_half},
    [HR_OP_MATMUL_BWD_B] = {&cpu_matmul, &cpu_matmul_half},
    [HR_OP_SOFTMAX] = {&cpu_softmax, &cpu_half_tiles},
    [HR_OP_SOFTMAX_BWD] = {&cpu_softmax_bwd, &cpu_half_tiles},
    [HR_OP_ATTENTION_SCORES] = {&cpu_matmul, &cpu_matmul_half},
    [HR_OP_ATTENTION_SCORES_BWD_Q] = {&cpu_matmul, &cpu_matmul_half},
    [HR_OP_ATTENTION_SCORES_BWD_K] = {&cpu_matmul, &cpu_matmul_half},
    [HR_OP_ATTENTION_VALUES] = {&cpu_matmul, &cpu_matmul_half},
    [HR_OP_ATTENTION_VALUES_BWD_P] = {&cpu_matmul, &cpu_matmul_half},
    [HR_OP_ATTENTION_VALUES_BWD_V] = {&cpu_matmul, &cpu_matmul_half},
    [HR_OP_ATTENTION] = {&cpu_attention, &cpu_half_tiles},
    [HR_OP_ATTENTION_BWD] = {&cpu_attention_bwd, &cpu_half_tiles},
    [HR_OP_ROTARY] = {&cpu_rotary, &cpu_half_tiles},
    [HR_OP_ROTARY_BWD] = {&cpu_rotary, &cpu_half_tiles},
    [HR_OP_CAST] = {&cpu_cast},
    [HR_OP_NORMALISE] = {&cpu_normalise},
    [HR_OP_FINITE] = {&cpu_finite},
    [HR_OP_UNSCALE] = {&cpu_unscale, &cpu_half_tiles},
    [HR_OP_SCALE_UPDATE] = {&cpu_scale_update},
    [HR_OP_SGD] = {&cpu_sgd, &cpu_half_tiles},
    [HR_OP_MOMENTUM] = {&cpu_momentum, &cpu_half_tiles},
    [HR_OP_RMSPROP] = {&cpu_rmsprop, &cpu_half_tiles},
    [HR_OP_ADAM] = {&cpu_adam, &cpu_half_tiles},
    [HR_OP_LION] = {&cpu_lion, &cpu_half_tiles},
    [HR_OP_ADAFACTOR] = {&cpu_adafactor},
    [HR_OP_ADAFACTOR_KERAS] = {&cpu_adafactor},
    [HR_OP_ADAM8BIT] = {&cpu_adam8bit},
    [HR_OP_SQUARE_SUM] = {&cpu_square_sum},
    [HR_OP_CLIP] = {&cpu_clip, &cpu_half_tiles},
    [HR_OP_EMA] = {&cpu_ema, &cpu_half_tiles},
    [HR_OP_PRUNE] = {&cpu_prune},
    [HR_OP_PRUNE_CHANNELS] = {&cpu_prune_channels},
    [HR_OP_ACCUMULATE] = {&cpu_accumulate, &cpu_half_tiles},
    [HR_OP_LSTM] = {&cpu_lstm, &cpu_lstm_half},
    [HR_OP_GRU] = {&cpu_gru, &cpu_gru_half},
    [HR_OP_GRU_BWD] = {&cpu_gru, &cpu_gru_half},
    [HR_OP_LSTM_BWD] = {&cpu_lstm_bwd, &cpu_lstm_bwd_half},
    [HR_OP_LAYER_NORM] = {&cpu_layer_norm, &cpu_half_tiles},
    [HR_OP_LAYER_NORM_BWD] = {&cpu_layer_norm_bwd, &cpu_half_tiles},
    [HR_OP_RMS_NORM] = {&cpu_rms_norm, &cpu_half_tiles},
    [HR_OP_RMS_NORM_BWD] = {&cpu_rms_norm_bwd, &cpu_half_tiles},
    [HR_OP_GELU] = {&cpu_gelu_tanh, &cpu_gelu, &cpu_half_tiles},
    [HR_OP_GELU_BWD] = {&cpu_gelu_tanh_bwd, &cpu_gelu_bwd, &cpu_half_tiles},
    [HR_OP_SILU] = {&cpu_silu, &cpu_half_tiles},
    [HR_OP_SILU_BWD] = {&cpu_silu_bwd, &cpu_half_tiles},
    [HR_OP_TANH] = {&cpu_tanh, &cpu_half_tiles},
    [HR_OP_TANH_BWD] = {&cpu_tanh_bwd, &cpu_half_tiles},
    [HR_OP_SIGMOID] = {&cpu_sigmoid, &cpu_half_tiles},
    [HR_OP_SIGMOID_BWD] = {&cpu_sigmoid_bwd, &cpu_half_tiles},
    [HR_OP_HARD_SIGMOID] = {&cpu_hard_sigmoid, &cpu_half_tiles},
    [HR_OP_HARD_SIGMOID_BWD] = {&cpu_hard_sigmoid_bwd, &cpu_half_tiles},
    [HR_OP_HARD_SWISH] = {&cpu_hard_swish, &cpu_half_tiles},
    [HR_OP_HARD_SWISH_BWD] = {&cpu_hard_swish_bwd, &cpu_half_tiles},
    [HR_OP_LEAKY_RELU] = {&cpu_leaky_relu, &cpu_half_tiles},
    [HR_OP_LEAKY_RELU_BWD] = {&cpu_leaky_relu_bwd, &cpu_half_tiles},
    [HR_OP_SOFTPLUS] = {&cpu_softplus, &cpu_half_tiles},
    [HR_OP_SOFTPLUS_BWD] = {&cpu_softplus_bwd, &cpu_half_tiles},
    [HR_OP_MISH] = {&cpu_mish, &cpu_half_tiles},
    [HR_OP_MISH_BWD] = {&cpu_mish_bwd, &cpu_half_tiles},
    [HR_OP_RELATIVE_BIAS] = {&cpu_relative_bias},
    [HR_OP_RELATIVE_BIAS_BWD] = {&cpu_relative_bias_bwd},
    [HR_OP_GROUP_NORM] = {&cpu_group_norm},
    [HR_OP_GROUP_NORM_BWD] = {&cpu_group_norm_bwd},
    [HR_OP_EMBEDDING] = {&cpu_embedding},
    [HR_OP_EMBEDDING_INT8] = {&cpu_embedding_whole},
    [HR_OP_EMBEDDING_INT4] = {&cpu_embedding_whole},
    [HR_OP_EMBEDDING_BWD] = {&cpu_embedding_bwd, &cpu_embedding_bwd_half},
    [HR_OP_ADD_BROADCAST] = {&cpu_add_broadcast, &cpu_half_tiles},
    [HR_OP_BROADCAST] = {&cpu_broadcast, &cpu_half_tiles},
    [HR_OP_DROPOUT] = {&cpu_dropout},
    [HR_OP_DROPOUT_BWD] = {&cpu_dropout_bwd},
    [HR_OP_FAKE_QUANT_WEIGHTS] = {&cpu_fake_quant_weights},
    [HR_OP_FAKE_QUANT] = {&cpu_fake_quant},
    [HR_OP_FAKE_QUANT_BWD] = {&cpu_fake_quant_bwd},
    [HR_OP_TRACK_RANGE] = {&cpu_track_range},
    [HR_OP_DROP_PATH] = {&cpu_drop_path},
    [HR_OP_DROP_PATH_BWD] = {&cpu_drop_path_bwd},
    [HR_OP_DROPOUT_BWD_MASK] = {&cpu_dropout_bwd_mask, &cpu_half_tiles},
    [HR_OP_ROUTE] = {&cpu_route},
    [HR_OP_ROUTE_BWD] = {&cpu_route_bwd},
    [HR_OP_BALANCE] = {&cpu_balance},
    [HR_OP_BALANCE_BWD] = {&cpu_balance_bwd},
    [HR_OP_DISPATCH] = {&cpu_dispatch},
    [HR_OP_DISPATCH_BWD] = {&cpu_gather},
    [HR_OP_GATHER] = {&cpu_gather},
    [HR_OP_GATHER_BWD] = {&cpu_gather_bwd},
    [HR_OP_EXPERT_DENSE] = {&cpu_matmul, &cpu_matmul_half},
    [HR_OP_EXPERT_DENSE_BWD_DATA] = {&cpu_matmul, &cpu_matmul_half},
    [HR_OP_EXPERT_DENSE_BWD_WEIGHTS] = {&cpu_matmul, &cpu_matmul_half},
    [HR_OP_QUANTIZE_INT8] = {&cpu_quantize_int8},
    [HR_OP_QUANTIZE_INT4] = {&cpu_quantize_int4},
    [HR_OP_DENSE_INT8] = {&cpu_dense_int8},
    [HR_OP_DENSE_INT8_WEIGHTS] = {&cpu_dense_weights},
    [HR_OP_DENSE_INT4_WEIGHTS] = {&cpu_dense_weights},
    [HR_OP_DEQUANTIZE] = {&cpu_dequantize},
};

static bool is_convolution(uint32_t op)
{
    return op == HR_OP_CONV2D || op == HR_OP_CONV2D_BWD_DATA || op == HR_OP_CONV2D_BWD_WEIGHTS ||
           op == HR_OP_CONV2D_TRANSPOSE || op == HR_OP_CONV2D_TRANSPOSE_BWD_DATA ||
           op == HR_OP_CONV2D_TRANSPOSE_BWD_WEIGHTS;
}

// A batch may come as float64; it is moved as it is and cast.
static bool takes_float64(const op_query *q, uint32_t k)
{
    return q->op == HR_OP_INPUT || q->op == HR_OP_PREFETCH || q->op == HR_OP_ADVANCE ||
           (q->op == HR_OP_CAST && k < q->in_count);
}

static hr_status check_types(const op_query *q, hr_err *err)
{
    for (uint32_t k = 0; k < (uint32_t)q->in_count + q->out_count; k++) {
        const op_operand *t = k < q->in_count ? &q->in[k] : &q->out[k - q->in_count];
        if (t->dtype == HR_F64 && !takes_float64(q, k)) {
            (void)HR_FAIL(err, DEVICE, "%s: the cpu device computes in float32, the tensor is %s",
                          op_name((hr_op)q->op), dtype_name((hr_dtype)t->dtype));
            hr_err_try(err, "-s device.kind=reference");
            return HR_DEVICE;
        }
    }
    return HR_OK;
}

// Only convolutions (whose implementations look for themselves) and reorders read a library's layout.
static hr_status check_layouts(const op_query *q, hr_err *err)
{
    for (uint32_t k = 0; k < (uint32_t)q->in_count + q->out_count && !is_convolution(q->op); k++) {
        const op_operand *t = k < q->in_count ? &q->in[k] : &q->out[k - q->in_count];
        if (t->layout != HR_LAYOUT_PLAIN && q->op != HR_OP_REORDER) {
            return HR_FAIL(err, DEVICE, "%s has no kernel for a %s operand", op_name((hr_op)q->op),
                           layout_name((hr_layout)t->layout));
        }
    }
    return HR_OK;
}

static bool takes_types(const cpu_device *device, const cpu_impl *impl, const op_query *q)
{
    if (device->own && impl->run == NULL) {
        return false;
    }
    if (impl->types == CPU_ANY_TYPE) {
        return true;
    }
    const bool half = cpu_has_half(q);
    if (impl->types == CPU_HALF) {
        return half;
    }
    return impl->types == CPU_BF16 ? half && device->bf16 && !cpu_has_type(q, HR_F16) : !half;
}

hr_status cpu_pick(const cpu_device *device, const op_query *q, const cpu_impl **out, hr_err *err)
{
    *out = NULL;
    HR_TRY(check_types(q, err));
    HR_TRY(check_layouts(q, err));
    for (uint32_t k = 0; k < MAX_IMPLS && table[q->op][k] != NULL; k++) {
        const cpu_impl *impl = table[q->op][k];
        if (takes_types(device, impl, q) && (impl->fits == NULL || impl->fits(device, q))) {
            *out = impl;
            return HR_OK;
        }
    }
    return HR_FAIL(err, DEVICE, "the cpu device has no kernel for %s", op_name((hr_op)q->op));
}
