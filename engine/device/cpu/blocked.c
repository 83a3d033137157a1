// SPDX-License-Identifier: Apache-2.0
// Which operations run on images in blocks of 16 channels, and what that saves.
//
// Convolutions gain where the library has the plain ones too, more than half of their time where Winograd's algorithm is
// taken. Where a kernel of our own computes over plain images they lose the reorder of their weights, which ours read as
// they lie. All other operations run about equally fast either way and follow their neighbours.
#include <string.h>

#include "cpu.h"

static bool is_blocked(const op_operand *image)
{
    return image->layout == HR_LAYOUT_BLOCKED;
}

static bool is_convolution(uint32_t op)
{
    return op == HR_OP_CONV2D || op == HR_OP_CONV2D_BWD_DATA || op == HR_OP_CONV2D_BWD_WEIGHTS;
}

static bool is_depthwise(const conv_shape *s)
{
    return s->groups > 1 && s->groups == s->c && s->groups == s->f;
}

// oneDNN reads a blocked image, or planes of fewer channels than a block (a network's first convolution).
static bool suits_blocked_conv(const op_query *q)
{
    const conv_shape s = cpu_conv_shape(q);
    const bool first = s.kind != CONV_BWD_DATA && s.c < OP_BLOCK_CHANNELS && s.groups == 1;
    return (s.groups == 1 || is_depthwise(&s)) && s.y_blocked && (s.x_blocked || first);
}

static bool has_blocked_images(const op_query *q)
{
    bool any = false;
    for (uint32_t k = 0; k < (uint32_t)q->in_count + q->out_count; k++) {
        const op_operand *t = k < q->in_count ? &q->in[k] : &q->out[k - q->in_count];
        if (is_blocked(t) && t->shape.dim[3] % OP_BLOCK_CHANNELS != 0) {
            return false;
        }
        any |= is_blocked(t);
    }
    return any;
}

// Channels are joined and cut in whole blocks.
static bool cuts_blocks(const op_query *q)
{
    return (q->op == HR_OP_CONCAT || q->op == HR_OP_SLICE || q->op == HR_OP_SLICE_BWD) &&
           q->in[0].shape.rank == 4 && q->attr.axis == 3 && q->attr.offset % OP_BLOCK_CHANNELS == 0;
}

bool cpu_prefers_blocked(void *context, const op_query *q)
{
    static const bool follows[HR_OP_COUNT] = {[HR_OP_BATCH_NORM] = true,
                                              [HR_OP_BATCH_NORM_EVAL] = true,
                                              [HR_OP_BATCH_NORM_BWD] = true,
                                              [HR_OP_RELU] = true,
                                              [HR_OP_RELU_BWD] = true,
                                              [HR_OP_ADD] = true,
                                              [HR_OP_MAX_POOL] = true,
                                              [HR_OP_MAX_POOL_BWD] = true,
                                              [HR_OP_MAX_POOL_BWD_INDEX] = true,
                                              [HR_OP_GLOBAL_AVG_POOL] = true,
                                              [HR_OP_GLOBAL_AVG_POOL_BWD] = true,
                                              [HR_OP_GELU] = true,
                                              [HR_OP_GELU_BWD] = true,
                                              [HR_OP_SILU] = true,
                                              [HR_OP_SILU_BWD] = true,
                                              [HR_OP_TANH] = true,
                                              [HR_OP_TANH_BWD] = true,
                                              [HR_OP_SIGMOID] = true,
                                              [HR_OP_SIGMOID_BWD] = true,
                                              [HR_OP_BATCH_NORM_APPLY] = true,
                                              [HR_OP_RELU6] = true,
                                              [HR_OP_RELU6_BWD] = true,
                                              [HR_OP_MULTIPLY] = true,
                                              [HR_OP_MULTIPLY_BWD] = true,
                                              [HR_OP_SCALE] = true,
                                              [HR_OP_ZERO_PAD] = true,
                                              [HR_OP_ZERO_PAD_BWD] = true,
                                              [HR_OP_UPSAMPLE] = true,
                                              [HR_OP_UPSAMPLE_BWD] = true,
                                              [HR_OP_AVG_POOL] = true,
                                              [HR_OP_AVG_POOL_BWD] = true};
    const cpu_impl *impl = NULL;
    const bool suits = is_convolution(q->op) ? suits_blocked_conv(q) : follows[q->op] || cuts_blocks(q);
    return onednn_blocks_16() && suits && has_blocked_images(q) && !cpu_has_half(q) &&
           cpu_pick(context, q, &impl, NULL) == HR_OK;
}

// ---- what it saves --------------------------------------------------------------------------------------------
//
// Measured on one core of a Xeon with AVX-512 (every convolution of ResNet-18 and ResNet-50 in both layouts); what
// the machine was measured to do by `calibrate` replaces the rates, the shares stay.

static const double seconds_per_flop = 1.0 / 100e9; // of a plain convolution, on one thread
static const double seconds_per_byte = 1.0 / 10e9;  // of a reorder, read and written, on one thread

// The same operation, all of it plain.
static op_query plain_query(const op_query *q)
{
    op_query plain = *q;
    for (uint32_t k = 0; k < q->in_count; k++) {
        plain.in[k].layout = HR_LAYOUT_PLAIN;
    }
    for (uint32_t k = 0; k < q->out_count; k++) {
        plain.out[k].layout = HR_LAYOUT_PLAIN;
    }
    return plain;
}

static bool is_ours_when_plain(const cpu_device *device, const op_query *q)
{
    const op_query plain = plain_query(q);
    const cpu_impl *impl = NULL;
    return cpu_pick(device, &plain, &impl, NULL) == HR_OK && strcmp(impl->name, cpu_onednn_conv.name) != 0;
}

static uint64_t weights_bytes(const conv_shape *s)
{
    return (uint64_t)(s->kernel_h * s->kernel_w * (s->c / s->groups) * s->f) * sizeof(float);
}

// Of the time of the library's plain convolution.
static double share_saved(const conv_shape *s, const char *impl)
{
    static const double pointwise[] = {
        [CONV_FORWARD] = 0.06, [CONV_BWD_DATA] = 0.08, [CONV_BWD_WEIGHTS] = 0.08};
    static const double wide[] = {[CONV_FORWARD] = 0.02, [CONV_BWD_DATA] = 0.03, [CONV_BWD_WEIGHTS] = 0.08};
    if (strstr(impl, "wino") != NULL) {
        return 0.55;
    }
    return s->kernel_h == 1 && s->kernel_w == 1 ? pointwise[s->kind] : wide[s->kind];
}

double cpu_blocked_gain_seconds(void *context, const op_query *q, const target_answer *answer)
{
    const cpu_device *device = context;
    if (!is_convolution(q->op)) {
        return 0.0;
    }
    const conv_shape s = cpu_conv_shape(q);
    if (s.groups > 1) {
        return 0.0; // the same kernel
    }
    if (is_ours_when_plain(device, q)) {
        return -cpu_reorder_seconds(context, 2 * weights_bytes(&s));
    }
    const cost_family family = s.kind == CONV_FORWARD    ? COST_CONV
                               : s.kind == CONV_BWD_DATA ? COST_CONV_DATA
                                                         : COST_CONV_WEIGHTS;
    const cost_rate *measured = &device->rates.of[family][RATE_FLOAT32];
    const bool known = device->calibrated && measured->instructions > 0 && measured->seconds_per_flop > 0.0;
    const double rate = known ? measured->seconds_per_flop : seconds_per_flop / device->threads;
    return share_saved(&s, answer->impl) * rate * (double)op_flops(q);
}

double cpu_reorder_seconds(void *context, uint64_t bytes)
{
    const cpu_device *device = context;
    const cost_rate *measured = &device->rates.of[COST_COPY][RATE_FLOAT32];
    if (device->calibrated && measured->instructions > 0) {
        return measured->start_seconds + measured->seconds_per_byte * (double)bytes;
    }
    return seconds_per_byte / device->threads * (double)bytes;
}
