// SPDX-License-Identifier: Apache-2.0
// Private to the cpu device: what an implementation of an operation is, and what it sees when it runs.
//
// Each operation has one or more implementations, in the order of the table in impls.c; the first that fits a
// query is taken, by the target that answers for it and by load alike, so that plan and run agree.
#ifndef DEVICE_CPU_CPU_H
#define DEVICE_CPU_CPU_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/event.h"

#include "base/workers.h"
#include "device/device.h"
#include "device/rates.h"
#include "onednn.h"

typedef struct cpu_device {
    uint32_t threads;
    uint32_t former_mode; // of the opening thread, see workers_flush_denormals
    workers *workers;
    onednn *library;
    uint64_t key; // of the target
    bool bf16;    // the processor multiplies bfloat16
    bool own;     // a thread of it alone, without the library
    bool calibrated;
    cost_rates rates; // of this machine, when it was calibrated under this key
} cpu_device;

// One instruction at run time.
typedef struct cpu_run {
    const cpu_device *device;
    const op_query *query;
    void *state; // what prepare made
    void *in[OP_MAX_IN], *out[OP_MAX_OUT];
    void *workspace;
    step_io *io;
} cpu_run;

// Types of the real operands that an implementation takes; statistics beside two-byte ones are float32. CPU_BF16 is for
// processors that multiply it, CPU_HALF takes float16 and bfloat16 on any.
typedef enum cpu_types { CPU_FLOAT32, CPU_BF16, CPU_HALF, CPU_ANY_TYPE } cpu_types;

typedef struct cpu_impl {
    const char *name;
    cpu_types types;
    bool (*fits)(const cpu_device *device, const op_query *q);          // NULL: always
    uint64_t (*workspace)(const cpu_device *device, const op_query *q); // bytes; NULL: none
    // For implementations of a library, instead of `workspace`.
    hr_status (*ask)(const cpu_device *device, const op_query *q, uint64_t limit, target_answer *out,
                     hr_err *err);
    // What must be made before the first run; `limit` as for ask. NULL: nothing.
    hr_status (*prepare)(const cpu_device *device, const program *p, const instr *i, const op_query *q,
                         void **state, hr_err *err);
    void (*release)(void *state);
    void (*run)(const cpu_run *r);
    hr_status (*call)(const cpu_run *r, hr_err *err); // instead of `run`, where a library may refuse
} cpu_impl;

// The name of rows whose arithmetic is the library's, and the first word of what they answer.
#define CPU_LIBRARY "onednn"

// The implementation for a query. DEVICE error with the reason when there is none.
HR_MUST_CHECK hr_status cpu_pick(const cpu_device *device, const op_query *q, const cpu_impl **out,
                                 hr_err *err);

bool cpu_has_type(const op_query *q, hr_dtype dtype);
bool cpu_has_half(const op_query *q);
// Is every real operand bfloat16?
bool cpu_all_bf16(const cpu_device *device, const op_query *q);

void cpu_fill_target(cpu_device *device, const char *name, hr_target *out);

// A convolution as oneDNN is asked for it.
conv_shape cpu_conv_shape(const op_query *q);

// Bytes over which load may choose as ask did: the workspace and the library's copies that the instruction
// has.
uint64_t cpu_temporary_bytes(const program *p, const instr *i);

// ---- helpers over operands --------------------------------------------------------------------------------

// An image [N,H,W,C].
typedef struct cpu_image {
    int64_t images, height, width, channels;
} cpu_image;

cpu_image cpu_image_of(const op_operand *operand);
int64_t cpu_elements_of(const op_operand *operand);

// ---- activations behind an operation: value < 0 ? 0 : value, then at most the ceiling -----------------------

float cpu_ceiling(int32_t act); // 6 for RELU6, else infinite
// In place over a result whose kernel does not do it.
void cpu_rectify(const cpu_device *device, float *y, int64_t count, float ceiling);

// The columns of a two-byte matrix y, all dimensions but the last its rows, summed in float32 and rounded once.
uint64_t cpu_half_sums_bytes(const cpu_device *device, int64_t f);
void cpu_half_sums(const cpu_device *device, const op_operand *of, const void *y, const op_operand *sum_of,
                   void *sum, float *scratch);

// `count` numbers of a packed row of a table, of int4, as float32.
void cpu_widen_int4(const uint8_t *q, const float *scale, const int8_t *zero, int64_t count, float *to);

// The implementations, one variable per row of the table in impls.c.
extern const cpu_impl cpu_half_tiles, cpu_embedding_bwd_half, cpu_matmul_half;
extern const cpu_impl cpu_cast, cpu_normalise, cpu_finite, cpu_unscale, cpu_scale_update;
extern const cpu_impl cpu_input, cpu_read, cpu_crossing, cpu_order, cpu_reorder_library;
extern const cpu_impl cpu_relu, cpu_relu_bwd, cpu_add;
extern const cpu_impl cpu_relu6, cpu_relu6_bwd, cpu_multiply, cpu_multiply_bwd, cpu_scale;
extern const cpu_impl cpu_multiply_broadcast;
extern const cpu_impl cpu_zeros, cpu_concat, cpu_slice, cpu_slice_bwd, cpu_stack, cpu_reduce, cpu_reduce_bwd;
extern const cpu_impl cpu_zero_pad, cpu_zero_pad_bwd, cpu_upsample, cpu_upsample_bwd, cpu_permute, cpu_roll;
extern const cpu_impl cpu_drop_path, cpu_drop_path_bwd;
extern const cpu_impl cpu_dequantize;
extern const cpu_impl cpu_fake_quant, cpu_fake_quant_bwd, cpu_fake_quant_weights, cpu_track_range;
extern const cpu_impl cpu_resize; // ADAPTIVE_POOL too, both ways
extern const cpu_impl cpu_avg_pool, cpu_avg_pool_bwd;
extern const cpu_impl cpu_dense, cpu_dense_bwd_data, cpu_dense_bwd_weights;
extern const cpu_impl cpu_quantize_int8, cpu_quantize_int4, cpu_dense_int8, cpu_dense_weights;
extern const cpu_impl cpu_depthwise, cpu_depthwise_bwd_data, cpu_depthwise_bwd_weights;
extern const cpu_impl cpu_pointwise, cpu_pointwise_bwd_data, cpu_pointwise_bwd_weights;
extern const cpu_impl cpu_winograd, cpu_winograd_half, cpu_onednn_conv, cpu_onednn_conv_bf16,
    cpu_product_half, cpu_half_conv;
extern const cpu_impl cpu_max_pool_bf16, cpu_max_pool_bwd_bf16;
extern const cpu_impl cpu_relu_half, cpu_relu_bwd_half, cpu_add_bf16;
extern const cpu_impl cpu_transpose_product, cpu_transpose_onednn, cpu_transpose_direct;
extern const cpu_impl cpu_transpose_onednn_bf16;
extern const cpu_impl cpu_direct, cpu_direct_bwd_data, cpu_direct_bwd_weights;
extern const cpu_impl cpu_batch_norm, cpu_batch_norm_eval, cpu_batch_norm_bwd;
extern const cpu_impl cpu_max_pool, cpu_max_pool_bwd;
extern const cpu_impl cpu_global_avg_pool;
extern const cpu_impl cpu_mse, cpu_mse_bwd, cpu_kl, cpu_kl_bwd;
extern const cpu_impl cpu_binary_xent, cpu_binary_xent_bwd; // FOCAL too
extern const cpu_impl cpu_softmax_xent, cpu_softmax_xent_bwd, cpu_softmax_xent_stream;
extern const cpu_impl cpu_softmax_xent_stream_bwd, cpu_softmax_xent_gradient, cpu_accuracy;
extern const cpu_impl cpu_matmul, cpu_softmax, cpu_softmax_bwd, cpu_attention, cpu_attention_bwd, cpu_rotary;
extern const cpu_impl cpu_sgd, cpu_momentum, cpu_rmsprop, cpu_adam, cpu_lion, cpu_adafactor, cpu_adam8bit;
extern const cpu_impl cpu_gru, cpu_gru_half; // both ways
extern const cpu_impl cpu_lstm, cpu_lstm_bwd, cpu_lstm_half, cpu_lstm_bwd_half;
extern const cpu_impl cpu_square_sum, cpu_clip, cpu_ema, cpu_accumulate, cpu_prune, cpu_prune_channels;
extern const cpu_impl cpu_layer_norm, cpu_layer_norm_bwd, cpu_rms_norm, cpu_rms_norm_bwd;
extern const cpu_impl cpu_gelu, cpu_gelu_tanh, cpu_gelu_bwd, cpu_gelu_tanh_bwd, cpu_silu, cpu_silu_bwd;
extern const cpu_impl cpu_tanh, cpu_tanh_bwd, cpu_sigmoid, cpu_sigmoid_bwd;
extern const cpu_impl cpu_hard_sigmoid, cpu_hard_sigmoid_bwd, cpu_hard_swish, cpu_hard_swish_bwd;
extern const cpu_impl cpu_leaky_relu, cpu_leaky_relu_bwd, cpu_softplus, cpu_softplus_bwd, cpu_mish,
    cpu_mish_bwd;
extern const cpu_impl cpu_embedding_whole; // EMBEDDING_INT8, EMBEDDING_INT4
extern const cpu_impl cpu_embedding, cpu_embedding_bwd, cpu_add_broadcast, cpu_broadcast;
extern const cpu_impl cpu_relative_bias, cpu_relative_bias_bwd;
extern const cpu_impl cpu_group_norm, cpu_group_norm_bwd;
extern const cpu_impl cpu_dropout, cpu_dropout_bwd, cpu_dropout_bwd_mask;
extern const cpu_impl cpu_route, cpu_route_bwd, cpu_balance, cpu_balance_bwd;
extern const cpu_impl cpu_dispatch, cpu_gather, cpu_gather_bwd;

#endif
