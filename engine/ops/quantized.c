// SPDX-License-Identifier: Apache-2.0
// Dense layers and lookups whose weights are whole numbers, for evaluation alone, and what makes the numbers (base/quantize.h).
#include "base/quantize.h"
#include "ops/rows.h"

static hr_status check_matrix(const op_operand *w, hr_err *err)
{
    return w->shape.rank == 2
               ? HR_OK
               : HR_FAIL(err, MODEL, "quantising needs a matrix [I,O], had %u dimensions", w->shape.rank);
}

static bool is_turned(const op_attr *a)
{
    return (a->flags & OP_FLAG_TRANSPOSE) != 0;
}

static hr_status int8_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                            size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count;
    HR_TRY(check_matrix(&in[0], err));
    out[0] = (op_operand){.shape = in[0].shape, .dtype = HR_I8};
    out[1] = (op_operand){.shape = shape_of(1, &in[0].shape.dim[is_turned(a) ? 0 : 1]), .dtype = in[0].dtype};
    return HR_OK;
}

static int64_t groups_of(int64_t count)
{
    return (int64_t)quantize_int4_groups((uint64_t)count);
}

static hr_status int4_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                            size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count;
    HR_TRY(check_matrix(&in[0], err));
    const int64_t rows = in[0].shape.dim[0], columns = in[0].shape.dim[1];
    const hr_shape scales = is_turned(a) ? shape_of(2, (const int64_t[]){rows, groups_of(columns)})
                                         : shape_of(2, (const int64_t[]){groups_of(rows), columns});
    out[0] = (op_operand){.shape = in[0].shape, .dtype = HR_U8};
    out[0].shape.dim[1] = (int64_t)quantize_int4_pitch((uint64_t)columns);
    out[1] = (op_operand){.shape = scales, .dtype = in[0].dtype};
    out[2] = (op_operand){.shape = scales, .dtype = HR_I8};
    return HR_OK;
}

// Of a product x[...,I] with whole numbers: `has` is how many of I they are for.
static hr_status product_shape(const op_operand *in, int64_t has, int64_t units, op_operand *out, hr_err *err)
{
    const hr_shape *x = &in[0].shape;
    if (x->rank < 2 || x->rank > 4 || in[1].shape.rank != 2 || has != x->dim[x->rank - 1]) {
        return HR_FAIL(err, MODEL, "a product with whole numbers needs x[...,I] and I rows of them");
    }
    out[0] = in[0];
    out[0].shape.dim[x->rank - 1] = units;
    return HR_OK;
}

static hr_status dense_int8_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                                  size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count;
    const int turned = is_turned(a) ? 1 : 0;
    return product_shape(in, in[1].shape.dim[turned], in[1].shape.dim[1 - turned], out, err);
}

// A row of a table is I places in bytes of two: of an odd I the bytes are one more.
static hr_status dense_int4_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                                  size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count;
    const hr_shape *x = &in[0].shape, *q = &in[1].shape;
    if (!is_turned(a)) {
        return product_shape(in, q->dim[0], in[2].shape.dim[1], out, err);
    }
    const int64_t depth = x->dim[x->rank - 1];
    const bool fits = q->dim[1] == (int64_t)quantize_int4_pitch((uint64_t)depth);
    return product_shape(in, fits ? depth : -1, q->dim[0], out, err);
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

// ---- lookups --------------------------------------------------------------------------------------------------

static hr_status lookup_shape(const op_operand *in, int64_t features, op_operand *out, hr_err *err)
{
    const hr_shape *ids = &in[0].shape;
    if (in[0].dtype != HR_I32 || ids->rank < 1 || ids->rank > 3 || in[1].shape.rank != 2) {
        return HR_FAIL(
            err, MODEL,
            "a lookup of whole numbers needs int32 numbers of one to three dimensions, and a table");
    }
    out[0] = (op_operand){.shape = *ids, .dtype = in[2].dtype};
    out[0].shape.dim[out[0].shape.rank++] = features;
    return HR_OK;
}

static hr_status embedding_int8_shape(const op_attr *a, const op_operand *in, size_t in_count,
                                      op_operand *out, size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count;
    return lookup_shape(in, in[1].shape.dim[1], out, err);
}

// attr.count: the places of a row, which its bytes of two do not say of an odd number.
static hr_status embedding_int4_shape(const op_attr *a, const op_operand *in, size_t in_count,
                                      op_operand *out, size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count;
    if (in[1].shape.dim[1] != (int64_t)quantize_int4_pitch((uint64_t)a->count)) {
        return HR_FAIL(err, MODEL, "rows of %d places as int4 need %lld bytes each, had %lld", a->count,
                       (long long)quantize_int4_pitch((uint64_t)a->count), (long long)in[1].shape.dim[1]);
    }
    return lookup_shape(in, a->count, out, err);
}

// One division or product for each number.
static uint64_t lookup_flops(const op_query *q)
{
    return op_out_elements(q, 0);
}

// Of the table only the rows that are looked up are read, with the scales of each.
static uint64_t lookup_bytes(const op_query *q)
{
    uint64_t ids = 0, rows = 0, part = 0, padding = 0;
    (void)operand_bytes(&q->in[0], &ids, &padding);
    (void)operand_bytes(&q->out[0], &rows, &padding);
    uint64_t sum = ids + rows;
    for (uint32_t k = 1; k < q->in_count; k++) {
        (void)operand_bytes(&q->in[k], &part, &padding);
        sum += part / (uint64_t)q->in[1].shape.dim[0] * op_in_elements(q, 0);
    }
    return sum;
}

// A number outside the table reads as zeros, as of EMBEDDING.
const op_row op_row_EMBEDDING_INT8 = {.name = "embedding_int8",
                                      .traits = {COST_EMBEDDING, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                                      .min_in = 3,
                                      .max_in = 3,
                                      .min_out = 1,
                                      .max_out = 1,
                                      .shape = embedding_int8_shape,
                                      .flops = lookup_flops,
                                      .bytes = lookup_bytes,
                                      .in_place = -1,
                                      .wide_in = 0x4,
                                      .wide_out = 0x1};

const op_row op_row_EMBEDDING_INT4 = {.name = "embedding_int4",
                                      .traits = {COST_EMBEDDING, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                                      .min_in = 4,
                                      .max_in = 4,
                                      .min_out = 1,
                                      .max_out = 1,
                                      .shape = embedding_int4_shape,
                                      .flops = lookup_flops,
                                      .bytes = lookup_bytes,
                                      .in_place = -1,
                                      .wide_in = 0x4,
                                      .wide_out = 0x1};
