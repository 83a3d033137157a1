// SPDX-License-Identifier: Apache-2.0
// Images of another size: each pixel a mean of four neighbours, weighted by how near they are (bilinear), or the mean of
// a window (adaptive pooling).
#include "ops/rows.h"

enum { FORWARD_FLOPS = 7, BACKWARD_FLOPS = 8 }; // four products and their sum; four products that are added

static hr_status resize_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                              size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count;
    const hr_shape *x = &in[0].shape;
    if (x->rank != 4) {
        return HR_FAIL(err, MODEL, "resizing needs an image [N,H,W,C], had %u dimensions", x->rank);
    }
    if (a->kernel_h < 1 || a->kernel_w < 1) {
        return HR_FAIL(err, MODEL, "an image cannot be resized to %dx%d", a->kernel_h, a->kernel_w);
    }
    out[0] = in[0];
    out[0].shape.dim[1] = a->kernel_h;
    out[0].shape.dim[2] = a->kernel_w;
    return HR_OK;
}

static uint64_t resize_flops(const op_query *q)
{
    return FORWARD_FLOPS * op_out_elements(q, 0);
}

static uint64_t resize_bwd_flops(const op_query *q)
{
    return BACKWARD_FLOPS * op_in_elements(q, 0);
}

const op_row op_row_RESIZE = {
    .name = "resize",
    .keeps_channels = true,
    .traits = {COST_ELEMENTWISE, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .shape = resize_shape,
    .flops = resize_flops,
    .in_place = -1,
    .keep_in = 0x1,
    .grad_count = 1,
    .grad = {{.op = HR_OP_RESIZE_BWD,
              .operand_count = 1,
              .operand = {{OP_SRC_GRAD, 0}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_RESIZE_BWD = {.name = "resize_bwd",
                                  .traits = {COST_ELEMENTWISE, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                                  .min_in = 1,
                                  .max_in = 1,
                                  .min_out = 1,
                                  .max_out = 1,
                                  .flops = resize_bwd_flops,
                                  .in_place = -1};

static uint64_t pool_flops(const op_query *q)
{
    return op_in_elements(q, 0);
}

static uint64_t pool_bwd_flops(const op_query *q)
{
    return op_out_elements(q, 0);
}

const op_row op_row_ADAPTIVE_POOL = {
    .name = "adaptive_avg_pool",
    .keeps_channels = true,
    .traits = {COST_ELEMENTWISE, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .shape = resize_shape,
    .flops = pool_flops,
    .in_place = -1,
    .keep_in = 0x1,
    .grad_count = 1,
    .grad = {{.op = HR_OP_ADAPTIVE_POOL_BWD,
              .operand_count = 1,
              .operand = {{OP_SRC_GRAD, 0}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_ADAPTIVE_POOL_BWD = {.name = "adaptive_avg_pool_bwd",
                                         .traits = {COST_ELEMENTWISE, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                                         .min_in = 1,
                                         .max_in = 1,
                                         .min_out = 1,
                                         .max_out = 1,
                                         .flops = pool_bwd_flops,
                                         .in_place = -1};
