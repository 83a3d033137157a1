// SPDX-License-Identifier: Apache-2.0
// Group normalisation (Wu, He 2018): one mean and variance per sample and group of neighbouring channels; with as many
// groups as channels it is instance normalisation.
#include "ops/rows.h"

static hr_status group_norm_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                                  size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count;
    const hr_shape *x = &in[0].shape;
    if (x->rank < 3) {
        return HR_FAIL(err, MODEL, "group normalisation needs [N,...,C], had %u dimensions", x->rank);
    }
    const int64_t channels = x->dim[x->rank - 1];
    if (a->groups < 1 || channels % a->groups != 0) {
        return HR_FAIL(err, MODEL,
                       "group normalisation over %lld channels needs groups that divide them, had %d",
                       (long long)channels, a->groups);
    }
    for (int k = 1; k <= 2; k++) {
        if (in[k].shape.rank != 1 || in[k].shape.dim[0] != channels) {
            return HR_FAIL(err, MODEL,
                           "group normalisation over %lld channels needs as many scales, had %lld",
                           (long long)channels, (long long)in[k].shape.dim[0]);
        }
    }
    out[0] = in[0];
    out[1] = out[2] = (op_operand){.shape = shape_of(2, (const int64_t[]){x->dim[0], a->groups}),
                                   .dtype = in[0].dtype == HR_F64 ? HR_F64 : HR_F32,
                                   .layout = HR_LAYOUT_PLAIN};
    return HR_OK;
}

// As layer normalisation's.
static uint64_t group_norm_flops(const op_query *q)
{
    return 8 * op_out_elements(q, 0);
}

static uint64_t group_norm_bwd_flops(const op_query *q)
{
    return 12 * op_out_elements(q, 0);
}

const op_row op_row_GROUP_NORM = {
    .name = "group_norm",
    .traits = {COST_NORM, OP_CHEAP, OP_NO_ACT, OP_WHOLE},
    .min_in = 3,
    .max_in = 3,
    .min_out = 3,
    .max_out = 3,
    .shape = group_norm_shape,
    .flops = group_norm_flops,
    .in_place = -1,
    .wide_in = 0x6,
    .wide_out = 0x6,
    .keep_in = 0x3,
    .keep_out = 0x6,
    .state_out = 0x6,
    .grad_count = 1,
    .grad = {{.op = HR_OP_GROUP_NORM_BWD,
              .operand_count = 5,
              .operand = {{OP_SRC_IN, 0}, {OP_SRC_GRAD, 0}, {OP_SRC_IN, 1}, {OP_SRC_OUT, 1}, {OP_SRC_OUT, 2}},
              .result_count = 3,
              .result = {0, 1, 2}}},
};

// dx may take dy's storage: the sums of a group are known before its first dx is written.
const op_row op_row_GROUP_NORM_BWD = {
    .name = "group_norm_bwd",
    .traits = {COST_NORM, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 5,
    .max_in = 5,
    .min_out = 3,
    .max_out = 3,
    .flops = group_norm_bwd_flops,
    .in_place = 1,
};
