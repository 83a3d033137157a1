// SPDX-License-Identifier: Apache-2.0
// Products of equally many matrices: y[...,M,N] = scale * a[...,M,K] · b[...,K,N].
#include "ops/rows.h"

static bool is_turned(const op_attr *a)
{
    return (a->flags & OP_FLAG_TRANSPOSE) != 0;
}

static int64_t last(const hr_shape *s, uint32_t from_end)
{
    return s->dim[s->rank - 1 - from_end];
}

static hr_status check_leading(const hr_shape *a, const hr_shape *b, hr_err *err)
{
    if (a->rank < 2 || a->rank > 4 || a->rank != b->rank) {
        return HR_FAIL(err, MODEL, "a matmul needs two inputs of the same 2 to 4 dimensions, had %u and %u",
                       a->rank, b->rank);
    }
    for (uint32_t k = 0; k + 2 < a->rank; k++) {
        if (a->dim[k] != b->dim[k]) {
            return HR_FAIL(err, MODEL,
                           "a matmul needs equally many matrices on both sides, had %lld and %lld",
                           (long long)a->dim[k], (long long)b->dim[k]);
        }
    }
    return HR_OK;
}

static hr_status matmul_shape(const op_attr *attr, const op_operand *in, size_t in_count, op_operand *out,
                              size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count;
    const hr_shape *a = &in[0].shape, *b = &in[1].shape;
    HR_TRY(check_leading(a, b, err));
    const int64_t depth = is_turned(attr) ? last(b, 0) : last(b, 1);
    if (last(a, 0) != depth) {
        return HR_FAIL(err, MODEL, "a matmul over rows of %lld elements needs columns of as many, had %lld",
                       (long long)last(a, 0), (long long)depth);
    }
    out[0] = in[0];
    out[0].shape.dim[a->rank - 1] = is_turned(attr) ? last(b, 1) : last(b, 0);
    return HR_OK;
}

static uint64_t matmul_flops(const op_query *q)
{
    return 2 * op_out_elements(q, 0) * (uint64_t)last(&q->in[0].shape, 0);
}

static uint64_t matmul_bwd_b_flops(const op_query *q)
{
    return 2 * op_in_elements(q, 0) * (uint64_t)last(&q->in[1].shape, 0);
}

const op_row op_row_MATMUL = {
    .name = "matmul",
    .traits = {COST_PRODUCT, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .shape = matmul_shape,
    .flops = matmul_flops,
    .in_place = -1,
    .keep_in = 0x3,
    .grad_count = 2,
    .grad =
        {
            {.op = HR_OP_MATMUL_BWD_A,
             .operand_count = 2,
             .operand = {{OP_SRC_GRAD, 0}, {OP_SRC_IN, 1}},
             .result_count = 1,
             .result = {0}},
            {.op = HR_OP_MATMUL_BWD_B,
             .operand_count = 2,
             .operand = {{OP_SRC_IN, 0}, {OP_SRC_GRAD, 0}},
             .result_count = 1,
             .result = {1}},
        },
};

const op_row op_row_MATMUL_BWD_A = {
    .name = "matmul_bwd_a",
    .traits = {COST_PRODUCT, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .flops = matmul_flops,
    .in_place = -1,
};

const op_row op_row_MATMUL_BWD_B = {
    .name = "matmul_bwd_b",
    .traits = {COST_PRODUCT, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .flops = matmul_bwd_b_flops,
    .in_place = -1,
};
