// SPDX-License-Identifier: Apache-2.0
// Dense layers whose weights are whole numbers, for evaluation alone, and what makes the numbers (base/quantize.h).
#include "base/quantize.h"
#include "ops/rows.h"

static hr_status check_matrix(const op_operand *w, hr_err *err)
{
    return w->shape.rank == 2
               ? HR_OK
               : HR_FAIL(err, MODEL, "quantising needs a matrix [I,O], had %u dimensions", w->shape.rank);
}

static hr_status int8_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                            size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count;
    HR_TRY(check_matrix(&in[0], err));
    out[0] = (op_operand){.shape = in[0].shape, .dtype = HR_I8};
    out[1] = (op_operand){.shape = shape_of(1, &in[0].shape.dim[1]), .dtype = in[0].dtype};
    return HR_OK;
}

static hr_status int4_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                            size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count;
    HR_TRY(check_matrix(&in[0], err));
    const int64_t columns = in[0].shape.dim[1];
    const int64_t groups = (int64_t)quantize_int4_groups((uint64_t)in[0].shape.dim[0]);
    out[0] = (op_operand){.shape = in[0].shape, .dtype = HR_U8};
    out[0].shape.dim[1] = (int64_t)quantize_int4_pitch((uint64_t)columns);
    out[1] = (op_operand){.shape = shape_of(2, (const int64_t[]){groups, columns}), .dtype = in[0].dtype};
    out[2] = (op_operand){.shape = out[1].shape, .dtype = HR_I8};
    return HR_OK;
}

// x[...,I] and whole numbers of I rows; `units` columns.
static hr_status product_shape(const op_operand *in, int64_t units, op_operand *out, hr_err *err)
{
    const hr_shape *x = &in[0].shape;
    if (x->rank < 2 || x->rank > 4 || in[1].shape.rank != 2 || in[1].shape.dim[0] != x->dim[x->rank - 1]) {
        return HR_FAIL(err, MODEL, "a product with whole numbers needs x[...,I] and I rows of them");
    }
    out[0] = in[0];
    out[0].shape.dim[x->rank - 1] = units;
    return HR_OK;
}

static hr_status dense_int8_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                                  size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count;
    return product_shape(in, in[1].shape.dim[1], out, err);
}

static hr_status dense_int4_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                                  size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count;
    return product_shape(in, in[2].shape.dim[1], out, err);
}

static uint64_t product_flops(const op_query *q)
{
    const hr_shape *x = &q->in[0].shape;
    return 2 * op_out_elements(q, 0) * (uint64_t)x->dim[x->rank - 1];
}

// Two passes over the weights.
static uint64_t quantize_flops(const op_query *q)
{
    return 4 * op_in_elements(q, 0);
}

const op_row op_row_QUANTIZE_INT8 = {.name = "quantize_int8",
                                     .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                                     .min_in = 1,
                                     .max_in = 1,
                                     .min_out = 2,
                                     .max_out = 2,
                                     .shape = int8_shape,
                                     .flops = quantize_flops,
                                     .in_place = -1,
                                     .wide_in = 0x1,
                                     .wide_out = 0x2};

const op_row op_row_QUANTIZE_INT4 = {.name = "quantize_int4",
                                     .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                                     .min_in = 1,
                                     .max_in = 1,
                                     .min_out = 3,
                                     .max_out = 3,
                                     .shape = int4_shape,
                                     .flops = quantize_flops,
                                     .in_place = -1,
                                     .wide_in = 0x1,
                                     .wide_out = 0x2};

const op_row op_row_DENSE_INT8 = {.name = "dense_int8",
                                  .traits = {COST_PRODUCT, OP_COSTLY, OP_ACTS, OP_WHOLE},
                                  .min_in = 3,
                                  .max_in = 4,
                                  .min_out = 1,
                                  .max_out = 1,
                                  .shape = dense_int8_shape,
                                  .flops = product_flops,
                                  .in_place = -1,
                                  .wide_in = 0xd,
                                  .wide_out = 0x1};

const op_row op_row_DENSE_INT8_WEIGHTS = {.name = "dense_int8_weights",
                                          .traits = {COST_PRODUCT, OP_COSTLY, OP_ACTS, OP_WHOLE},
                                          .min_in = 3,
                                          .max_in = 4,
                                          .min_out = 1,
                                          .max_out = 1,
                                          .shape = dense_int8_shape,
                                          .flops = product_flops,
                                          .in_place = -1,
                                          .wide_in = 0xd,
                                          .wide_out = 0x1};

const op_row op_row_DENSE_INT4_WEIGHTS = {.name = "dense_int4_weights",
                                          .traits = {COST_PRODUCT, OP_COSTLY, OP_ACTS, OP_WHOLE},
                                          .min_in = 4,
                                          .max_in = 5,
                                          .min_out = 1,
                                          .max_out = 1,
                                          .shape = dense_int4_shape,
                                          .flops = product_flops,
                                          .in_place = -1,
                                          .wide_in = 0x15,
                                          .wide_out = 0x1};
