// SPDX-License-Identifier: Apache-2.0
// Operations over sequences: normalisation of the last dimension and table lookups. A row is what the last
// dimension holds; there are as many as the leading dimensions have elements.
#include "ops/rows.h"

// ---- normalisation --------------------------------------------------------------------------------------------

static hr_status norm_check(const char *what, const op_operand *in, size_t in_count, hr_err *err)
{
    const hr_shape *x = &in[0].shape;
    if (x->rank < 2 || x->rank > 4) {
        return HR_FAIL(err, MODEL, "%s needs [N,C], [N,T,C] or [N,H,W,C], had %u dimensions", what, x->rank);
    }
    for (size_t k = 1; k < in_count; k++) {
        if (in[k].shape.rank != 1 || in[k].shape.dim[0] != x->dim[x->rank - 1]) {
            return HR_FAIL(err, MODEL, "%s over %lld features needs as many scales, had %lld", what,
                           (long long)x->dim[x->rank - 1], (long long)in[k].shape.dim[0]);
        }
    }
    return HR_OK;
}

// One number per row, in the shape of the leading dimensions; never narrower than float32.
static op_operand statistic_of(const op_operand *x)
{
    const hr_dtype dtype = x->dtype == HR_F64 ? HR_F64 : HR_F32;
    return (op_operand){
        .shape = shape_of(x->shape.rank - 1, x->shape.dim), .dtype = dtype, .layout = HR_LAYOUT_PLAIN};
}

static hr_status layer_norm_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                                  size_t out_count, hr_err *err)
{
    (void)a, (void)out_count;
    HR_TRY(norm_check("layer normalisation", in, in_count, err));
    out[0] = in[0];
    out[1] = out[2] = statistic_of(&in[0]);
    return HR_OK;
}

static hr_status rms_norm_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                                size_t out_count, hr_err *err)
{
    (void)a, (void)out_count;
    HR_TRY(norm_check("root mean square normalisation", in, in_count, err));
    out[0] = in[0];
    out[1] = statistic_of(&in[0]);
    return HR_OK;
}

// Two sums, then scale and shift, as for batch normalisation; without the mean three less.
static uint64_t layer_norm_flops(const op_query *q)
{
    return 8 * op_out_elements(q, 0);
}

static uint64_t layer_norm_bwd_flops(const op_query *q)
{
    return 12 * op_out_elements(q, 0);
}

static uint64_t rms_norm_flops(const op_query *q)
{
    return 4 * op_out_elements(q, 0);
}

static uint64_t rms_norm_bwd_flops(const op_query *q)
{
    return 9 * op_out_elements(q, 0);
}

const op_row op_row_LAYER_NORM = {
    .name = "layer_norm",
    .traits = {COST_NORM, OP_CHEAP, OP_NO_ACT, OP_BY_ROW, .whole = 0x6},
    .min_in = 3,
    .max_in = 3,
    .min_out = 3,
    .max_out = 3,
    .shape = layer_norm_shape,
    .flops = layer_norm_flops,
    .in_place = -1,
    .wide_in = 0x6,
    .wide_out = 0x6,
    .keep_in = 0x3,
    .keep_out = 0x6,
    .state_out = 0x6,
    .grad_count = 1,
    .grad = {{.op = HR_OP_LAYER_NORM_BWD,
              .operand_count = 5,
              .operand = {{OP_SRC_IN, 0}, {OP_SRC_GRAD, 0}, {OP_SRC_IN, 1}, {OP_SRC_OUT, 1}, {OP_SRC_OUT, 2}},
              .result_count = 3,
              .result = {0, 1, 2}}},
};

// dx may take dy's storage: both sums of a row are known before its first dx is written.
const op_row op_row_LAYER_NORM_BWD = {
    .name = "layer_norm_bwd",
    .traits = {COST_NORM, OP_COSTLY, OP_NO_ACT, OP_BY_ROW, .whole = 0x4, .sum = 0x6},
    .min_in = 5,
    .max_in = 6,
    .min_out = 3,
    .max_out = 3,
    .flops = layer_norm_bwd_flops,
    .in_place = 1,
};

const op_row op_row_RMS_NORM = {
    .name = "rms_norm",
    .traits = {COST_NORM, OP_CHEAP, OP_NO_ACT, OP_BY_ROW, .whole = 0x2},
    .min_in = 2,
    .max_in = 2,
    .min_out = 2,
    .max_out = 2,
    .shape = rms_norm_shape,
    .flops = rms_norm_flops,
    .in_place = -1,
    .wide_in = 0x2,
    .wide_out = 0x2,
    .keep_in = 0x3,
    .keep_out = 0x2,
    .state_out = 0x2,
    .grad_count = 1,
    .grad = {{.op = HR_OP_RMS_NORM_BWD,
              .operand_count = 4,
              .operand = {{OP_SRC_IN, 0}, {OP_SRC_GRAD, 0}, {OP_SRC_IN, 1}, {OP_SRC_OUT, 1}},
              .result_count = 2,
              .result = {0, 1}}},
};

const op_row op_row_RMS_NORM_BWD = {
    .name = "rms_norm_bwd",
    .traits = {COST_NORM, OP_COSTLY, OP_NO_ACT, OP_BY_ROW, .whole = 0x4, .sum = 0x2},
    .min_in = 4,
    .max_in = 5,
    .min_out = 2,
    .max_out = 2,
    .flops = rms_norm_bwd_flops,
    .in_place = 1,
};

// ---- embedding ------------------------------------------------------------------------------------------------

static hr_status embedding_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                                 size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count;
    const hr_shape *ids = &in[0].shape;
    const hr_shape *table = &in[1].shape;
    if (in[0].dtype != HR_I32 || ids->rank < 1 || ids->rank > 3) {
        return HR_FAIL(err, MODEL,
                       "an embedding needs int32 numbers of one to three dimensions, had %s of %u",
                       dtype_name((hr_dtype)in[0].dtype), ids->rank);
    }
    if (table->rank != 2) {
        return HR_FAIL(err, MODEL, "an embedding needs a table [entries, features], had %u dimensions",
                       table->rank);
    }
    out[0] = in[1];
    out[0].shape = *ids;
    out[0].shape.dim[out[0].shape.rank++] = table->dim[1];
    return HR_OK;
}

static uint64_t no_flops(const op_query *q)
{
    (void)q;
    return 0;
}

static uint64_t embedding_bwd_flops(const op_query *q)
{
    return op_in_elements(q, 1);
}

// Of the table only the rows that are looked up are read.
static uint64_t embedding_bytes(const op_query *q)
{
    uint64_t ids = 0, rows = 0, padding = 0;
    (void)operand_bytes(&q->in[0], &ids, &padding);
    (void)operand_bytes(&q->out[0], &rows, &padding);
    return ids + 2 * rows;
}

// A number outside the table reads as zeros and has no gradient.
const op_row op_row_EMBEDDING = {
    .name = "embedding",
    .traits = {COST_EMBEDDING, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .shape = embedding_shape,
    .flops = no_flops,
    .bytes = embedding_bytes,
    .in_place = -1,
    .keep_in = 0x1,
    .grad_count = 1,
    .grad = {{.op = HR_OP_EMBEDDING_BWD,
              .operand_count = 2,
              .operand = {{OP_SRC_IN, 0}, {OP_SRC_GRAD, 0}},
              .result_count = 1,
              .result = {1}}},
};

const op_row op_row_EMBEDDING_BWD = {
    .name = "embedding_bwd",
    .traits = {COST_EMBEDDING, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .flops = embedding_bwd_flops,
    .in_place = -1,
};
