// SPDX-License-Identifier: Apache-2.0
// Batch normalisation over N, H and W, one mean and variance per channel.
#include "ops/rows.h"

static hr_status batch_norm_check(const op_operand *in, hr_err *err)
{
    const hr_shape *x = &in[0].shape;
    if (x->rank != 4 && x->rank != 2) {
        return HR_FAIL(err, MODEL, "batch normalisation needs [N,H,W,C] or [N,C], had %u dimensions",
                       x->rank);
    }
    for (int k = 1; k <= 4; k++) {
        if (in[k].shape.rank != 1 || in[k].shape.dim[0] != x->dim[x->rank - 1]) {
            return HR_FAIL(err, MODEL,
                           "batch normalisation over %lld channels needs as many statistics, had %lld",
                           (long long)x->dim[x->rank - 1], (long long)in[k].shape.dim[0]);
        }
    }
    return HR_OK;
}

static hr_status batch_norm_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                                  size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count;
    HR_TRY(batch_norm_check(in, err));
    out[0] = in[0];
    out[1] = out[2] = in[3];
    return HR_OK;
}

static hr_status batch_norm_statistics_shape(const op_attr *a, const op_operand *in, size_t in_count,
                                             op_operand *out, size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count;
    const op_operand all[] = {in[0], in[1], in[2], in[1], in[2]};
    HR_TRY(batch_norm_check(all, err));
    out[0] = out[1] = in[1];
    return HR_OK;
}

static hr_status batch_norm_eval_shape(const op_attr *a, const op_operand *in, size_t in_count,
                                       op_operand *out, size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count;
    HR_TRY(batch_norm_check(in, err));
    out[0] = in[0];
    return HR_OK;
}

// Two sums, then scale and shift: about 8 per element forward, 12 backward.
static uint64_t batch_norm_flops(const op_query *q)
{
    return 8 * op_out_elements(q, 0);
}

static uint64_t batch_norm_statistics_flops(const op_query *q)
{
    return 6 * op_in_elements(q, 0);
}

static uint64_t batch_norm_eval_flops(const op_query *q)
{
    return 2 * op_out_elements(q, 0);
}

static uint64_t batch_norm_bwd_flops(const op_query *q)
{
    return 12 * op_out_elements(q, 0);
}

const op_row op_row_BATCH_NORM = {
    .name = "batch_norm",
    .traits = {COST_NORM, OP_CHEAP, OP_ACTS, OP_WHOLE},
    .min_in = 5,
    .max_in = 10,
    .min_out = 3,
    .max_out = 3,
    .shape = batch_norm_shape,
    .flops = batch_norm_flops,
    .in_place = -1,
    .keep_in = 0x3,
    .keep_out = 0x6,
    .wide_in = 0x3de,
    .wide_out = 0x6,
    .state_out = 0x6,
    .moves_state = true,
    .grad_count = 1,
    .grad = {{.op = HR_OP_BATCH_NORM_BWD,
              .operand_count = 5,
              .operand = {{OP_SRC_IN, 0}, {OP_SRC_GRAD, 0}, {OP_SRC_IN, 1}, {OP_SRC_OUT, 1}, {OP_SRC_OUT, 2}},
              .result_count = 3,
              .result = {0, 1, 2}}},
};

// Where what reads y normalises as it reads.
const op_row op_row_BATCH_NORM_STATISTICS = {
    .name = "batch_norm_statistics",
    .traits = {COST_NORM, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 3,
    .max_in = 3,
    .min_out = 2,
    .max_out = 2,
    .shape = batch_norm_statistics_shape,
    .flops = batch_norm_statistics_flops,
    .in_place = -1,
    .wide_in = 0x6,
    .wide_out = 0x3,
    .state_out = 0x3,
    .moves_state = true,
};

const op_row op_row_BATCH_NORM_EVAL = {
    .name = "batch_norm_eval",
    .traits = {COST_NORM, OP_COSTLY, OP_ACTS, OP_WHOLE},
    .min_in = 5,
    .max_in = 5,
    .min_out = 1,
    .max_out = 1,
    .shape = batch_norm_eval_shape,
    .flops = batch_norm_eval_flops,
    .in_place = 0,
    .wide_in = 0x1e,
};

// What a recomputation runs instead of BATCH_NORM, whose running statistics would move twice.
const op_row op_row_BATCH_NORM_APPLY = {
    .name = "batch_norm_apply",
    .traits = {COST_NORM, OP_COSTLY, OP_ACTS, OP_WHOLE},
    .min_in = 5,
    .max_in = 10,
    .min_out = 1,
    .max_out = 1,
    .shape = batch_norm_eval_shape,
    .flops = batch_norm_eval_flops,
    .in_place = 0,
    .wide_in = 0x3de,
};

// dx may take dy's storage: each element of dy is read before its dx is written, after both sums are known.
const op_row op_row_BATCH_NORM_BWD = {
    .name = "batch_norm_bwd",
    .traits = {COST_NORM, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 5,
    .max_in = 7,
    .min_out = 3,
    .max_out = 4,
    .flops = batch_norm_bwd_flops,
    .in_place = 1,
};
