// SPDX-License-Identifier: Apache-2.0
// The judge's kernels: plain loops, one per operation, all arithmetic in double.
//
// A kernel sees every float operand as double, whatever the tensor's type: the device widens narrower types before the
// call and rounds after it. Integer operands (labels, indices, counts) are seen as they are stored.
#ifndef DEVICE_REFERENCE_KERNELS_H
#define DEVICE_REFERENCE_KERNELS_H

#include <stdint.h>

#include "device/device.h"
#include "ops/op.h"

typedef struct reference_call {
    const op_query *query;
    void *in[OP_MAX_IN], *out[OP_MAX_OUT];               // double, int32_t or uint8_t by the operand's type
    uint64_t in_count[OP_MAX_IN], out_count[OP_MAX_OUT]; // elements
    step_io *io;
} reference_call;

// Element i of operand x, normalised: operand[] are those of gamma, beta, mean and variance.
double reference_normalised(const reference_call *call, uint32_t x, uint64_t i, const uint32_t operand[4]);
// Brings dy of what was pooled to the places of the image x that the index names; elsewhere dx is zero.
void reference_unpool(const op_attr *a, const hr_shape *x, const hr_shape *pooled, const uint8_t *index,
                      const double *dy, double *dx);

typedef void (*reference_kernel)(const reference_call *call);

typedef struct reference_row {
    reference_kernel kernel; // NULL: nothing runs (allocation, views)
    uint8_t updates;         // bit k: input k is updated in place
} reference_row;

void reference_input(const reference_call *call);
void reference_read(const reference_call *call);
void reference_cross(const reference_call *call);
void reference_order(const reference_call *call);

void reference_conv2d(const reference_call *call);
void reference_conv2d_bwd_data(const reference_call *call);
void reference_conv2d_bwd_weights(const reference_call *call);
void reference_conv2d_transpose(const reference_call *call);
void reference_conv2d_transpose_bwd_data(const reference_call *call);
void reference_conv2d_transpose_bwd_weights(const reference_call *call);
void reference_dense(const reference_call *call);
void reference_dense_bwd_data(const reference_call *call);
void reference_dense_bwd_weights(const reference_call *call);

void reference_quantize_int8(const reference_call *call);
void reference_quantize_int4(const reference_call *call);
void reference_dense_int8(const reference_call *call);
void reference_dense_weights(const reference_call *call); // DENSE_INT8_WEIGHTS, DENSE_INT4_WEIGHTS
void reference_embedding_int8(const reference_call *call);
void reference_embedding_int4(const reference_call *call);
void reference_dequantize(const reference_call *call);

void reference_batch_norm(const reference_call *call);
void reference_batch_norm_statistics(const reference_call *call);
void reference_batch_norm_eval(const reference_call *call);
void reference_batch_norm_bwd(const reference_call *call);

void reference_max_pool(const reference_call *call);
void reference_max_pool_bwd(const reference_call *call);
void reference_max_pool_bwd_index(const reference_call *call);
void reference_avg_pool(const reference_call *call);
void reference_avg_pool_bwd(const reference_call *call);
void reference_global_avg_pool(const reference_call *call);
void reference_global_avg_pool_bwd(const reference_call *call);

void reference_relu(const reference_call *call);
void reference_relu_bwd(const reference_call *call);
void reference_add(const reference_call *call);
void reference_relu6(const reference_call *call);
void reference_relu6_bwd(const reference_call *call);
void reference_multiply(const reference_call *call);
void reference_multiply_bwd(const reference_call *call);
void reference_multiply_broadcast(const reference_call *call);
void reference_scale(const reference_call *call);

void reference_concat(const reference_call *call);
void reference_slice(const reference_call *call);
void reference_slice_bwd(const reference_call *call);
void reference_stack(const reference_call *call);
void reference_reduce(const reference_call *call);
void reference_reduce_bwd(const reference_call *call);
void reference_zeros(const reference_call *call);
void reference_zero_pad(const reference_call *call);
void reference_zero_pad_bwd(const reference_call *call);
void reference_drop_path(const reference_call *call);
void reference_drop_path_bwd(const reference_call *call);
void reference_fake_quant_weights(const reference_call *call);
void reference_fake_quant(const reference_call *call);
void reference_fake_quant_bwd(const reference_call *call);
void reference_track_range(const reference_call *call);
void reference_permute(const reference_call *call);
void reference_roll(const reference_call *call);
void reference_adaptive_pool(const reference_call *call);
void reference_adaptive_pool_bwd(const reference_call *call);
void reference_resize(const reference_call *call);
void reference_resize_bwd(const reference_call *call);
void reference_upsample(const reference_call *call);
void reference_upsample_bwd(const reference_call *call);

void reference_softmax_xent(const reference_call *call);
void reference_softmax_xent_bwd(const reference_call *call);
void reference_mse(const reference_call *call);
void reference_mse_bwd(const reference_call *call);
void reference_kl(const reference_call *call);
void reference_kl_bwd(const reference_call *call);
void reference_binary(const reference_call *call);     // BINARY_XENT, FOCAL
void reference_binary_bwd(const reference_call *call); // BINARY_XENT_BWD, FOCAL_BWD
void reference_softmax_xent_stream(const reference_call *call);
void reference_softmax_xent_stream_bwd(const reference_call *call);
void reference_softmax_xent_gradient(const reference_call *call);
void reference_accuracy(const reference_call *call);

void reference_matmul(const reference_call *call);
void reference_matmul_bwd_a(const reference_call *call);
void reference_matmul_bwd_b(const reference_call *call);
void reference_softmax(const reference_call *call);
void reference_softmax_bwd(const reference_call *call);
void reference_attention_scores(const reference_call *call);
void reference_attention_scores_bwd_q(const reference_call *call);
void reference_attention_scores_bwd_k(const reference_call *call);
void reference_attention_values(const reference_call *call);
void reference_attention_values_bwd_p(const reference_call *call);
void reference_attention_values_bwd_v(const reference_call *call);
void reference_attention(const reference_call *call);
void reference_attention_bwd(const reference_call *call);
void reference_rotary(const reference_call *call); // and back

void reference_cast(const reference_call *call);
void reference_normalise(const reference_call *call);
void reference_finite(const reference_call *call);
void reference_unscale(const reference_call *call);
void reference_scale_update(const reference_call *call);
void reference_read_finite(const reference_call *call);

void reference_sgd(const reference_call *call);
void reference_momentum(const reference_call *call);
void reference_adam(const reference_call *call);
void reference_rmsprop(const reference_call *call);
void reference_lion(const reference_call *call);
void reference_adafactor(const reference_call *call); // ADAFACTOR_KERAS too
void reference_adam8bit(const reference_call *call);
void reference_square_sum(const reference_call *call);
void reference_clip(const reference_call *call);
void reference_ema(const reference_call *call);
void reference_prune(const reference_call *call);
void reference_prune_channels(const reference_call *call);
void reference_accumulate(const reference_call *call);

void reference_lstm(const reference_call *call);
void reference_lstm_bwd(const reference_call *call);
void reference_gru(const reference_call *call);
void reference_gru_bwd(const reference_call *call);

void reference_layer_norm(const reference_call *call);
void reference_layer_norm_bwd(const reference_call *call);
void reference_rms_norm(const reference_call *call);
void reference_rms_norm_bwd(const reference_call *call);
void reference_gelu(const reference_call *call);
void reference_gelu_bwd(const reference_call *call);
void reference_gelu_tanh(double *values, uint64_t count);                        // in place
void reference_gelu_gradient(const double *x, double *gradient, uint64_t count); // of the tanh form, in place
void reference_silu(const reference_call *call);
void reference_silu_bwd(const reference_call *call);
void reference_tanh(const reference_call *call);
void reference_tanh_bwd(const reference_call *call);
void reference_sigmoid(const reference_call *call);
void reference_sigmoid_bwd(const reference_call *call);
void reference_hard_sigmoid(const reference_call *call);
void reference_hard_sigmoid_bwd(const reference_call *call);
void reference_hard_swish(const reference_call *call);
void reference_hard_swish_bwd(const reference_call *call);
void reference_leaky_relu(const reference_call *call);
void reference_leaky_relu_bwd(const reference_call *call);
void reference_softplus(const reference_call *call);
void reference_softplus_bwd(const reference_call *call);
void reference_mish(const reference_call *call);
void reference_mish_bwd(const reference_call *call);
void reference_relative_bias(const reference_call *call);
void reference_relative_bias_bwd(const reference_call *call);
void reference_group_norm(const reference_call *call);
void reference_group_norm_bwd(const reference_call *call);
void reference_embedding(const reference_call *call);
void reference_embedding_bwd(const reference_call *call);
void reference_add_broadcast(const reference_call *call);
void reference_broadcast(const reference_call *call);
void reference_dropout(const reference_call *call);
void reference_dropout_bwd(const reference_call *call);
void reference_dropout_bwd_mask(const reference_call *call);

// attr.act over output 0, for the operations that may carry one.
void reference_act(const reference_call *call);

void reference_route(const reference_call *call);
void reference_route_bwd(const reference_call *call);
void reference_balance(const reference_call *call);
void reference_balance_bwd(const reference_call *call);
void reference_dispatch(const reference_call *call);
void reference_dispatch_bwd(const reference_call *call);
void reference_gather(const reference_call *call);
void reference_gather_bwd(const reference_call *call);
void reference_expert_dense(const reference_call *call);
void reference_expert_dense_bwd_data(const reference_call *call);
void reference_expert_dense_bwd_weights(const reference_call *call);

#endif
