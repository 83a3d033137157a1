// SPDX-License-Identifier: Apache-2.0
// Losses and what is measured beside them.
#include "ops/rows.h"

static hr_status check_logits(const op_operand *in, hr_err *err)
{
    const hr_shape *logits = &in[0].shape;
    const hr_shape *labels = &in[1].shape;
    if (logits->rank != 2) {
        return HR_FAIL(err, MODEL, "the loss needs logits [N,classes], had %u dimensions", logits->rank);
    }
    if (labels->rank != 1 || labels->dim[0] != logits->dim[0]) {
        return HR_FAIL(err, MODEL, "the loss over %lld samples needs as many labels, had %lld",
                       (long long)logits->dim[0], (long long)labels->dim[0]);
    }
    return HR_OK;
}

static hr_status softmax_xent_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                                    size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count;
    HR_TRY(check_logits(in, err));
    out[0] = in[0];
    out[1] = in[0];
    out[1].shape = shape_of(1, (const int64_t[]){1});
    return HR_OK;
}

static hr_status accuracy_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                                size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count;
    HR_TRY(check_logits(in, err));
    out[0] = in[1];
    out[0].shape = shape_of(1, (const int64_t[]){1});
    return HR_OK;
}

// Maximum, subtraction, exponential, sum, division: five per logit.
static uint64_t softmax_xent_flops(const op_query *q)
{
    return 5 * op_in_elements(q, 0);
}

static uint64_t per_logit_flops(const op_query *q)
{
    return op_in_elements(q, 0);
}

const op_row op_row_SOFTMAX_XENT = {
    .name = "softmax_cross_entropy",
    .min_in = 2,
    .max_in = 2,
    .min_out = 2,
    .max_out = 2,
    .shape = softmax_xent_shape,
    .flops = softmax_xent_flops,
    .in_place = -1,
    .keep_in = 0x1,
    .keep_out = 0x1,
    .grad_count = 1,
    .grad = {{.op = HR_OP_SOFTMAX_XENT_BWD,
              .operand_count = 2,
              .operand = {{OP_SRC_OUT, 0}, {OP_SRC_IN, 1}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_SOFTMAX_XENT_BWD = {
    .name = "softmax_cross_entropy_bwd", .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1, .in_place = 0};

const op_row op_row_ACCURACY = {
    .name = "accuracy",
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .shape = accuracy_shape,
    .flops = per_logit_flops,
    .in_place = -1,
};
