// SPDX-License-Identifier: Apache-2.0
// Axes in another order, and images turned around their edges: every element of x once, at another place.
#include "ops/permute.h"

#include "ops/rows.h"

enum { AXIS_BITS = 4, AXIS_MASK = 15 };

int32_t permute_rule(const uint32_t *axes, uint32_t rank)
{
    uint32_t rule = 0;
    for (uint32_t k = 0; k < rank; k++) {
        rule |= axes[k] << (AXIS_BITS * k);
    }
    return (int32_t)rule;
}

uint32_t permute_axis(const op_attr *attr, uint32_t k)
{
    return (uint32_t)attr->rule >> (AXIS_BITS * k) & AXIS_MASK;
}

int64_t permute_stride(const op_attr *attr, const hr_shape *x, uint32_t k)
{
    int64_t stride = 1;
    for (uint32_t behind = permute_axis(attr, k) + 1; behind < x->rank; behind++) {
        stride *= x->dim[behind];
    }
    return stride;
}

static hr_status permute_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                               size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count;
    const hr_shape *x = &in[0].shape;
    uint32_t seen = 0;
    out[0] = in[0];
    for (uint32_t k = 0; k < x->rank; k++) {
        const uint32_t axis = permute_axis(a, k);
        seen |= 1u << axis;
        out[0].shape.dim[k] = axis < x->rank ? x->dim[axis] : 0;
    }
    if (seen != (1u << x->rank) - 1 || permute_axis(a, 0) != 0) {
        return HR_FAIL(err, MODEL, "a permutation needs each of the %u axes behind the first once",
                       x->rank == 0 ? 0 : x->rank - 1);
    }
    return HR_OK;
}

static void permute_back(const op_query *forward, op_attr *attr)
{
    uint32_t axes[OP_MAX_RANK] = {0};
    const uint32_t rank = forward->in[0].shape.rank;
    for (uint32_t k = 0; k < rank; k++) {
        axes[permute_axis(&forward->attr, k)] = k;
    }
    attr->rule = permute_rule(axes, rank);
}

const op_row op_row_PERMUTE = {
    .name = "permute",
    .traits = {COST_COPY, OP_CHEAP, OP_NO_ACT, OP_WHOLE},
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .shape = permute_shape,
    .flops = op_no_flops,
    .in_place = -1,
    .grad_count = 1,
    .grad = {{.op = HR_OP_PERMUTE,
              .operand_count = 1,
              .operand = {{OP_SRC_GRAD, 0}},
              .result_count = 1,
              .result = {0},
              .attr = permute_back}},
};

static hr_status roll_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                            size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count;
    const hr_shape *x = &in[0].shape;
    if (x->rank < 3) {
        return HR_FAIL(err, MODEL, "a roll needs [N,H,W,...], had %u dimensions", x->rank);
    }
    if (a->pad_top < 0 || a->pad_top >= x->dim[1] || a->pad_left < 0 || a->pad_left >= x->dim[2]) {
        return HR_FAIL(err, MODEL, "a roll of %lldx%lld places goes less far than its sides, had %d and %d",
                       (long long)x->dim[1], (long long)x->dim[2], a->pad_top, a->pad_left);
    }
    out[0] = in[0];
    return HR_OK;
}

static void roll_back(const op_query *forward, op_attr *attr)
{
    const int64_t *d = forward->in[0].shape.dim;
    attr->pad_top = (int32_t)((d[1] - attr->pad_top) % d[1]);
    attr->pad_left = (int32_t)((d[2] - attr->pad_left) % d[2]);
}

const op_row op_row_ROLL = {
    .name = "roll",
    .traits = {COST_COPY, OP_CHEAP, OP_NO_ACT, OP_WHOLE},
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .shape = roll_shape,
    .flops = op_no_flops,
    .in_place = -1,
    .grad_count = 1,
    .grad = {{.op = HR_OP_ROLL,
              .operand_count = 1,
              .operand = {{OP_SRC_GRAD, 0}},
              .result_count = 1,
              .result = {0},
              .attr = roll_back}},
};
