// SPDX-License-Identifier: Apache-2.0
// What no kernel computes: its result has the shape that is written, and backward reads all that it read and gave. Only the plan
// device has it.
#include "ops/rows.h"

static hr_status opaque_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                              size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count, (void)err;
    const int64_t dims[OP_MAX_RANK] = {in[0].shape.dim[0], a->kernel_h, a->kernel_w, a->stride_h,
                                       a->stride_w};
    out[0] = (op_operand){.shape = shape_of((uint32_t)a->count, dims), .dtype = in[0].dtype};
    return HR_OK;
}

#define OPAQUE_GRAD(k)                                                                                       \
    {                                                                                                        \
        .op = HR_OP_OPAQUE_BWD, .operand_count = 8,                                                          \
        .operand = {{OP_SRC_IN, 0}, {OP_SRC_IN, 1}, {OP_SRC_IN, 2},  {OP_SRC_IN, 3},                         \
                    {OP_SRC_IN, 4}, {OP_SRC_IN, 5}, {OP_SRC_OUT, 0}, {OP_SRC_GRAD, 0}},                      \
        .result_count = 1, .result = {                                                                       \
            k                                                                                                \
        }                                                                                                    \
    }

const op_row op_row_OPAQUE = {
    .name = "opaque",
    .traits = {COST_COPY, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 1,
    .max_in = 6,
    .min_out = 1,
    .max_out = 1,
    .shape = opaque_shape,
    .flops = op_no_flops,
    .in_place = -1,
    .keep_in = 0x3f,
    .keep_out = 0x1,
    .grad_count = 6,
    .grad = {OPAQUE_GRAD(0), OPAQUE_GRAD(1), OPAQUE_GRAD(2), OPAQUE_GRAD(3), OPAQUE_GRAD(4), OPAQUE_GRAD(5)},
};

const op_row op_row_OPAQUE_BWD = {
    .name = "opaque_bwd",
    .traits = {COST_COPY, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 3,
    .max_in = 8,
    .min_out = 1,
    .max_out = 1,
    .flops = op_no_flops,
    .in_place = -1,
};
