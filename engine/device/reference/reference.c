// SPDX-License-Identifier: Apache-2.0
// The reference device: plain C, one thread, double arithmetic, plain layouts, no workspace: the judge of every
// other device. float64 tensors are used where they lie; float32 and two-byte operands are widened into host scratch
// before a kernel and rounded back after it, so that the result of each operation is the correctly rounded double
// result (two-byte types: rounded to float32 first). The scratch is taken once per program, in load.
#include <string.h>

#include "base/half.h"
#include "base/hash.h"
#include "base/host_mem.h"
#include "device/rates_usual.h"
#include "kernels.h"

enum { PAGE_BYTES = 4096 };

#define UPDATES(k) (1u << (k))

static const reference_row rows[HR_OP_COUNT] = {
    [HR_OP_INPUT] = {reference_input, 0},
    [HR_OP_PREFETCH] = {reference_input, 0},
    [HR_OP_ADVANCE] = {reference_cross, 0},
    [HR_OP_READ] = {reference_read, 0},
    [HR_OP_OFFLOAD] = {reference_cross, 0},
    [HR_OP_FETCH] = {reference_cross, 0},
    [HR_OP_RECORD] = {reference_order, 0},
    [HR_OP_WAIT] = {reference_order, 0},
    [HR_OP_CONV2D] = {reference_conv2d, 0},
    [HR_OP_CONV2D_BWD_DATA] = {reference_conv2d_bwd_data, 0},
    [HR_OP_CONV2D_BWD_WEIGHTS] = {reference_conv2d_bwd_weights, 0},
    [HR_OP_DENSE] = {reference_dense, 0},
    [HR_OP_DENSE_BWD_DATA] = {reference_dense_bwd_data, 0},
    [HR_OP_DENSE_BWD_WEIGHTS] = {reference_dense_bwd_weights, 0},
    [HR_OP_BATCH_NORM] = {reference_batch_norm, UPDATES(3) | UPDATES(4)},
    [HR_OP_BATCH_NORM_STATISTICS] = {reference_batch_norm_statistics, UPDATES(1) | UPDATES(2)},
    [HR_OP_BATCH_NORM_EVAL] = {reference_batch_norm_eval, 0},
    [HR_OP_BATCH_NORM_BWD] = {reference_batch_norm_bwd, 0},
    [HR_OP_RELU] = {reference_relu, 0},
    [HR_OP_RELU_BWD] = {reference_relu_bwd, 0},
    [HR_OP_MAX_POOL] = {reference_max_pool, 0},
    [HR_OP_MAX_POOL_BWD] = {reference_max_pool_bwd, 0},
    [HR_OP_MAX_POOL_BWD_INDEX] = {reference_max_pool_bwd_index, 0},
    [HR_OP_GLOBAL_AVG_POOL] = {reference_global_avg_pool, 0},
    [HR_OP_GLOBAL_AVG_POOL_BWD] = {reference_global_avg_pool_bwd, 0},
    [HR_OP_ADD] = {reference_add, 0},
    [HR_OP_RELU6] = {reference_relu6, 0},
    [HR_OP_RELU6_BWD] = {reference_relu6_bwd, 0},
    [HR_OP_MULTIPLY] = {reference_multiply, 0},
    [HR_OP_MULTIPLY_BWD] = {reference_multiply_bwd, 0},
    [HR_OP_MULTIPLY_BROADCAST] = {reference_multiply_broadcast, 0},
    [HR_OP_SCALE] = {reference_scale, 0},
    [HR_OP_ZEROS] = {reference_zeros, 0},
    [HR_OP_CONCAT] = {reference_concat, 0},
    [HR_OP_SLICE] = {reference_slice, 0},
    [HR_OP_SLICE_BWD] = {reference_slice_bwd, 0},
    [HR_OP_STACK] = {reference_stack, 0},
    [HR_OP_REDUCE] = {reference_reduce, 0},
    [HR_OP_REDUCE_BWD] = {reference_reduce_bwd, 0},
    [HR_OP_ZERO_PAD] = {reference_zero_pad, 0},
    [HR_OP_ZERO_PAD_BWD] = {reference_zero_pad_bwd, 0},
    [HR_OP_PERMUTE] = {reference_permute, 0},
    [HR_OP_ROLL] = {reference_roll, 0},
    [HR_OP_ADAPTIVE_POOL] = {reference_adaptive_pool, 0},
    [HR_OP_ADAPTIVE_POOL_BWD] = {reference_adaptive_pool_bwd, 0},
    [HR_OP_RESIZE] = {reference_resize, 0},
    [HR_OP_RESIZE_BWD] = {reference_resize_bwd, 0},
    [HR_OP_UPSAMPLE] = {reference_upsample, 0},
    [HR_OP_UPSAMPLE_BWD] = {reference_upsample_bwd, 0},
    [HR_OP_AVG_POOL] = {reference_avg_pool, 0},
    [HR_OP_AVG_POOL_BWD] = {reference_avg_pool_bwd, 0},
    [HR_OP_CONV2D_TRANSPOSE] = {reference_conv2d_transpose, 0},
    [HR_OP_CONV2D_TRANSPOSE_BWD_DATA] = {reference_conv2d_transpose_bwd_data, 0},
    [HR_OP_CONV2D_TRANSPOSE_BWD_WEIGHTS] = {reference_conv2d_transpose_bwd_weights, 0},
    [HR_OP_BATCH_NORM_APPLY] = {reference_batch_norm_eval, 0},
    [HR_OP_MSE] = {reference_mse, 0},
    [HR_OP_MSE_BWD] = {reference_mse_bwd, 0},
    [HR_OP_BINARY_XENT] = {reference_binary, 0},
    [HR_OP_BINARY_XENT_BWD] = {reference_binary_bwd, 0},
    [HR_OP_FOCAL] = {reference_binary, 0},
    [HR_OP_FOCAL_BWD] = {reference_binary_bwd, 0},
    [HR_OP_KL] = {reference_kl, 0},
    [HR_OP_KL_BWD] = {reference_kl_bwd, 0},
    [HR_OP_SOFTMAX_XENT] = {reference_softmax_xent, 0},
    [HR_OP_SOFTMAX_XENT_BWD] = {reference_softmax_xent_bwd, 0},
    [HR_OP_SOFTMAX_XENT_STREAM] = {reference_softmax_xent_stream, 0},
    [HR_OP_SOFTMAX_XENT_STREAM_BWD] = {reference_softmax_xent_stream_bwd, 0},
    [HR_OP_SOFTMAX_XENT_GRADIENT] = {reference_softmax_xent_gradient, 0},
    [HR_OP_ACCURACY] = {reference_accuracy, 0},
    [HR_OP_ROUTE] = {reference_route, 0},
    [HR_OP_ROUTE_BWD] = {reference_route_bwd, 0},
    [HR_OP_BALANCE] = {reference_balance, 0},
    [HR_OP_BALANCE_BWD] = {reference_balance_bwd, 0},
    [HR_OP_DISPATCH] = {reference_dispatch, 0},
    [HR_OP_DISPATCH_BWD] = {reference_dispatch_bwd, 0},
    [HR_OP_GATHER] = {reference_gather, 0},
    [HR_OP_GATHER_BWD] = {reference_gather_bwd, 0},
    [HR_OP_QUANTIZE_INT8] = {reference_quantize_int8, 0},
    [HR_OP_QUANTIZE_INT4] = {reference_quantize_int4, 0},
    [HR_OP_DENSE_INT8] = {reference_dense_int8, 0},
    [HR_OP_DENSE_INT8_WEIGHTS] = {reference_dense_weights, 0},
    [HR_OP_DENSE_INT4_WEIGHTS] = {reference_dense_weights, 0},
    [HR_OP_EMBEDDING_INT8] = {reference_embedding_int8, 0},
    [HR_OP_EMBEDDING_INT4] = {reference_embedding_int4, 0},
    [HR_OP_DEQUANTIZE] = {reference_dequantize, 0},
    [HR_OP_EXPERT_DENSE] = {reference_expert_dense, 0},
    [HR_OP_EXPERT_DENSE_BWD_DATA] = {reference_expert_dense_bwd_data, 0},
    [HR_OP_EXPERT_DENSE_BWD_WEIGHTS] = {reference_expert_dense_bwd_weights, 0},
    [HR_OP_MATMUL] = {reference_matmul, 0},
    [HR_OP_MATMUL_BWD_A] = {reference_matmul_bwd_a, 0},
    [HR_OP_MATMUL_BWD_B] = {reference_matmul_bwd_b, 0},
    [HR_OP_SOFTMAX] = {reference_softmax, 0},
    [HR_OP_SOFTMAX_BWD] = {reference_softmax_bwd, 0},
    [HR_OP_ATTENTION_SCORES] = {reference_attention_scores, 0},
    [HR_OP_ATTENTION_SCORES_BWD_Q] = {reference_attention_scores_bwd_q, 0},
    [HR_OP_ATTENTION_SCORES_BWD_K] = {reference_attention_scores_bwd_k, 0},
    [HR_OP_ATTENTION_VALUES] = {reference_attention_values, 0},
    [HR_OP_ATTENTION_VALUES_BWD_P] = {reference_attention_values_bwd_p, 0},
    [HR_OP_ATTENTION_VALUES_BWD_V] = {reference_attention_values_bwd_v, 0},
    [HR_OP_ATTENTION] = {reference_attention, 0},
    [HR_OP_ATTENTION_BWD] = {reference_attention_bwd, 0},
    [HR_OP_ROTARY] = {reference_rotary, 0},
    [HR_OP_ROTARY_BWD] = {reference_rotary, 0},
    [HR_OP_CAST] = {reference_cast, 0},
    [HR_OP_NORMALISE] = {reference_normalise, 0},
    [HR_OP_FINITE] = {reference_finite, 0},
    [HR_OP_UNSCALE] = {reference_unscale, UPDATES(0)},
    [HR_OP_SCALE_UPDATE] = {reference_scale_update, UPDATES(0)},
    [HR_OP_SGD] = {reference_sgd, UPDATES(0)},
    [HR_OP_MOMENTUM] = {reference_momentum, UPDATES(0) | UPDATES(2)},
    [HR_OP_RMSPROP] = {reference_rmsprop, UPDATES(0) | UPDATES(2)},
    [HR_OP_ADAM] = {reference_adam, UPDATES(0) | UPDATES(2) | UPDATES(3)},
    [HR_OP_LION] = {reference_lion, UPDATES(0) | UPDATES(2)},
    [HR_OP_ADAFACTOR] = {reference_adafactor, UPDATES(0) | UPDATES(2) | UPDATES(3)},
    [HR_OP_ADAFACTOR_KERAS] = {reference_adafactor, UPDATES(0) | UPDATES(2) | UPDATES(3) | UPDATES(4)},
    [HR_OP_ADAM8BIT] = {reference_adam8bit, UPDATES(0) | UPDATES(4)},
    [HR_OP_SQUARE_SUM] = {reference_square_sum, UPDATES(1)},
    [HR_OP_CLIP] = {reference_clip, 0},
    [HR_OP_EMA] = {reference_ema, UPDATES(0)},
    [HR_OP_ACCUMULATE] = {reference_accumulate, UPDATES(0)},
    [HR_OP_PRUNE] = {reference_prune, UPDATES(0) | UPDATES(1)},
    [HR_OP_PRUNE_CHANNELS] = {reference_prune_channels, UPDATES(0)},
    [HR_OP_LSTM] = {reference_lstm, 0},
    [HR_OP_GRU] = {reference_gru, 0},
    [HR_OP_GRU_BWD] = {reference_gru_bwd, 0},
    [HR_OP_LSTM_BWD] = {reference_lstm_bwd, 0},
    [HR_OP_LAYER_NORM] = {reference_layer_norm, 0},
    [HR_OP_LAYER_NORM_BWD] = {reference_layer_norm_bwd, 0},
    [HR_OP_RMS_NORM] = {reference_rms_norm, 0},
    [HR_OP_RMS_NORM_BWD] = {reference_rms_norm_bwd, 0},
    [HR_OP_GELU] = {reference_gelu, 0},
    [HR_OP_GELU_BWD] = {reference_gelu_bwd, 0},
    [HR_OP_SILU] = {reference_silu, 0},
    [HR_OP_SILU_BWD] = {reference_silu_bwd, 0},
    [HR_OP_TANH] = {reference_tanh, 0},
    [HR_OP_TANH_BWD] = {reference_tanh_bwd, 0},
    [HR_OP_SIGMOID] = {reference_sigmoid, 0},
    [HR_OP_SIGMOID_BWD] = {reference_sigmoid_bwd, 0},
    [HR_OP_HARD_SIGMOID] = {reference_hard_sigmoid, 0},
    [HR_OP_HARD_SIGMOID_BWD] = {reference_hard_sigmoid_bwd, 0},
    [HR_OP_HARD_SWISH] = {reference_hard_swish, 0},
    [HR_OP_HARD_SWISH_BWD] = {reference_hard_swish_bwd, 0},
    [HR_OP_LEAKY_RELU] = {reference_leaky_relu, 0},
    [HR_OP_LEAKY_RELU_BWD] = {reference_leaky_relu_bwd, 0},
    [HR_OP_SOFTPLUS] = {reference_softplus, 0},
    [HR_OP_SOFTPLUS_BWD] = {reference_softplus_bwd, 0},
    [HR_OP_MISH] = {reference_mish, 0},
    [HR_OP_MISH_BWD] = {reference_mish_bwd, 0},
    [HR_OP_RELATIVE_BIAS] = {reference_relative_bias, 0},
    [HR_OP_RELATIVE_BIAS_BWD] = {reference_relative_bias_bwd, 0},
    [HR_OP_GROUP_NORM] = {reference_group_norm, 0},
    [HR_OP_GROUP_NORM_BWD] = {reference_group_norm_bwd, 0},
    [HR_OP_EMBEDDING] = {reference_embedding, 0},
    [HR_OP_EMBEDDING_BWD] = {reference_embedding_bwd, 0},
    [HR_OP_ADD_BROADCAST] = {reference_add_broadcast, 0},
    [HR_OP_BROADCAST] = {reference_broadcast, 0},
    [HR_OP_DROPOUT] = {reference_dropout, 0},
    [HR_OP_DROPOUT_BWD] = {reference_dropout_bwd, 0},
    [HR_OP_DROPOUT_BWD_MASK] = {reference_dropout_bwd_mask, 0},
    [HR_OP_DROP_PATH] = {reference_drop_path, 0},
    [HR_OP_DROP_PATH_BWD] = {reference_drop_path_bwd, 0},
    [HR_OP_FAKE_QUANT_WEIGHTS] = {reference_fake_quant_weights, 0},
    [HR_OP_FAKE_QUANT] = {reference_fake_quant, 0},
    [HR_OP_FAKE_QUANT_BWD] = {reference_fake_quant_bwd, 0},
    [HR_OP_TRACK_RANGE] = {reference_track_range, UPDATES(1)},
};

// ---- target ---------------------------------------------------------------------------------------------------

static hr_status require_plain(const op_query *q, const op_operand *operand, hr_err *err)
{
    if (operand->layout == HR_LAYOUT_PLAIN) {
        return HR_OK;
    }
    return HR_FAIL(err, DEVICE, "%s on the reference device needs plain layouts, had %s",
                   op_name((hr_op)q->op), layout_name((hr_layout)operand->layout));
}

static hr_status require_supported(const op_query *q, hr_err *err)
{
    if (rows[q->op].kernel == NULL && op_needs_kernel((hr_op)q->op)) {
        return HR_FAIL(err, DEVICE, "the reference device has no kernel for %s", op_name((hr_op)q->op));
    }
    for (uint32_t k = 0; k < q->in_count; k++) {
        HR_TRY(require_plain(q, &q->in[k], err));
    }
    for (uint32_t k = 0; k < q->out_count; k++) {
        HR_TRY(require_plain(q, &q->out[k], err));
    }
    return HR_OK;
}

static hr_status target_answers(void *context, const op_query *q, uint64_t workspace_limit,
                                target_answer *out, hr_err *err)
{
    (void)context, (void)workspace_limit;
    memset(out, 0, sizeof *out);
    HR_TRY(require_supported(q, err));
    out->impl = op_needs_kernel((hr_op)q->op) ? "reference" : NULL;
    return HR_OK;
}

static bool target_fuses(void *context, hr_op op, hr_act act)
{
    (void)context, (void)op, (void)act;
    return false;
}

static void reference_target(void *context, hr_target *out)
{
    const char name[] = "reference";
    *out = (hr_target){.name = device_reference.name,
                       .key = hash64(name, sizeof name, 0),
                       .context = context,
                       .ask = target_answers,
                       .fuses = target_fuses};
}

// ---- programs -------------------------------------------------------------------------------------------------

typedef struct loaded_program {
    const program *source; // borrowed until unload
    op_query *query;       // one per instruction
    double *scratch;       // widened operands of one instruction; NULL when no operand is float32
} loaded_program;

static uint64_t elements(const op_operand *operand)
{
    uint64_t count = 0;
    (void)shape_elements(&operand->shape, &count);
    return count;
}

static bool is_widened(const op_operand *operand)
{
    return operand->dtype == HR_F32 || operand->dtype == HR_F16 || operand->dtype == HR_BF16;
}

static uint64_t widened_elements(const op_operand *operands, uint32_t count)
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < count; k++) {
        sum += is_widened(&operands[k]) ? elements(&operands[k]) : 0;
    }
    return sum;
}

static void reference_unload(void *context, void *kernels)
{
    (void)context;
    loaded_program *loaded = kernels;
    if (loaded == NULL) {
        return;
    }
    hr_free(loaded->scratch);
    hr_free(loaded->query);
    hr_free(loaded);
}

// Fills the queries; *scratch_elements is what the widest instruction needs.
static hr_status load_queries(loaded_program *loaded, uint64_t *scratch_elements, hr_err *err)
{
    const program *p = loaded->source;
    *scratch_elements = 0;
    for (uint32_t i = 0; i < p->instr_count; i++) {
        op_query *q = &loaded->query[i];
        program_query(p, &p->instrs[i], q);
        HR_TRY(require_supported(q, err));
        if (!op_needs_kernel(p->instrs[i].op)) {
            continue;
        }
        const uint64_t wide = widened_elements(q->in, q->in_count) + widened_elements(q->out, q->out_count);
        *scratch_elements = wide > *scratch_elements ? wide : *scratch_elements;
    }
    return HR_OK;
}

static hr_status load_into(loaded_program *loaded, hr_err *err)
{
    uint64_t scratch_elements = 0;
    loaded->query = hr_calloc(loaded->source->instr_count, sizeof *loaded->query);
    if (loaded->query == NULL) {
        return HR_FAIL(err, NOMEM, "the reference device needs %u instruction records",
                       loaded->source->instr_count);
    }
    HR_TRY(load_queries(loaded, &scratch_elements, err));
    if (scratch_elements == 0) {
        return HR_OK;
    }
    loaded->scratch = hr_calloc(scratch_elements, sizeof *loaded->scratch);
    if (loaded->scratch == NULL) {
        return HR_FAIL(err, NOMEM, "the reference device widens its operands and needs %llu bytes of scratch",
                       (unsigned long long)(scratch_elements * sizeof *loaded->scratch));
    }
    return HR_OK;
}

static hr_status reference_load(void *context, const program *p, void **kernels, hr_err *err)
{
    *kernels = NULL;
    loaded_program *loaded = hr_calloc(1, sizeof *loaded);
    if (loaded == NULL) {
        return HR_FAIL(err, NOMEM, "the reference device needs %zu bytes for a program", sizeof *loaded);
    }
    loaded->source = p;
    const hr_status status = load_into(loaded, err);
    if (status != HR_OK) {
        reference_unload(context, loaded);
        return status;
    }
    *kernels = loaded;
    return HR_OK;
}

// ---- running --------------------------------------------------------------------------------------------------

static void widen(const void *from, uint32_t dtype, double *to, uint64_t count)
{
    const uint16_t *half = from;
    for (uint64_t i = 0; i < count; i++) {
        to[i] = (double)(dtype == HR_F32   ? ((const float *)from)[i]
                         : dtype == HR_F16 ? float_of_f16(half[i])
                                           : float_of_bf16(half[i]));
    }
}

static void round_back(const double *from, uint32_t dtype, void *to, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const float value = (float)from[i];
        if (dtype == HR_F32) {
            ((float *)to)[i] = value;
        } else {
            ((uint16_t *)to)[i] = dtype == HR_F16 ? f16_of_float(value) : bf16_of_float(value);
        }
    }
}

// The input whose tensor output k is (an update names its variable on both sides); in_count when there is none.
static uint32_t same_tensor(const instr *i, uint32_t k)
{
    uint32_t j = 0;
    while (j < i->in_count && i->in[j] != i->out[k]) {
        j++;
    }
    return j;
}

// Lays out the operands of one instruction: where they lie when the kernel can read them there, else in scratch.
static void bind(const loaded_program *loaded, const instr *i, void *const *address, reference_call *call)
{
    const op_query *q = call->query;
    double *scratch = loaded->scratch;
    for (uint32_t k = 0; k < q->in_count; k++) {
        call->in_count[k] = elements(&q->in[k]);
        call->in[k] = address[i->in[k]];
        if (is_widened(&q->in[k])) {
            widen(address[i->in[k]], q->in[k].dtype, scratch, call->in_count[k]);
            call->in[k] = scratch;
            scratch += call->in_count[k];
        }
    }
    for (uint32_t k = 0; k < q->out_count; k++) {
        const uint32_t twin = same_tensor(i, k);
        call->out_count[k] = elements(&q->out[k]);
        call->out[k] = twin < q->in_count ? call->in[twin] : address[i->out[k]];
        if (is_widened(&q->out[k]) && twin == q->in_count) {
            call->out[k] = scratch;
            scratch += call->out_count[k];
        }
    }
}

static void store(const instr *i, uint8_t updates, void *const *address, const reference_call *call)
{
    for (uint32_t k = 0; k < call->query->in_count; k++) {
        if (is_widened(&call->query->in[k]) && (updates & UPDATES(k)) != 0) {
            round_back(call->in[k], call->query->in[k].dtype, address[i->in[k]], call->in_count[k]);
        }
    }
    for (uint32_t k = 0; k < call->query->out_count; k++) {
        if (is_widened(&call->query->out[k])) {
            round_back(call->out[k], call->query->out[k].dtype, address[i->out[k]], call->out_count[k]);
        }
    }
}

static hr_status reference_run(void *context, void *kernels, uint32_t instr_index, void *const *address,
                               step_io *io, hr_err *err)
{
    (void)context, (void)err;
    const loaded_program *loaded = kernels;
    const instr *i = &loaded->source->instrs[instr_index];
    const reference_row *row = &rows[i->op];
    reference_call call = {.query = &loaded->query[instr_index], .io = io};
    bind(loaded, i, address, &call);
    row->kernel(&call);
    store(i, row->updates, address, &call);
    if (i->op == HR_OP_READ && i->attr.slot == READ_HEALTH) {
        io->health = address[i->in[0]]; // as it lies, not widened
    }
    return HR_OK;
}

// One thread, and loops that a compiler vectorises here and there: a twentieth of what a lane of the cpu device does.
static const double loop_lanes = 0.05;

// ---- device ---------------------------------------------------------------------------------------------------

static hr_status reference_open(const device_options *options, void **context, hr_err *err)
{
    (void)options;
    cost_rates *rates = hr_calloc(1, sizeof *rates); // it has no other state
    *context = rates;
    if (rates == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for the reference device");
    }
    rates_usual(rates, 1, loop_lanes, true);
    return HR_OK;
}

static void reference_close(void *context)
{
    hr_free(context);
}

static void reference_isa(void *context, char *text, uint32_t size)
{
    (void)context;
    const char isa[] = "plain C, float64";
    if (size > 0) {
        const size_t count = size < sizeof isa ? size - 1 : sizeof isa - 1;
        memcpy(text, isa, count);
        text[count] = '\0';
    }
}

static hr_status reference_memory(void *context, uint64_t capacity_bytes, bool numbers, backing *out,
                                  hr_err *err)
{
    (void)context;
    return numbers ? backing_numbers_open(capacity_bytes, PAGE_BYTES, out, err)
                   : backing_pages_open(capacity_bytes, out, err);
}

static void *host_pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static hr_status reference_copy_in(void *context, uint64_t address, const void *host, uint64_t bytes,
                                   hr_err *err)
{
    (void)context, (void)err;
    memcpy(host_pointer(address), host, bytes);
    return HR_OK;
}

static hr_status reference_copy_out(void *context, uint64_t address, void *host, uint64_t bytes, hr_err *err)
{
    (void)context, (void)err;
    memcpy(host, host_pointer(address), bytes);
    return HR_OK;
}

// ---- time -----------------------------------------------------------------------------------------------------

static hr_time_basis reference_time_basis(void *context)
{
    (void)context;
    return HR_TIME_USUAL_LOOPS;
}

static uint64_t reference_duration_ns(void *context, const program *p, const instr *i)
{
    return rates_ns(context, p, i);
}

static double reference_spread(void *context, const instr *i)
{
    (void)i;
    return ((const cost_rates *)context)->spread;
}

const device_ops device_reference = {
    .name = "reference",
    .in_order = true,
    .line = "plain C loops in float64 on one thread: slow, and the judge of every other device",
    .open = reference_open,
    .close = reference_close,
    .target = reference_target,
    .isa = reference_isa,
    .memory = reference_memory,
    .load = reference_load,
    .unload = reference_unload,
    .run = reference_run,
    .time_basis = reference_time_basis,
    .duration_ns = reference_duration_ns,
    .spread = reference_spread,
    .copy_in = reference_copy_in,
    .copy_out = reference_copy_out,
};
