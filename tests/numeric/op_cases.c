// SPDX-License-Identifier: Apache-2.0
#include "numeric/op_cases.h"

#include <check.h>
#include <string.h>

#include "base/hash.h"
#include "numeric/op_draw.h"

int64_t op_draw_int(op_draw *d, int64_t low, int64_t high)
{
    return op_random_int(&d->state, low, high);
}

int64_t op_draw_channels(op_draw *d, int64_t largest)
{
    return d->wide ? OP_DRAW_LANES * op_draw_int(d, 1, 2) : op_draw_int(d, 1, largest);
}

const int64_t *op_draw_image(op_draw *d, int64_t dims[OP_MAX_RANK])
{
    dims[0] = op_draw_int(d, 1, 3);
    dims[1] = op_draw_int(d, 1, d->size);
    dims[2] = op_draw_int(d, 1, d->size);
    dims[3] = op_draw_channels(d, 2 * d->size);
    dims[4] = 0;
    return dims;
}

const int64_t *op_draw_rows(op_draw *d, uint32_t rank, int64_t features, int64_t dims[OP_MAX_RANK])
{
    for (uint32_t k = 0; k < OP_MAX_RANK; k++) {
        dims[k] = k + 1 < rank ? op_draw_int(d, 1, 1 + d->size) : k + 1 == rank ? features : 0;
    }
    return dims;
}

void op_draw_in(op_draw *d, op_trial *t, const int64_t dims[OP_MAX_RANK], double low, double high)
{
    const uint32_t k = t->query.in_count;
    op_trial_add_in(t, HR_F64, dims);
    op_fill(t->in[k], op_trial_in_count(t, k), &d->state, low, high);
}

void op_draw_numbers(op_draw *d, op_trial *t, const int64_t dims[OP_MAX_RANK], int64_t low, int64_t high)
{
    const uint32_t k = t->query.in_count;
    op_trial_add_in(t, HR_I32, dims);
    for (uint64_t n = 0; n < op_trial_in_count(t, k); n++) {
        t->in[k][n] = (double)op_draw_int(d, low, high);
    }
}

op_attr op_draw_window(uint64_t *state, int64_t h, int64_t w, int64_t largest)
{
    op_attr a = {.kernel_h = (int32_t)op_random_int(state, 1, largest),
                 .kernel_w = (int32_t)op_random_int(state, 1, largest),
                 .stride_h = (int32_t)op_random_int(state, 1, 2),
                 .stride_w = (int32_t)op_random_int(state, 1, 2),
                 .groups = 1};
    a.pad_top = (int32_t)op_random_int(state, 0, a.kernel_h - 1);
    a.pad_left = (int32_t)op_random_int(state, 0, a.kernel_w - 1);
    a.pad_bottom = (int32_t)op_random_int(state, 0, a.kernel_h - 1);
    a.pad_right = (int32_t)op_random_int(state, 0, a.kernel_w - 1);
    while (h + a.pad_top + a.pad_bottom < a.kernel_h) {
        a.kernel_h--;
    }
    while (w + a.pad_left + a.pad_right < a.kernel_w) {
        a.kernel_w--;
    }
    // A shrunken kernel keeps its padding below itself.
    a.pad_top = a.pad_top < a.kernel_h ? a.pad_top : a.kernel_h - 1;
    a.pad_bottom = a.pad_bottom < a.kernel_h ? a.pad_bottom : a.kernel_h - 1;
    a.pad_left = a.pad_left < a.kernel_w ? a.pad_left : a.kernel_w - 1;
    a.pad_right = a.pad_right < a.kernel_w ? a.pad_right : a.kernel_w - 1;
    return a;
}

// Gaps between taps, where the image has room for them.
static void draw_gaps(uint64_t *state, int64_t h, int64_t w, op_attr *a)
{
    a->gap_h = (int32_t)op_random_int(state, 0, 2);
    a->gap_w = (int32_t)op_random_int(state, 0, 2);
    while (h + a->pad_top + a->pad_bottom < op_reach(a->kernel_h, a->gap_h)) {
        a->gap_h--;
    }
    while (w + a->pad_left + a->pad_right < op_reach(a->kernel_w, a->gap_w)) {
        a->gap_w--;
    }
}

static op_trial convolution(hr_op op, op_draw *d)
{
    uint64_t *state = &d->state;
    const int64_t size = d->size;
    const int64_t h = op_random_int(state, 3, size + 2), w = op_random_int(state, 3, size + 2);
    op_attr a = op_draw_window(state, h, w, 3);
    if (op_random_int(state, 0, 2) == 0) {
        draw_gaps(state, h, w, &a);
    }
    int64_t channels = op_draw_channels(d, size), filters = op_draw_channels(d, size);
    switch (op_random_int(state, 0, 2)) {
    case 0: // every channel to every filter
        break;
    case 1: // groups of more than one channel
        a.groups = (int32_t)op_random_int(state, 2, 3);
        channels *= a.groups;
        filters *= a.groups;
        break;
    default: // depthwise
        a.groups = (int32_t)channels;
        filters = channels * op_random_int(state, 1, 2);
        break;
    }
    op_trial t = op_trial_make(op, a);
    op_draw_in(d, &t, DIMS(op_random_int(state, 1, 3), h, w, channels), -1.0, 1.0);
    op_draw_in(d, &t, DIMS(a.kernel_h, a.kernel_w, channels / a.groups, filters), -1.0, 1.0);
    if (op_random_int(state, 0, 1) == 1) {
        op_draw_in(d, &t, DIMS(filters), -1.0, 1.0);
    }
    op_trial_infer_out(&t, 1);
    return t;
}

// Weights as a layer's and as an embedding's table, under two to four dimensions.
static op_trial dense(hr_op op, op_draw *d)
{
    int64_t dims[OP_MAX_RANK];
    const bool turned = op_draw_int(d, 0, 1) == 1;
    const int64_t in = op_draw_int(d, 1, 4 * d->size), out = op_draw_int(d, 1, 4 * d->size);
    op_trial t = op_trial_make(op, (op_attr){.flags = turned ? OP_FLAG_TRANSPOSE : 0});
    op_draw_in(d, &t, op_draw_rows(d, (uint32_t)op_draw_int(d, 2, 4), in, dims), -1.0, 1.0);
    op_draw_in(d, &t, turned ? DIMS(out, in) : DIMS(in, out), -1.0, 1.0);
    if (op_draw_int(d, 0, 1) == 1) {
        op_draw_in(d, &t, DIMS(out), -1.0, 1.0);
    }
    op_trial_infer_out(&t, 1);
    return t;
}

// At least four rows a channel: with fewer the normalised values hardly depend on x.
static op_trial batch_norm(hr_op op, op_draw *d)
{
    uint64_t *state = &d->state;
    const int64_t size = d->size, channels = op_draw_channels(d, 2 * size);
    op_trial t = op_trial_make(op, (op_attr){.epsilon = 1e-5, .momentum = 0.1});
    if (!d->wide && op_random_int(state, 0, 1) == 0) {
        op_draw_in(d, &t, DIMS(op_random_int(state, 4, 4 + size), channels), -1.0, 3.0);
    } else {
        const int64_t h = op_random_int(state, 2, size + 1), w = op_random_int(state, 2, size + 1);
        op_draw_in(d, &t, DIMS(op_random_int(state, 1, 3), h, w, channels), -1.0, 3.0);
    }
    const bool alone = op == HR_OP_BATCH_NORM_STATISTICS;
    if (!alone) {
        op_draw_in(d, &t, DIMS(channels), 0.5, 1.5);
        op_draw_in(d, &t, DIMS(channels), -1.0, 1.0);
    }
    op_draw_in(d, &t, DIMS(channels), -1.0, 1.0);
    op_draw_in(d, &t, DIMS(channels), 0.5, 2.0);
    op_trial_infer_out(&t, alone ? 2 : op == HR_OP_BATCH_NORM ? 3 : 1);
    return t;
}

static op_trial max_pool(hr_op op, op_draw *d)
{
    uint64_t *state = &d->state;
    const int64_t size = d->size;
    const int64_t h = op_random_int(state, 2, size + 3), w = op_random_int(state, 2, size + 3);
    op_trial t = op_trial_make(op, op_draw_window(state, h, w, 3));
    op_trial_add_in(&t, HR_F64, DIMS(op_random_int(state, 1, 3), h, w, op_draw_channels(d, 2 * size)));
    op_fill_apart(t.in[0], op_trial_in_count(&t, 0), state);
    op_trial_infer_out(&t, (uint32_t)op_random_int(state, 1, 2));
    return t;
}

static op_trial pointwise(hr_op op, op_draw *d)
{
    int64_t dims[OP_MAX_RANK];
    op_trial t = op_trial_make(op, (op_attr){0});
    op_trial_add_in(&t, HR_F64, op_draw_image(d, dims));
    op_fill_nonzero(t.in[0], op_trial_in_count(&t, 0), &d->state);
    if (op == HR_OP_ADD) {
        op_draw_in(d, &t, dims, -1.0, 1.0);
    }
    op_trial_infer_out(&t, 1);
    return t;
}

static const op_draw_case cases[HR_OP_COUNT] = {
    [HR_OP_CONV2D] = convolution,
    [HR_OP_DENSE] = dense,
    [HR_OP_BATCH_NORM] = batch_norm,
    [HR_OP_BATCH_NORM_STATISTICS] = batch_norm,
    [HR_OP_BATCH_NORM_EVAL] = batch_norm,
    [HR_OP_RELU] = pointwise,
    [HR_OP_MAX_POOL] = max_pool,
    [HR_OP_GLOBAL_AVG_POOL] = pointwise,
    [HR_OP_ADD] = pointwise,
    [HR_OP_MATMUL] = op_case_matmul,
    [HR_OP_SOFTMAX] = op_case_softmax,
    [HR_OP_ATTENTION_SCORES] = op_case_attention,
    [HR_OP_ATTENTION_VALUES] = op_case_attention,
    [HR_OP_ATTENTION] = op_case_attention,
    [HR_OP_ROTARY] = op_case_rotary,
    [HR_OP_GROUP_NORM] = op_case_group_norm,
    [HR_OP_RELATIVE_BIAS] = op_case_relative,
    [HR_OP_BATCH_NORM_APPLY] = batch_norm,
    [HR_OP_SOFTMAX_XENT] = op_case_loss,
    [HR_OP_SOFTMAX_XENT_STREAM] = op_case_loss,
    [HR_OP_SOFTMAX_XENT_GRADIENT] = op_case_loss,
    [HR_OP_ACCURACY] = op_case_loss,
    [HR_OP_MSE] = op_case_loss,
    [HR_OP_KL] = op_case_loss,
    [HR_OP_BINARY_XENT] = op_case_binary,
    [HR_OP_FOCAL] = op_case_binary,
    [HR_OP_ROUTE] = op_case_route,
    [HR_OP_BALANCE] = op_case_route,
    [HR_OP_DISPATCH] = op_case_way,
    [HR_OP_GATHER] = op_case_way,
    [HR_OP_EXPERT_DENSE] = op_case_expert_dense,
    [HR_OP_QUANTIZE_INT8] = op_case_quantize,
    [HR_OP_QUANTIZE_INT4] = op_case_quantize,
    [HR_OP_DENSE_INT8] = op_case_quantized,
    [HR_OP_DENSE_INT8_WEIGHTS] = op_case_quantized,
    [HR_OP_DENSE_INT4_WEIGHTS] = op_case_quantized,
    [HR_OP_EMBEDDING_INT8] = op_case_looked_up,
    [HR_OP_EMBEDDING_INT4] = op_case_looked_up,
    [HR_OP_DEQUANTIZE] = op_case_held,
    [HR_OP_CONCAT] = op_case_concat,
    [HR_OP_SLICE] = op_case_slice,
    [HR_OP_STACK] = op_case_stack,
    [HR_OP_REDUCE] = op_case_reduce,
    [HR_OP_ZEROS] = op_case_zeros,
    [HR_OP_ZERO_PAD] = op_case_resized,
    [HR_OP_UPSAMPLE] = op_case_resized,
    [HR_OP_RESIZE] = op_case_bilinear,
    [HR_OP_ADAPTIVE_POOL] = op_case_bilinear,
    [HR_OP_PERMUTE] = op_case_permute,
    [HR_OP_ROLL] = op_case_roll,
    [HR_OP_AVG_POOL] = op_case_avg_pool,
    [HR_OP_CONV2D_TRANSPOSE] = op_case_transposed,
    [HR_OP_RELU6] = op_case_relu6,
    [HR_OP_MULTIPLY] = op_case_product,
    [HR_OP_SCALE] = op_case_product,
    [HR_OP_MULTIPLY_BROADCAST] = op_case_factor,
    [HR_OP_SGD] = op_case_update,
    [HR_OP_MOMENTUM] = op_case_update,
    [HR_OP_RMSPROP] = op_case_update,
    [HR_OP_ADAM] = op_case_update,
    [HR_OP_LION] = op_case_update,
    [HR_OP_ADAFACTOR] = op_case_adafactor,
    [HR_OP_ADAFACTOR_KERAS] = op_case_adafactor,
    [HR_OP_ADAM8BIT] = op_case_adam8bit,
    [HR_OP_SQUARE_SUM] = op_case_around_update,
    [HR_OP_CLIP] = op_case_around_update,
    [HR_OP_EMA] = op_case_around_update,
    [HR_OP_ACCUMULATE] = op_case_around_update,
    [HR_OP_PRUNE] = op_case_prune,
    [HR_OP_PRUNE_CHANNELS] = op_case_prune_channels,
    [HR_OP_LSTM] = op_case_lstm,
    [HR_OP_GRU] = op_case_gru,
    [HR_OP_LAYER_NORM] = op_case_norm_of_rows,
    [HR_OP_RMS_NORM] = op_case_norm_of_rows,
    [HR_OP_GELU] = op_case_activation,
    [HR_OP_SILU] = op_case_activation,
    [HR_OP_TANH] = op_case_activation,
    [HR_OP_SIGMOID] = op_case_activation,
    [HR_OP_HARD_SIGMOID] = op_case_activation,
    [HR_OP_HARD_SWISH] = op_case_activation,
    [HR_OP_LEAKY_RELU] = op_case_activation,
    [HR_OP_SOFTPLUS] = op_case_activation,
    [HR_OP_MISH] = op_case_activation,
    [HR_OP_EMBEDDING] = op_case_embedding,
    [HR_OP_ADD_BROADCAST] = op_case_repetition,
    [HR_OP_BROADCAST] = op_case_repetition,
    [HR_OP_DROPOUT] = op_case_dropout,
    [HR_OP_DROP_PATH] = op_case_drop_path,
    [HR_OP_FAKE_QUANT_WEIGHTS] = op_case_fake_quant,
    [HR_OP_FAKE_QUANT] = op_case_fake_quant,
    [HR_OP_TRACK_RANGE] = op_case_fake_quant,
};

// Cases do not change when operations are added.
static op_trial trial_of(hr_op op, uint64_t seed, int64_t size, bool wide)
{
    const char *name = op_name(op);
    op_draw d = {.state = hash64(name, strlen(name), seed + 1), .size = size, .wide = wide};
    ck_assert_msg(cases[op] != NULL, "%s has no cases", name);
    return cases[op](op, &d);
}

bool op_has_cases(hr_op op)
{
    return cases[op] != NULL;
}

bool op_is_for_cards(hr_op op)
{
    return op == HR_OP_BATCH_NORM_STATISTICS;
}

bool op_is_quantized(hr_op op)
{
    return (op >= HR_OP_QUANTIZE_INT8 && op <= HR_OP_DENSE_INT4_WEIGHTS) || op == HR_OP_EMBEDDING_INT8 ||
           op == HR_OP_EMBEDDING_INT4;
}

op_trial op_case(hr_op op, uint64_t seed, int64_t size)
{
    return trial_of(op, seed, size, false);
}

op_trial op_case_wide(hr_op op, uint64_t seed, int64_t size)
{
    return trial_of(op, seed, size, true);
}
