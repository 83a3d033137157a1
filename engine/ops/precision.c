// SPDX-License-Identifier: Apache-2.0
// Casts between real types, the bytes of images as numbers, and what keeps float16 gradients in range: finite check, unscaling, loss scale.
#include "ops/rows.h"

static hr_status cast_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                            size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count, (void)err;
    const uint32_t to = out[0].dtype; // the one thing that does not follow from the input
    out[0] = in[0];
    out[0].dtype = to;
    return HR_OK;
}

static hr_status normalise_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                                 size_t out_count, hr_err *err)
{
    if (in[0].dtype != HR_U8) {
        return HR_FAIL(err, MODEL, "normalise needs bytes, had %s", dtype_name((hr_dtype)in[0].dtype));
    }
    return cast_shape(a, in, in_count, out, out_count, err);
}

static uint64_t finite_flops(const op_query *q)
{
    return 2 * op_in_elements(q, 0);
}

static uint64_t unscale_flops(const op_query *q)
{
    return op_in_elements(q, 0);
}

const op_row op_row_CAST = {
    .name = "cast",
    .traits = {COST_COPY, OP_CHEAP, OP_NO_ACT, OP_WHOLE},
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .shape = cast_shape,
    .in_place = -1,
    .keep_in = 0x1,
    .grad_count = 1,
    .grad = {{.op = HR_OP_CAST,
              .operand_count = 1,
              .operand = {{OP_SRC_GRAD, 0}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_NORMALISE = {.name = "normalise",
                                 .traits = {COST_COPY, OP_CHEAP, OP_NO_ACT, OP_WHOLE},
                                 .min_in = 1,
                                 .max_in = 1,
                                 .min_out = 1,
                                 .max_out = 1,
                                 .shape = normalise_shape,
                                 .in_place = -1};

const op_row op_row_FINITE = {.name = "finite",
                              .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                              .min_in = 1,
                              .max_in = 3,
                              .min_out = 2,
                              .max_out = 2,
                              .flops = finite_flops,
                              .in_place = -1,
                              .updates = 0x6};

const op_row op_row_UNSCALE = {
    .name = "unscale",
    .traits = {COST_ELEMENTWISE, OP_COSTLY, OP_NO_ACT, OP_BY_ELEMENT, .whole = 0x2},
    .min_in = 1,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .flops = unscale_flops,
    .in_place = -1,
    .updates = 0x1};

const op_row op_row_SCALE_UPDATE = {.name = "scale_update",
                                    .traits = {COST_ELEMENTWISE, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                                    .min_in = 3,
                                    .max_in = 3,
                                    .min_out = 2,
                                    .max_out = 2,
                                    .in_place = -1,
                                    .updates = 0x3};
