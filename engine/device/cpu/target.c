// SPDX-License-Identifier: Apache-2.0
// What the passes are told: the same choice that load makes, without a kernel being made.
#include <inttypes.h>

#include "headroom/units.h"

#include "base/text.h"
#include "cpu.h"

static hr_status ask(void *context, const op_query *q, uint64_t workspace_limit, target_answer *out,
                     hr_err *err)
{
    const cpu_device *device = context;
    const cpu_impl *impl = NULL;
    *out = (target_answer){0};
    if (!op_needs_kernel((hr_op)q->op)) {
        return HR_OK;
    }
    if (cpu_has_half(q) && cpu_pick(device, q, &impl, NULL) == HR_DEVICE) {
        out->widen = true;
        return HR_OK;
    }
    HR_TRY(cpu_pick(device, q, &impl, err));
    if (impl->ask != NULL) {
        onednn_ask_for_threads(device->threads);
        return impl->ask(device, q, workspace_limit, out, err);
    }
    (void)text_copy(out->impl, sizeof out->impl, impl->name);
    out->workspace_bytes = impl->workspace == NULL ? 0 : impl->workspace(device, q);
    if (out->workspace_bytes > workspace_limit) {
        char needed[HR_BYTES_TEXT_MAX], had[HR_BYTES_TEXT_MAX];
        (void)HR_FAIL(err, DEVICE, "%s needs %s of workspace, workspace.limit is %s", op_name((hr_op)q->op),
                      hr_bytes_human(out->workspace_bytes, needed), hr_bytes_human(workspace_limit, had));
        hr_err_try(err, "-s workspace.limit=%s", hr_bytes_exact(out->workspace_bytes, needed));
        return HR_DEVICE;
    }
    return HR_OK;
}

static bool fuses(void *context, hr_op op, hr_act act)
{
    (void)context;
    static const bool rectifies[HR_OP_COUNT] = {
        [HR_OP_CONV2D] = true,     [HR_OP_DENSE] = true,           [HR_OP_ADD] = true,
        [HR_OP_BATCH_NORM] = true, [HR_OP_BATCH_NORM_EVAL] = true, [HR_OP_BATCH_NORM_APPLY] = true};
    return (act == HR_ACT_RELU || act == HR_ACT_RELU6) && rectifies[op];
}

static bool has_whole_blocks(const op_operand *image)
{
    return image->shape.rank == 4 && image->shape.dim[3] % OP_BLOCK_CHANNELS == 0;
}

// oneDNN reads a blocked image, or planes of fewer channels than a block (a network's first convolution).
static bool suits_blocked_conv(const op_query *q)
{
    const bool backward = q->op == HR_OP_CONV2D_BWD_DATA;
    const op_operand *x = backward ? &q->out[0] : &q->in[0];
    const op_operand *y = q->op == HR_OP_CONV2D_BWD_WEIGHTS ? &q->in[1] : backward ? &q->in[0] : &q->out[0];
    const bool first = !backward && x->shape.dim[3] < OP_BLOCK_CHANNELS && q->attr.groups == 1;
    const bool depthwise = q->attr.groups == x->shape.dim[3] && q->attr.groups == y->shape.dim[3];
    if (q->attr.groups != 1 && !depthwise) {
        return false;
    }
    return has_whole_blocks(y) && (has_whole_blocks(x) || first);
}

static bool suits_blocked_images(const op_query *q)
{
    for (uint32_t k = 0; k < (uint32_t)q->in_count + q->out_count; k++) {
        const op_operand *t = k < q->in_count ? &q->in[k] : &q->out[k - q->in_count];
        if (t->shape.rank == 4 && !has_whole_blocks(t)) {
            return false;
        }
    }
    return true;
}

// Channels are joined and cut in whole blocks.
static bool cuts_blocks(const op_query *q)
{
    return (q->op == HR_OP_CONCAT || q->op == HR_OP_SLICE || q->op == HR_OP_SLICE_BWD) &&
           q->in[0].shape.rank == 4 && q->attr.axis == 3 && q->attr.offset % OP_BLOCK_CHANNELS == 0;
}

// Operations that are not convolutions run equally fast either way and follow their neighbours.
static bool prefers_blocked(void *context, const op_query *plain)
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
    (void)context;
    if (!onednn_blocks_16() || cpu_has_half(plain)) {
        return false;
    }
    if (plain->op == HR_OP_CONV2D || plain->op == HR_OP_CONV2D_BWD_DATA ||
        plain->op == HR_OP_CONV2D_BWD_WEIGHTS) {
        return suits_blocked_conv(plain);
    }
    return (follows[plain->op] || cuts_blocks(plain)) && suits_blocked_images(plain);
}

void cpu_fill_target(cpu_device *device, hr_target *out)
{
    *out = (hr_target){.name = device_cpu.name,
                       .key = device->key,
                       .slow_to_ask = true,
                       .context = device,
                       .ask = ask,
                       .fuses = fuses,
                       .prefers_blocked = prefers_blocked};
}
