// SPDX-License-Identifier: Apache-2.0
#include "ops/pytorch.h"

#include <stddef.h>

#include "ops/attention.h"
#include "ops/rows.h"

enum { INT64_BYTES = 8, FLOAT32_BYTES = 4, SCORES_ALIGNED = 32, AMPERE = 8, HOPPER = 9, BLACKWELL = 12 };
// Of the kernels of scaled_dot_product_attention.
enum { BLOCK = 64, WIDE_BLOCK = 128, BLOCK_STATE = 16, FLASH_FEATURES = 32 };

// Places of a pooling's maxima are int64, as every index is.
static uint64_t index_bytes(const op_query *forward, unsigned k)
{
    return k == 1 ? op_out_elements(forward, 1) * INT64_BYTES : 0;
}

// dropout_ multiplies by what it keeps: the mask, divided by the share that stays, in the type of x.
static uint64_t mask_bytes(const op_query *forward, unsigned k)
{
    const bool multiplies = (forward->attr.flags & OP_FLAG_IN_PLACE) != 0;
    return k == 1 && multiplies ? op_out_elements(forward, 0) * dtype_bytes((hr_dtype)forward->out[0].dtype)
                                : 0;
}

// scaled_dot_product_attention takes its flash kernel for types of two bytes, the memory-efficient one for float32.
static bool is_flash(const op_query *forward)
{
    return forward->in[0].dtype == HR_F16 || forward->in[0].dtype == HR_BF16;
}

// The memory-efficient kernel's log Σ exp has rows of a multiple of 32 queries (transformers/cuda/attention.cu).
static uint64_t scores_bytes(const op_query *forward, unsigned k)
{
    const int64_t *d = forward->out[1].shape.dim;
    const uint64_t queries = ((uint64_t)d[2] + SCORES_ALIGNED - 1) / SCORES_ALIGNED * SCORES_ALIGNED;
    return k == 1 && !is_flash(forward) ? (uint64_t)d[0] * (uint64_t)d[1] * queries * FLOAT32_BYTES : 0;
}

// _conv_depthwise2d_backward makes the gradient of the weights first.
static bool is_depthwise(const op_query *forward)
{
    const hr_shape *x = &forward->in[0].shape;
    return forward->attr.groups > 1 && forward->attr.groups == x->dim[x->rank - 1];
}

// The memory-efficient kernel's state is two scalars on the card without dropout, with it they are the host's.
static uint64_t random_state(const op_query *forward)
{
    return forward->attr.rate > 0 || is_flash(forward) ? 0 : INT64_BYTES;
}

// The flash kernel's are a pair and one that is not used.
static uint64_t flash_state(const op_query *forward)
{
    return is_flash(forward) ? 2 * INT64_BYTES : 0;
}

static uint64_t flash_unused(const op_query *forward)
{
    return is_flash(forward) ? INT64_BYTES : 0;
}

static uint64_t one_real(const op_query *forward)
{
    return dtype_bytes((hr_dtype)forward->out[1].dtype);
}

static uint64_t like_first_result(const op_query *forward)
{
    return op_out_elements(forward, 0) * dtype_bytes((hr_dtype)forward->out[0].dtype);
}

static uint64_t like_first_input(const op_query *forward)
{
    return op_in_elements(forward, 0) * dtype_bytes((hr_dtype)forward->in[0].dtype);
}

static uint64_t like_alpha(const op_query *forward)
{
    return forward->attr.momentum > 0 ? like_first_input(forward) : 0;
}

// A kernel that wants rows copies what nn.MultiheadAttention has turned.
static uint64_t turned_input(const op_query *forward)
{
    return (forward->attr.flags & OP_FLAG_TURNED) != 0 ? like_first_input(forward) : 0;
}

static uint64_t turned_gradient(const op_query *forward)
{
    return (forward->attr.flags & OP_FLAG_TURNED_BACK) != 0 ? like_first_result(forward) : 0;
}

static uint64_t turned_flash(const op_query *forward)
{
    return is_flash(forward) ? turned_gradient(forward) : 0;
}

// mm's gradients come in the order of mat2 and self, addmm's in that of mat1, mat2 and self; a linear layer is an addmm where it has a
// bias and its rows lie one behind the other.
static bool is_mm(const op_query *forward)
{
    return forward->in_count < 3 || (forward->attr.flags & OP_FLAG_TURNED) != 0;
}

// With dropout the flash kernel's state is made twice.
static uint64_t state_of_dropout(const op_query *forward)
{
    return forward->attr.rate > 0 ? flash_state(forward) : 0;
}

static uint64_t state_without(const op_query *forward)
{
    return forward->attr.rate > 0 ? 0 : flash_state(forward);
}

// Σ of gradient times result over a head's features, of each place (attention_backward.cu); what it is the sum of; and the same in the
// order of heads.
static uint64_t products_of_heads(const op_query *forward)
{
    return is_flash(forward) ? 0 : like_first_result(forward);
}

static uint64_t sums_of_heads(const op_query *forward)
{
    const op_attention a = op_attention_of(forward);
    return is_flash(forward) ? 0 : (uint64_t)(a.samples * a.heads * a.queries) * FLOAT32_BYTES;
}

static uint64_t rounded_up(int64_t count, int64_t to)
{
    return (uint64_t)((count + to - 1) / to * to);
}

// The gradient of the queries is added up in blocks of 64 or, of wider heads, 128 queries by 64 features, each with 16 bytes of its
// own (mem_eff_attention/kernel_backward.h, GradQTempStorage). A card of 100 KiB of shared memory has blocks of 64 for these, too.
static uint64_t sums_of_queries(const op_query *forward)
{
    const op_attention a = op_attention_of(forward);
    const int64_t rows = a.features <= BLOCK ? BLOCK : WIDE_BLOCK;
    const uint64_t blocks =
        rounded_up(a.queries, rows) / (uint64_t)rows * (rounded_up(a.features, BLOCK) / BLOCK);
    const uint64_t block = (uint64_t)rows * BLOCK * FLOAT32_BYTES + BLOCK_STATE;
    return is_flash(forward) ? 0 : (uint64_t)(a.samples * a.heads) * blocks * block;
}

// The flash kernel's, of whole blocks of queries (flash_attn/flash_api.cpp): softmax_d and dq_accum.
static uint64_t flash_sums(const op_query *forward)
{
    const op_attention a = op_attention_of(forward);
    return is_flash(forward)
               ? (uint64_t)(a.samples * a.heads) * rounded_up(a.queries, WIDE_BLOCK) * FLOAT32_BYTES
               : 0;
}

static uint64_t flash_queries(const op_query *forward)
{
    return flash_sums(forward) * rounded_up(op_attention_of(forward).features, FLASH_FEATURES);
}

// cross_entropy takes the log-softmax in the type of its logits, and casts that to float32 for its loss.
static uint64_t like_logits(const op_query *forward)
{
    const op_operand *logits = &forward->in[0];
    uint64_t bytes = 0, padding = 0;
    return (forward->attr.flags & OP_FLAG_LOGITS) != 0 && operand_bytes(logits, &bytes, &padding) ? bytes : 0;
}

static uint64_t log_softmax_gradient(const op_query *forward)
{
    return (forward->attr.flags & OP_FLAG_LOGITS) != 0 ? 0 : like_first_result(forward);
}

// clang-format off
static const framework_rule rules[HR_OP_COUNT] = {
    [HR_OP_CAST] = {"_to_copy", .extra = {{"log_softmax", EXTRA_FIRST, like_logits},
                                          {"log_softmax:grad", EXTRA_BEHIND, like_logits}}},
    [HR_OP_RESHAPE] = {"view"},
    [HR_OP_CONV2D] = {"convolution", .autocast = PYTORCH_NARROW, .keep_in = 0x3, .first_gradient_last = is_depthwise},
    [HR_OP_CONV2D_TRANSPOSE] = {"convolution", .autocast = PYTORCH_NARROW, .keep_in = 0x3},
    [HR_OP_DENSE] = {"addmm", .autocast = PYTORCH_NARROW, .keep_in = 0x3, .first_gradient_last = is_mm,
                     .extra = {{"turned:grad", EXTRA_INSTEAD, turned_gradient}}},
    [HR_OP_MATMUL] = {"bmm", .autocast = PYTORCH_NARROW, .keep_in = 0x3},
    [HR_OP_BATCH_NORM] = {"cudnn_batch_norm", .keep_in = 0x3, .keep_out = 0x6},
    [HR_OP_BATCH_NORM_APPLY] = {"native_batch_norm", .keep_in = 0x3}, // a second time
    [HR_OP_BATCH_NORM_EVAL] = {"native_batch_norm"},
    [HR_OP_LAYER_NORM] = {"native_layer_norm", .autocast = PYTORCH_WIDE, .keep_in = 0x7, .keep_out = 0x6,
                          .extra = {{"turned", EXTRA_NOW, turned_input}, {"turned:again", EXTRA_GRADIENT, turned_input},
                                    {"turned:grad", EXTRA_WITHIN, turned_gradient}}},
    [HR_OP_GROUP_NORM] = {"native_group_norm", .autocast = PYTORCH_WIDE, .keep_in = 0x3, .keep_out = 0x6},
    [HR_OP_RMS_NORM] = {"_fused_rms_norm", .autocast = PYTORCH_WIDE, .keep_in = 0x3, .keep_out = 0x2},
    [HR_OP_RELU] = {"relu_", .keep_out = 0x1, .in_place = true},
    // relu6_ keeps a clone of what it writes over: as many bytes as two tensors, of which the input is kept.
    [HR_OP_RELU6] = {"hardtanh_", .keep_in = 0x1, .gradient_of_in = true},
    [HR_OP_LEAKY_RELU] = {"leaky_relu", .keep_in = 0x1, .gradient_of_in = true},
    [HR_OP_GELU] = {"gelu", .keep_in = 0x1},
    [HR_OP_SILU] = {"silu", .keep_in = 0x1},
    [HR_OP_TANH] = {"tanh", .keep_out = 0x1},
    [HR_OP_SIGMOID] = {"sigmoid", .keep_out = 0x1},
    [HR_OP_HARD_SIGMOID] = {"hardsigmoid", .keep_in = 0x1},
    [HR_OP_HARD_SWISH] = {"hardswish", .keep_in = 0x1},
    [HR_OP_SOFTPLUS] = {"softplus", .autocast = PYTORCH_WIDE, .keep_in = 0x1},
    [HR_OP_MISH] = {"mish", .keep_in = 0x1},
    [HR_OP_MAX_POOL] = {"max_pool2d_with_indices", .keep_in = 0x1, .keep_out = 0x2, .out_bytes = index_bytes},
    [HR_OP_AVG_POOL] = {"avg_pool2d", .keep_in = 0x1},
    [HR_OP_ADAPTIVE_POOL] = {"_adaptive_avg_pool2d", .keep_in = 0x1},
    [HR_OP_GLOBAL_AVG_POOL] = {"mean.dim"},
    [HR_OP_ADD] = {"add.Tensor"},
    [HR_OP_OPAQUE] = {"opaque", .keep_in = 0x3f, .keep_out = 0x1}, // as much as can be asked
    [HR_OP_RELATIVE_BIAS] = {"index.Tensor, permute"}, // by indices that are a buffer
    [HR_OP_ADD_BROADCAST] = {"add.Tensor"},
    [HR_OP_BROADCAST] = {"expand"},
    [HR_OP_MULTIPLY] = {"mul.Tensor", .keep_in = 0x3},
    [HR_OP_MULTIPLY_BROADCAST] = {"mul.Tensor", .keep_in = 0x3,
                                  .extra = {{"product", EXTRA_GRADIENT, like_first_result}}},
    [HR_OP_SCALE] = {"mul.Scalar"},
    [HR_OP_CONCAT] = {"cat"},
    [HR_OP_STACK] = {"stack"},
    [HR_OP_PERMUTE] = {"permute, clone"}, // what reads it in its new order copies it
    [HR_OP_ROLL] = {"roll"},
    [HR_OP_REDUCE] = {"sum.dim_IntList", .autocast = PYTORCH_WIDE_SUM},
    // As products with a cosine and a sine: those of all places are made once a forward pass, and not counted here.
    [HR_OP_ROTARY] = {"mul.Tensor, neg, cat, add.Tensor"},
    [HR_OP_SLICE] = {"slice.Tensor", .view = true},
    [HR_OP_ZERO_PAD] = {"constant_pad_nd"},
    [HR_OP_UPSAMPLE] = {"upsample_nearest2d", .autocast = PYTORCH_WIDE},
    [HR_OP_RESIZE] = {"upsample_bilinear2d", .autocast = PYTORCH_WIDE},
    [HR_OP_EMBEDDING] = {"embedding", .keep_in = 0x1},
    [HR_OP_DROPOUT] = {"native_dropout", .keep_out = 0x2, .last_first = true, .out_bytes = mask_bytes},
    // The factors have the type of x; of two-byte types ours have two bytes a sample more.
    [HR_OP_DROP_PATH] = {"bernoulli_, div_, mul.Tensor", .keep_out = 0x2, .last_first = true},
    [HR_OP_SOFTMAX] = {"_softmax", .autocast = PYTORCH_WIDE, .keep_out = 0x1},
    [HR_OP_ATTENTION_SCORES] = {"bmm", .autocast = PYTORCH_NARROW, .keep_in = 0x3},
    [HR_OP_ATTENTION_VALUES] = {"bmm", .autocast = PYTORCH_NARROW, .keep_in = 0x3},
    [HR_OP_ATTENTION] = {"_efficient_attention_forward", .autocast = PYTORCH_NARROW, .keep_in = 0x7, .keep_out = 0x3, .not_float64 = true,
                         .out_bytes = scores_bytes,
                         .extra = {{"philox_seed", EXTRA_FIRST, random_state}, {"philox_offset", EXTRA_FIRST, random_state},
                                   {"rng_state", EXTRA_KEPT, state_without},
                                   {"rng_state_before", EXTRA_KEPT, state_of_dropout, .unseen = true, .brief = true},
                                   {"unused", EXTRA_KEPT, flash_unused, .unseen = true},
                                   {"rng_state", EXTRA_KEPT, state_of_dropout},
                                   {"turned:grad", EXTRA_GRADIENT, turned_gradient}, {"turned", EXTRA_GRADIENT, turned_flash},
                                   {"products", EXTRA_WITHIN, products_of_heads, .brief = true},
                                   {"sums", EXTRA_WITHIN, sums_of_heads, .brief = true}, {"delta", EXTRA_WITHIN, sums_of_heads},
                                   {"query_sums", EXTRA_WITHIN, sums_of_queries},
                                   {"softmax_d", EXTRA_WITHIN, flash_sums}, {"dq_accum", EXTRA_WITHIN, flash_queries}}},
    // The logarithms of the probabilities are as large as our probabilities; the loss keeps the sum of its weights.
    [HR_OP_SOFTMAX_XENT] = {"_log_softmax, nll_loss_forward", .autocast = PYTORCH_WIDE, .keep_in = 0x2, .keep_out = 0x1,
                            .extra = {{"total_weight", EXTRA_KEPT, one_real},
                                      {"log_softmax:grad", EXTRA_GRADIENT, log_softmax_gradient}}},
    [HR_OP_MSE] = {"mse_loss", .autocast = PYTORCH_WIDE, .keep_in = 0x3},
    // Its gradient is made of a sigmoid that lies beside it.
    [HR_OP_BINARY_XENT] = {"binary_cross_entropy_with_logits", .autocast = PYTORCH_WIDE, .keep_in = 0x3,
                           .extra = {{"sigmoid", EXTRA_GRADIENT, like_first_input}}},
    // torchvision.ops.sigmoid_focal_loss, a chain of primitives: p, 1 - t, 1 - p_t, its power, the entropy, alpha_t.
    [HR_OP_FOCAL] = {"sigmoid, binary_cross_entropy_with_logits, mul.Tensor, pow.Tensor_Scalar", .autocast = PYTORCH_WIDE, .keep_in = 0x3,
                     .extra = {{"sigmoid", EXTRA_KEPT, like_first_input}, {"entropy", EXTRA_KEPT, like_first_input},
                               {"rest_of_target", EXTRA_KEPT, like_first_input}, {"amiss", EXTRA_KEPT, like_first_input},
                               {"power", EXTRA_KEPT, like_first_input}, {"alpha", EXTRA_KEPT, like_alpha}}},
    [HR_OP_ACCURACY] = {"argmax, eq, sum"},
};
// clang-format on

const framework_rule *pytorch_rule_of(hr_op op)
{
    return rules[op].theirs == NULL ? NULL : &rules[op];
}

bool pytorch_multiplies(hr_op op)
{
    static const bool multiplies[HR_OP_COUNT] = {
        [HR_OP_DENSE] = true,
        [HR_OP_DENSE_BWD_DATA] = true,
        [HR_OP_DENSE_BWD_WEIGHTS] = true,
        [HR_OP_MATMUL] = true,
        [HR_OP_MATMUL_BWD_A] = true,
        [HR_OP_MATMUL_BWD_B] = true,
        [HR_OP_ATTENTION_SCORES] = true,
        [HR_OP_ATTENTION_SCORES_BWD_Q] = true,
        [HR_OP_ATTENTION_SCORES_BWD_K] = true,
        [HR_OP_ATTENTION_VALUES] = true,
        [HR_OP_ATTENTION_VALUES_BWD_P] = true,
        [HR_OP_ATTENTION_VALUES_BWD_V] = true,
    };
    return multiplies[op];
}

// HWIO: of each group one channel.
static bool has_one_channel(const op_operand *weights, const op_attr *attr)
{
    return attr->groups > 1 && weights->shape.dim[2] == 1;
}

bool pytorch_convolves(hr_op op)
{
    static const bool convolves[HR_OP_COUNT] = {
        [HR_OP_CONV2D] = true,
        [HR_OP_CONV2D_BWD_DATA] = true,
        [HR_OP_CONV2D_BWD_WEIGHTS] = true,
        [HR_OP_CONV2D_TRANSPOSE] = true,
        [HR_OP_CONV2D_TRANSPOSE_BWD_DATA] = true,
        [HR_OP_CONV2D_TRANSPOSE_BWD_WEIGHTS] = true,
    };
    return convolves[op];
}

bool pytorch_asks_cudnn(const op_query *q, const pytorch_images *images, uint32_t compute_major)
{
    const bool plain =
        q->op == HR_OP_CONV2D || q->op == HR_OP_CONV2D_BWD_DATA || q->op == HR_OP_CONV2D_BWD_WEIGHTS;
    const op_operand *weights = q->op == HR_OP_CONV2D_BWD_WEIGHTS ? &q->out[0] : &q->in[1];
    const bool own =
        plain && !images->channels_last && q->in[0].dtype == HR_F32 && has_one_channel(weights, &q->attr);
    const bool too_old = q->in[0].dtype == HR_BF16 && compute_major < AMPERE;
    return pytorch_convolves((hr_op)q->op) && !own && !too_old;
}

uint64_t pytorch_cublas_bytes(uint32_t compute_major)
{
    const uint64_t small = (2 * 4096 + 8 * 16) * UINT64_C(1024), large = 32 * UINT64_C(1024) * 1024;
    return compute_major >= HOPPER && compute_major <= BLACKWELL ? large : small;
}

static uint64_t power_below(uint64_t count, uint64_t most)
{
    uint64_t power = 1;
    while (2 * power <= count && 2 * power <= most) {
        power *= 2;
    }
    return power;
}

// Threads that a multiprocessor holds at once (CUDA's programming guide, technical specifications).
static uint64_t threads_of(uint32_t major, uint32_t minor)
{
    const bool small = (major == 8 && minor != 0) || major >= BLACKWELL;
    return small ? 1536 : major == 7 && minor == 5 ? 1024 : 2048;
}

pytorch_sums pytorch_column_sums(uint64_t rows, uint64_t columns, hr_dtype type, uint32_t compute_major,
                                 uint32_t compute_minor, uint32_t multiprocessors)
{
    enum { THREADS = 512, WARP = 32, VECTOR = 4, LEAST = 16, MOST = 256 }; // LEAST, MOST: values of a thread
    uint64_t vector = VECTOR;
    while (columns % vector != 0) {
        vector /= 2;
    }
    const uint64_t across = columns / vector, threads = THREADS / vector;
    const uint64_t width = power_below(across, WARP), height = power_below(rows, threads / width);
    const uint64_t values = (rows + height - 1) / height, grid = (across + width - 1) / width;
    if (multiprocessors == 0 || values < MOST) {
        return (pytorch_sums){0};
    }
    const uint64_t blocks = multiprocessors * (threads_of(compute_major, compute_minor) / (width * height));
    const uint64_t filling = (blocks + grid - 1) / grid, sharing = (values + LEAST - 1) / LEAST;
    const uint64_t fewest = (values + MOST - 1) / MOST, shared = filling < sharing ? filling : sharing;
    const uint64_t ctas = shared > fewest ? shared : fewest;
    const uint64_t found = type == HR_F64 ? sizeof(double) : FLOAT32_BYTES;
    return ctas < 2 || grid > blocks // the columns alone are more blocks than the card works on at once
               ? (pytorch_sums){0}
               : (pytorch_sums){columns * found * ctas * width * vector, grid * sizeof(int32_t)};
}
