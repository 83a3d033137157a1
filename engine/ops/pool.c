// SPDX-License-Identifier: Apache-2.0
// Pooling.
#include "ops/rows.h"

static hr_status pooled_shape(const op_attr *a, const op_operand *in, op_operand *out, hr_err *err)
{
    const hr_shape *x = &in[0].shape;
    if (x->rank != 4) {
        return HR_FAIL(err, MODEL, "pooling needs an image [N,H,W,C], had %u dimensions", x->rank);
    }
    int64_t height = op_window_count(x->dim[1], a->kernel_h, a->stride_h, a->pad_top, a->pad_bottom);
    int64_t width = op_window_count(x->dim[2], a->kernel_w, a->stride_w, a->pad_left, a->pad_right);
    if (height < 1 || width < 1) {
        return HR_FAIL(err, MODEL, "a %dx%d window does not fit into a %lldx%lld image", a->kernel_h,
                       a->kernel_w, (long long)x->dim[1], (long long)x->dim[2]);
    }
    out[0] = in[0];
    out[0].shape = shape_of(4, (const int64_t[]){x->dim[0], height, width, x->dim[3]});
    return HR_OK;
}

static hr_status max_pool_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                                size_t out_count, hr_err *err)
{
    (void)in_count;
    HR_TRY(pooled_shape(a, in, out, err));
    if ((int64_t)a->kernel_h * a->kernel_w > UINT8_MAX) {
        return HR_FAIL(err, MODEL, "a pooling window holds at most %d places, had %dx%d", UINT8_MAX,
                       a->kernel_h, a->kernel_w);
    }
    if (out_count > 1) {
        out[1] = out[0];
        out[1].dtype = HR_U8;
    }
    return HR_OK;
}

// Every window must see a pixel, or its mean would be of nothing.
static hr_status avg_pool_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                                size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count;
    HR_TRY(pooled_shape(a, in, out, err));
    if (a->pad_top >= a->kernel_h || a->pad_bottom >= a->kernel_h || a->pad_left >= a->kernel_w ||
        a->pad_right >= a->kernel_w) {
        return HR_FAIL(err, MODEL, "padding of average pooling must be below the window's %dx%d", a->kernel_h,
                       a->kernel_w);
    }
    return HR_OK;
}

static hr_status global_avg_pool_shape(const op_attr *a, const op_operand *in, size_t in_count,
                                       op_operand *out, size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count;
    const hr_shape *x = &in[0].shape;
    if (x->rank != 4) {
        return HR_FAIL(err, MODEL, "global pooling needs an image [N,H,W,C], had %u dimensions", x->rank);
    }
    out[0] = in[0];
    out[0].layout = HR_LAYOUT_PLAIN;
    out[0].shape = shape_of(2, (const int64_t[]){x->dim[0], x->dim[3]});
    return HR_OK;
}

static uint64_t window_flops(const op_query *q)
{
    return op_out_elements(q, 0) * (uint64_t)(q->attr.kernel_h * q->attr.kernel_w);
}

static uint64_t avg_pool_bwd_flops(const op_query *q)
{
    return op_in_elements(q, 0) * (uint64_t)(q->attr.kernel_h * q->attr.kernel_w);
}

static uint64_t global_avg_pool_flops(const op_query *q)
{
    return op_in_elements(q, 0);
}

const op_row op_row_MAX_POOL = {
    .name = "max_pool",
    .keeps_channels = true,
    .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_BY_IMAGE, .large = 0x1},
    .min_in = 1,
    .max_in = 5,
    .min_out = 1,
    .max_out = 2,
    .shape = max_pool_shape,
    .flops = window_flops,
    .in_place = -1,
    .keep_in = 0x1,
    .keep_out = 0x1,
    .wide_in = 0x1e,
    .grad_count = 2,
    .grad =
        {
            {.op = HR_OP_MAX_POOL_BWD,
             .when_outputs = 1,
             .operand_count = 3,
             .operand = {{OP_SRC_IN, 0}, {OP_SRC_OUT, 0}, {OP_SRC_GRAD, 0}},
             .result_count = 1,
             .result = {0}},
            {.op = HR_OP_MAX_POOL_BWD_INDEX,
             .when_outputs = 2,
             .operand_count = 2,
             .operand = {{OP_SRC_OUT, 1}, {OP_SRC_GRAD, 0}},
             .result_count = 1,
             .result = {0}},
        },
};

const op_row op_row_MAX_POOL_BWD = {
    .name = "max_pool_bwd",
    .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_BY_IMAGE, .large = 0x1 | OP_TILE_OUT_0},
    .min_in = 3,
    .max_in = 3,
    .min_out = 1,
    .max_out = 1,
    .in_place = -1};
const op_row op_row_MAX_POOL_BWD_INDEX = {
    .name = "max_pool_bwd_index",
    .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_BY_IMAGE, .large = OP_TILE_OUT_0},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .in_place = -1};

const op_row op_row_AVG_POOL = {
    .name = "avg_pool",
    .keeps_channels = true,
    .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_BY_IMAGE, .large = 0x1},
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .shape = avg_pool_shape,
    .flops = window_flops,
    .in_place = -1,
    .keep_in = 0x1,
    .grad_count = 1,
    .grad = {{.op = HR_OP_AVG_POOL_BWD,
              .operand_count = 1,
              .operand = {{OP_SRC_GRAD, 0}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_AVG_POOL_BWD = {
    .name = "avg_pool_bwd",
    .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_BY_IMAGE, .large = OP_TILE_OUT_0},
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .flops = avg_pool_bwd_flops,
    .in_place = -1};

const op_row op_row_GLOBAL_AVG_POOL = {
    .name = "global_avg_pool",
    .keeps_channels = true,
    .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .shape = global_avg_pool_shape,
    .flops = global_avg_pool_flops,
    .in_place = -1,
    .keep_in = 0x1,
    .grad_count = 1,
    .grad = {{.op = HR_OP_GLOBAL_AVG_POOL_BWD,
              .operand_count = 1,
              .operand = {{OP_SRC_GRAD, 0}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_GLOBAL_AVG_POOL_BWD = {.name = "global_avg_pool_bwd",
                                           .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                                           .min_in = 1,
                                           .max_in = 1,
                                           .min_out = 1,
                                           .max_out = 1,
                                           .in_place = -1};
