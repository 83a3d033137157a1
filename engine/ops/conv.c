// SPDX-License-Identifier: Apache-2.0
// Convolution: dense, grouped and depthwise are one operation with different `groups`.
#include "ops/rows.h"

static hr_status conv2d_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                              size_t out_count, hr_err *err)
{
    (void)out_count;
    const hr_shape *x = &in[0].shape;
    const hr_shape *w = &in[1].shape;
    if (x->rank != 4 || w->rank != 4) {
        return HR_FAIL(err, MODEL, "a convolution needs an image [N,H,W,C], had %u dimensions", x->rank);
    }
    int64_t channels = x->dim[3];
    int64_t filters = w->dim[3];
    if (a->groups < 1 || channels % a->groups != 0 || filters % a->groups != 0 ||
        w->dim[2] != channels / a->groups) {
        return HR_FAIL(err, MODEL, "%d groups do not divide %lld channels into %lld filters", a->groups,
                       (long long)channels, (long long)filters);
    }
    if (in_count > 2 && (in[2].shape.rank != 1 || in[2].shape.dim[0] != filters)) {
        return HR_FAIL(err, MODEL, "the bias needs %lld elements, had %lld", (long long)filters,
                       (long long)in[2].shape.dim[0]);
    }
    const int64_t reach_h = op_reach(a->kernel_h, a->gap_h), reach_w = op_reach(a->kernel_w, a->gap_w);
    int64_t height = op_window_count(x->dim[1], reach_h, a->stride_h, a->pad_top, a->pad_bottom);
    int64_t width = op_window_count(x->dim[2], reach_w, a->stride_w, a->pad_left, a->pad_right);
    if (height < 1 || width < 1) {
        return HR_FAIL(err, MODEL, "a %lldx%lld kernel does not fit into a %lldx%lld image",
                       (long long)reach_h, (long long)reach_w, (long long)x->dim[1], (long long)x->dim[2]);
    }
    out[0] = in[0];
    out[0].shape = shape_of(4, (const int64_t[]){x->dim[0], height, width, filters});
    return HR_OK;
}

// 2 FLOPs per multiply-add; `image` is the operand with the output's pixels (y or dy), `weights` the kernel.
static uint64_t conv_flops(const op_operand *image, const op_operand *weights)
{
    uint64_t pixels_filters = 0;
    (void)shape_elements(&image->shape, &pixels_filters);
    const int64_t *w = weights->shape.dim;
    return 2 * pixels_filters * (uint64_t)(w[0] * w[1] * w[2]);
}

static uint64_t conv2d_flops(const op_query *q)
{
    return conv_flops(&q->out[0], &q->in[1]);
}

static uint64_t conv2d_bwd_data_flops(const op_query *q)
{
    return conv_flops(&q->in[0], &q->in[1]);
}

static uint64_t conv2d_bwd_weights_flops(const op_query *q)
{
    return conv_flops(&q->in[1], &q->out[0]);
}

const op_row op_row_CONV2D = {
    .name = "conv2d",
    .traits = {COST_CONV, OP_COSTLY, OP_ACTS, OP_BY_IMAGE, .whole = 0x6, .large = 0x1},
    .min_in = 2,
    .max_in = 3,
    .min_out = 1,
    .max_out = 1,
    .shape = conv2d_shape,
    .flops = conv2d_flops,
    .in_place = -1,
    .keep_in = 0x3,
    .grad_count = 2,
    .grad =
        {
            {.op = HR_OP_CONV2D_BWD_WEIGHTS,
             .operand_count = 2,
             .operand = {{OP_SRC_IN, 0}, {OP_SRC_GRAD, 0}},
             .result_count = 2,
             .result = {1, 2}},
            {.op = HR_OP_CONV2D_BWD_DATA,
             .operand_count = 2,
             .operand = {{OP_SRC_GRAD, 0}, {OP_SRC_IN, 1}},
             .result_count = 1,
             .result = {0}},
        },
};

const op_row op_row_CONV2D_BWD_DATA = {
    .name = "conv2d_bwd_data",
    .traits = {COST_CONV_DATA, OP_COSTLY, OP_NO_ACT, OP_BY_IMAGE, .whole = 0x2, .large = OP_TILE_OUT_0},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .flops = conv2d_bwd_data_flops,
    .in_place = -1,
};

const op_row op_row_CONV2D_BWD_WEIGHTS = {
    .name = "conv2d_bwd_weights",
    .traits = {COST_CONV_WEIGHTS, OP_COSTLY, OP_NO_ACT, OP_BY_IMAGE, .sum = 0x3, .large = 0x1},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 2,
    .flops = conv2d_bwd_weights_flops,
    .in_place = -1,
};
