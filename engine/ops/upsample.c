// SPDX-License-Identifier: Apache-2.0
// Nearest-neighbour upsampling by whole factors.
#include "headroom/units.h"

#include "ops/rows.h"

static bool times(int64_t extent, int32_t factor, int64_t *product)
{
    uint64_t bytes = 0;
    if (extent < 1 || factor < 1 || !hr_mul_bytes((uint64_t)extent, (uint64_t)factor, &bytes) ||
        bytes > INT64_MAX) {
        return false;
    }
    *product = (int64_t)bytes;
    return true;
}

static hr_status upsample_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                                size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count;
    const hr_shape *x = &in[0].shape;
    if (x->rank != 4) {
        return HR_FAIL(err, MODEL, "upsampling needs an image [N,H,W,C], had %u dimensions", x->rank);
    }
    out[0] = in[0];
    if (!times(x->dim[1], a->kernel_h, &out[0].shape.dim[1]) ||
        !times(x->dim[2], a->kernel_w, &out[0].shape.dim[2])) {
        return HR_FAIL(err, MODEL, "an image of %lldx%lld cannot be upsampled by %dx%d", (long long)x->dim[1],
                       (long long)x->dim[2], a->kernel_h, a->kernel_w);
    }
    return HR_OK;
}

static uint64_t upsample_bwd_flops(const op_query *q)
{
    return op_in_elements(q, 0);
}

const op_row op_row_UPSAMPLE = {
    .name = "upsample",
    .keeps_channels = true,
    .traits = {COST_COPY, OP_COSTLY, OP_NO_ACT, OP_BY_IMAGE, .large = OP_TILE_OUT_0},
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .shape = upsample_shape,
    .flops = op_no_flops,
    .in_place = -1,
    .keep_in = 0x1,
    .grad_count = 1,
    .grad = {{.op = HR_OP_UPSAMPLE_BWD,
              .operand_count = 1,
              .operand = {{OP_SRC_GRAD, 0}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_UPSAMPLE_BWD = {.name = "upsample_bwd",
                                    .traits = {COST_COPY, OP_COSTLY, OP_NO_ACT, OP_BY_IMAGE, .large = 0x1},
                                    .min_in = 1,
                                    .max_in = 1,
                                    .min_out = 1,
                                    .max_out = 1,
                                    .flops = upsample_bwd_flops,
                                    .in_place = -1};
