// SPDX-License-Identifier: Apache-2.0
// Operations that put tensors together, cut them, repeat or pad them. None computes anything.
#include "headroom/units.h"

#include "ops/rows.h"

static hr_status check_axis(const char *what, int32_t axis, uint32_t rank, hr_err *err)
{
    if (axis < 0 || (uint32_t)axis >= rank) {
        return HR_FAIL(err, MODEL, "%s along axis %d needs that axis, had %u dimensions", what, axis, rank);
    }
    return HR_OK;
}

// ---- concat -----------------------------------------------------------------------------------------------

// Do all axes but `axis` agree?
static bool fits_beside(const hr_shape *a, const hr_shape *b, int32_t axis)
{
    hr_shape other = *b;
    if (a->rank == b->rank) {
        other.dim[axis] = a->dim[axis];
    }
    return shape_equal(a, &other);
}

static hr_status concat_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                              size_t out_count, hr_err *err)
{
    (void)out_count;
    HR_TRY(check_axis("a concatenation", a->axis, in[0].shape.rank, err));
    uint64_t extent = 0;
    for (size_t k = 0; k < in_count; k++) {
        if (!fits_beside(&in[0].shape, &in[k].shape, a->axis)) {
            char first[64];
            char other[64];
            return HR_FAIL(err, MODEL,
                           "a concatenation along axis %d needs its other axes equal, had %s and %s", a->axis,
                           shape_text(&in[0].shape, first, sizeof first),
                           shape_text(&in[k].shape, other, sizeof other));
        }
        if (!hr_add_bytes(extent, (uint64_t)in[k].shape.dim[a->axis], &extent) || extent > INT32_MAX) {
            return HR_FAIL(err, MODEL, "a concatenation of %zu inputs is too long", in_count);
        }
    }
    out[0] = in[0];
    out[0].shape.dim[a->axis] = (int64_t)extent;
    return HR_OK;
}

// The gradient of input k is a slice of dy behind those of the inputs before it.
static void slice_for(const op_query *forward, op_attr *attr, int32_t k)
{
    attr->offset = 0;
    for (int32_t before = 0; before < k; before++) {
        attr->offset += (int32_t)forward->in[before].shape.dim[attr->axis];
    }
    attr->count = (int32_t)forward->in[k].shape.dim[attr->axis];
}

#define SLICE_OF(k)                                                                                          \
    static void slice_##k(const op_query *forward, op_attr *attr)                                            \
    {                                                                                                        \
        slice_for(forward, attr, k);                                                                         \
    }
SLICE_OF(0)
SLICE_OF(1)
SLICE_OF(2)
SLICE_OF(3)
SLICE_OF(4)
SLICE_OF(5)
#undef SLICE_OF

#define CONCAT_GRAD(k)                                                                                       \
    {                                                                                                        \
        .op = HR_OP_SLICE, .operand_count = 1, .operand = {{OP_SRC_GRAD, 0}}, .result_count = 1,             \
        .result = {k}, .attr = slice_##k                                                                     \
    }

// Backward needs the extents alone; the tape keeps the inputs.
const op_row op_row_CONCAT = {
    .name = "concat",
    .traits = {COST_COPY, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 6,
    .min_out = 1,
    .max_out = 1,
    .shape = concat_shape,
    .flops = op_no_flops,
    .in_place = -1,
    .keep_in = 0x3f,
    .grad_count = 6,
    .grad = {CONCAT_GRAD(0), CONCAT_GRAD(1), CONCAT_GRAD(2), CONCAT_GRAD(3), CONCAT_GRAD(4), CONCAT_GRAD(5)},
};

// ---- slice ------------------------------------------------------------------------------------------------

static hr_status slice_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                             size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count;
    const hr_shape *x = &in[0].shape;
    HR_TRY(check_axis("a slice", a->axis, x->rank, err));
    const int64_t extent = a->count == 0 ? x->dim[a->axis] - a->offset : a->count;
    if (a->offset < 0 || extent < 1 || a->offset > x->dim[a->axis] - extent) {
        return HR_FAIL(err, MODEL, "a slice of %lld places from %d on does not fit into axis %d of %lld",
                       (long long)extent, a->offset, a->axis, (long long)x->dim[a->axis]);
    }
    out[0] = in[0];
    out[0].shape.dim[a->axis] = extent;
    return HR_OK;
}

const op_row op_row_SLICE = {
    .name = "slice",
    .traits = {COST_COPY, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .shape = slice_shape,
    .flops = op_no_flops,
    .in_place = -1,
    .keep_in = 0x1,
    .grad_count = 1,
    .grad = {{.op = HR_OP_SLICE_BWD,
              .operand_count = 1,
              .operand = {{OP_SRC_GRAD, 0}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_SLICE_BWD = {.name = "slice_bwd",
                                 .traits = {COST_COPY, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                                 .min_in = 1,
                                 .max_in = 1,
                                 .min_out = 1,
                                 .max_out = 1,
                                 .flops = op_no_flops,
                                 .in_place = -1};

// ---- stack ------------------------------------------------------------------------------------------------

static hr_status stack_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                             size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count;
    const hr_shape *x = &in[0].shape;
    if (a->count < 1 || x->rank == OP_MAX_RANK) {
        return HR_FAIL(err, MODEL, "a stack of %d copies of %u dimensions needs 1 copy or more of at most %d",
                       a->count, x->rank, OP_MAX_RANK - 1);
    }
    HR_TRY(check_axis("a stack", a->axis, x->rank + 1, err));
    out[0] = in[0];
    out[0].layout = HR_LAYOUT_PLAIN;
    out[0].shape = shape_of((uint32_t)a->axis, x->dim);
    out[0].shape.dim[out[0].shape.rank++] = a->count;
    for (uint32_t k = (uint32_t)a->axis; k < x->rank; k++) {
        out[0].shape.dim[out[0].shape.rank++] = x->dim[k];
    }
    return HR_OK;
}

static void sum_of_copies(const op_query *forward, op_attr *attr)
{
    (void)forward;
    attr->count = 1;
    attr->flags &= ~OP_FLAG_MEAN;
}

const op_row op_row_STACK = {
    .name = "stack",
    .traits = {COST_COPY, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .shape = stack_shape,
    .flops = op_no_flops,
    .in_place = -1,
    .grad_count = 1,
    .grad = {{.op = HR_OP_REDUCE,
              .operand_count = 1,
              .operand = {{OP_SRC_GRAD, 0}},
              .result_count = 1,
              .result = {0},
              .attr = sum_of_copies}},
};

// ---- zeros ------------------------------------------------------------------------------------------------

// The caller of zeros knows their shape.
const op_row op_row_ZEROS = {.name = "zeros",
                             .traits = {COST_COPY, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                             .min_out = 1,
                             .max_out = 1,
                             .flops = op_no_flops,
                             .in_place = -1};

static hr_status zero_pad_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                                size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count;
    if (in[0].shape.rank != 4) {
        return HR_FAIL(err, MODEL, "padding needs an image [N,H,W,C], had %u dimensions", in[0].shape.rank);
    }
    if (a->pad_top < 0 || a->pad_left < 0 || a->pad_bottom < 0 || a->pad_right < 0) {
        return HR_FAIL(err, MODEL, "padding needs 0 or more rows and columns, had %d, %d, %d and %d",
                       a->pad_top, a->pad_left, a->pad_bottom, a->pad_right);
    }
    const int64_t rows = (int64_t)a->pad_top + a->pad_bottom, columns = (int64_t)a->pad_left + a->pad_right;
    if (in[0].shape.dim[1] > INT64_MAX - rows || in[0].shape.dim[2] > INT64_MAX - columns) {
        return HR_FAIL(err, MODEL, "an image of %lldx%lld is too large to be padded",
                       (long long)in[0].shape.dim[1], (long long)in[0].shape.dim[2]);
    }
    out[0] = in[0];
    out[0].shape.dim[1] += rows;
    out[0].shape.dim[2] += columns;
    return HR_OK;
}

const op_row op_row_ZERO_PAD = {
    .name = "zero_pad",
    .keeps_channels = true,
    .traits = {COST_COPY, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .shape = zero_pad_shape,
    .flops = op_no_flops,
    .in_place = -1,
    .keep_in = 0x1,
    .grad_count = 1,
    .grad = {{.op = HR_OP_ZERO_PAD_BWD,
              .operand_count = 1,
              .operand = {{OP_SRC_GRAD, 0}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_ZERO_PAD_BWD = {.name = "zero_pad_bwd",
                                    .traits = {COST_COPY, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                                    .min_in = 1,
                                    .max_in = 1,
                                    .min_out = 1,
                                    .max_out = 1,
                                    .flops = op_no_flops,
                                    .in_place = -1};
