// SPDX-License-Identifier: Apache-2.0
// Transposed convolution: the data gradient of a convolution from F channels to C, whose weights [kh,kw,F,C] lie
// as that convolution's would. Its own gradients are that convolution forward, and its weight gradient with the
// two images exchanged.
#include "headroom/units.h"

#include "ops/rows.h"

// (in − 1)·stride + kernel − pads. false when that is no length or too long. A negative pad behind adds rows that
// no kernel reaches (PyTorch's output_padding, Keras' `valid` with a stride beyond the kernel).
static bool transposed_count(int64_t in, int32_t kernel, int32_t stride, int32_t before, int32_t behind,
                             int64_t *out)
{
    uint64_t span = 0;
    if (in < 1 || kernel < 1 || stride < 1 || before < 0 || behind <= -stride ||
        !hr_mul_bytes((uint64_t)(in - 1), (uint64_t)stride, &span) || span > INT64_MAX / 2) {
        return false;
    }
    *out = (int64_t)span + kernel - before - behind;
    return *out >= 1;
}

static hr_status check_weights(const op_attr *a, const op_operand *in, size_t in_count, hr_err *err)
{
    const hr_shape *x = &in[0].shape, *w = &in[1].shape;
    if (x->rank != 4 || w->rank != 4) {
        return HR_FAIL(err, MODEL, "a transposed convolution needs an image [N,H,W,C], had %u dimensions",
                       x->rank);
    }
    if (w->dim[0] != a->kernel_h || w->dim[1] != a->kernel_w || w->dim[3] != x->dim[3] || a->groups > 1) {
        char text[64];
        return HR_FAIL(err, MODEL,
                       "a transposed convolution needs weights [%d,%d,filters,%lld] and one group, had %s",
                       a->kernel_h, a->kernel_w, (long long)x->dim[3], shape_text(w, text, sizeof text));
    }
    if (in_count > 2 && (in[2].shape.rank != 1 || in[2].shape.dim[0] != w->dim[2])) {
        return HR_FAIL(err, MODEL, "the bias needs %lld elements, had %lld", (long long)w->dim[2],
                       (long long)in[2].shape.dim[0]);
    }
    return HR_OK;
}

static hr_status conv2d_transpose_shape(const op_attr *a, const op_operand *in, size_t in_count,
                                        op_operand *out, size_t out_count, hr_err *err)
{
    (void)out_count;
    HR_TRY(check_weights(a, in, in_count, err));
    const hr_shape *x = &in[0].shape;
    int64_t height = 0, width = 0;
    if (!transposed_count(x->dim[1], a->kernel_h, a->stride_h, a->pad_top, a->pad_bottom, &height) ||
        !transposed_count(x->dim[2], a->kernel_w, a->stride_w, a->pad_left, a->pad_right, &width)) {
        return HR_FAIL(err, MODEL, "a %dx%d kernel of stride %dx%d makes no image of a %lldx%lld one",
                       a->kernel_h, a->kernel_w, a->stride_h, a->stride_w, (long long)x->dim[1],
                       (long long)x->dim[2]);
    }
    out[0] = in[0];
    out[0].shape = shape_of(4, (const int64_t[]){x->dim[0], height, width, in[1].shape.dim[2]});
    return HR_OK;
}

// 2 FLOPs per multiply-add; every pixel of x meets every weight of its channels.
static uint64_t product_flops(const op_operand *x, const op_operand *w)
{
    uint64_t elements = 0;
    (void)shape_elements(&x->shape, &elements);
    return 2 * elements * (uint64_t)(w->shape.dim[0] * w->shape.dim[1] * w->shape.dim[2]);
}

static uint64_t conv2d_transpose_flops(const op_query *q)
{
    return product_flops(&q->in[0], &q->in[1]);
}

static uint64_t bwd_data_flops(const op_query *q)
{
    return product_flops(&q->out[0], &q->in[1]);
}

static uint64_t bwd_weights_flops(const op_query *q)
{
    return product_flops(&q->in[0], &q->out[0]);
}

const op_row op_row_CONV2D_TRANSPOSE = {
    .name = "conv2d_transpose",
    .traits = {COST_CONV_DATA, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 3,
    .min_out = 1,
    .max_out = 1,
    .shape = conv2d_transpose_shape,
    .flops = conv2d_transpose_flops,
    .in_place = -1,
    .keep_in = 0x3,
    .grad_count = 2,
    .grad =
        {
            {.op = HR_OP_CONV2D_TRANSPOSE_BWD_WEIGHTS,
             .operand_count = 2,
             .operand = {{OP_SRC_IN, 0}, {OP_SRC_GRAD, 0}},
             .result_count = 2,
             .result = {1, 2}},
            {.op = HR_OP_CONV2D_TRANSPOSE_BWD_DATA,
             .operand_count = 2,
             .operand = {{OP_SRC_GRAD, 0}, {OP_SRC_IN, 1}},
             .result_count = 1,
             .result = {0}},
        },
};

const op_row op_row_CONV2D_TRANSPOSE_BWD_DATA = {
    .name = "conv2d_transpose_bwd_data",
    .traits = {COST_CONV, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .flops = bwd_data_flops,
    .in_place = -1,
};

const op_row op_row_CONV2D_TRANSPOSE_BWD_WEIGHTS = {
    .name = "conv2d_transpose_bwd_weights",
    .traits = {COST_CONV_WEIGHTS, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 2,
    .flops = bwd_weights_flops,
    .in_place = -1,
};
