// SPDX-License-Identifier: Apache-2.0
// Losses and what is measured beside them. Rows are all dimensions but the last; a loss is their mean, in float32
// at least, and so are the probabilities that its gradient is made of, where they are held.
#include "ops/rows.h"

static hr_status check_labels(const op_operand *in, hr_err *err)
{
    const hr_shape *logits = &in[0].shape;
    const hr_shape *labels = &in[1].shape;
    hr_shape rows = *logits;
    if (logits->rank < 2) {
        return HR_FAIL(err, MODEL, "the loss needs logits [N,...,classes], had %u dimensions", logits->rank);
    }
    rows.dim[--rows.rank] = 0;
    if (!shape_equal(&rows, labels)) {
        char had[64];
        char needed[64];
        return HR_FAIL(err, MODEL, "the loss over logits of %s rows needs as many labels, had %s",
                       shape_text(&rows, needed, sizeof needed), shape_text(labels, had, sizeof had));
    }
    if (in[1].dtype != HR_I32 && in[1].dtype != HR_U8) {
        return HR_FAIL(err, MODEL, "labels are integers, had %s", dtype_name((hr_dtype)in[1].dtype));
    }
    return HR_OK;
}

static hr_status check_pair(const char *loss, uint32_t least_rank, const op_operand *in, hr_err *err)
{
    char left[64];
    char right[64];
    if (in[0].shape.rank < least_rank || !shape_equal(&in[0].shape, &in[1].shape)) {
        return HR_FAIL(err, MODEL, "%s needs two equal shapes of %u dimensions at least, had %s and %s", loss,
                       least_rank, shape_text(&in[0].shape, left, sizeof left),
                       shape_text(&in[1].shape, right, sizeof right));
    }
    return HR_OK;
}

static op_operand loss_of(const op_operand *values)
{
    op_operand loss = {.dtype = op_wide_dtype(values->dtype), .layout = HR_LAYOUT_PLAIN};
    loss.shape = shape_of(1, (const int64_t[]){1});
    return loss;
}

static op_operand probs_of(const op_operand *logits)
{
    op_operand probs = *logits;
    probs.dtype = op_wide_dtype(logits->dtype);
    return probs;
}

static hr_status softmax_xent_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                                    size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count;
    HR_TRY(check_labels(in, err));
    out[0] = probs_of(&in[0]);
    out[1] = loss_of(&in[0]);
    return HR_OK;
}

static hr_status softmax_xent_stream_shape(const op_attr *a, const op_operand *in, size_t in_count,
                                           op_operand *out, size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count;
    HR_TRY(check_labels(in, err));
    out[0] = out[1] =
        (op_operand){.shape = in[1].shape, .dtype = op_wide_dtype(in[0].dtype), .layout = HR_LAYOUT_PLAIN};
    out[2] = loss_of(&in[0]);
    return HR_OK;
}

static hr_status softmax_xent_gradient_shape(const op_attr *a, const op_operand *in, size_t in_count,
                                             op_operand *out, size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count;
    HR_TRY(check_labels(in, err));
    out[0] = in[0];
    out[1] = loss_of(&in[0]);
    return HR_OK;
}

static hr_status mse_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                           size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count;
    HR_TRY(check_pair("a mean squared error", 1, in, err));
    out[0] = loss_of(&in[0]);
    return HR_OK;
}

static hr_status binary_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                              size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count;
    HR_TRY(check_pair("a binary cross entropy", 1, in, err));
    if (!(a->rate >= 0.0) || !(a->momentum >= 0.0 && a->momentum < 1.0)) {
        return HR_FAIL(err, MODEL,
                       "a focal loss needs gamma from 0 on, and alpha from 0 to below 1, had %g and %g",
                       a->rate, a->momentum);
    }
    out[0] = loss_of(&in[0]);
    return HR_OK;
}

static hr_status kl_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                          size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count;
    HR_TRY(check_pair("a divergence of logits", 2, in, err));
    if (!(a->epsilon > 0.0)) {
        return HR_FAIL(err, MODEL, "the temperature of a divergence is above 0, had %g", a->epsilon);
    }
    out[0] = probs_of(&in[0]);
    out[1] = loss_of(&in[0]);
    return HR_OK;
}

static hr_status accuracy_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                                size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count;
    HR_TRY(check_labels(in, err));
    out[0] = loss_of(&in[0]);
    out[0].dtype = HR_I32;
    return HR_OK;
}

// Maximum, subtraction, exponential, sum, division: five per logit.
static uint64_t softmax_xent_flops(const op_query *q)
{
    return 5 * op_in_elements(q, 0);
}

static uint64_t softmax_xent_gradient_flops(const op_query *q)
{
    return 10 * op_in_elements(q, 0);
}

// Subtraction, exponential, quotient, the label, share.
static uint64_t softmax_xent_stream_bwd_flops(const op_query *q)
{
    return 5 * op_in_elements(q, 0);
}

// Two softmaxes, and a product of logarithms.
static uint64_t kl_flops(const op_query *q)
{
    return 13 * op_in_elements(q, 0);
}

static uint64_t kl_bwd_flops(const op_query *q)
{
    return 7 * op_in_elements(q, 0);
}

static uint64_t mse_flops(const op_query *q)
{
    return 3 * op_in_elements(q, 0);
}

// An exponential, a logarithm, a product and two sums; backward a sigmoid, a difference and a share.
static uint64_t binary_flops(const op_query *q)
{
    return 5 * op_in_elements(q, 0);
}

// The sigmoid, what is amiss of it, its power, and the weights of both, besides.
static uint64_t focal_flops(const op_query *q)
{
    return 15 * op_in_elements(q, 0);
}

static uint64_t per_logit_flops(const op_query *q)
{
    return op_in_elements(q, 0);
}

// Probabilities may take the logits' storage: a row's maximum and its label's logit are read before it is written.
const op_row op_row_SOFTMAX_XENT = {
    .name = "softmax_cross_entropy",
    .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 2,
    .max_out = 2,
    .shape = softmax_xent_shape,
    .flops = softmax_xent_flops,
    .wide_in = 0x1,
    .wide_out = 0x3,
    .in_place = 0,
    .keep_in = 0x1,
    .keep_out = 0x1,
    .grad_count = 1,
    .grad = {{.op = HR_OP_SOFTMAX_XENT_BWD,
              .operand_count = 2,
              .operand = {{OP_SRC_OUT, 0}, {OP_SRC_IN, 1}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_SOFTMAX_XENT_BWD = {.name = "softmax_cross_entropy_bwd",
                                        .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                                        .min_in = 2,
                                        .max_in = 3,
                                        .min_out = 1,
                                        .max_out = 1,
                                        .in_place = 0};

// Logits stay in the type they were made in: a kernel widens what it reads and rounds the gradient once.
const op_row op_row_SOFTMAX_XENT_STREAM = {
    .name = "softmax_cross_entropy_streaming",
    .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 3,
    .max_out = 3,
    .shape = softmax_xent_stream_shape,
    .flops = softmax_xent_flops,
    .wide_out = 0x7,
    .in_place = -1,
    .state_out = 0x3,
    .grad_count = 1,
    .grad = {{.op = HR_OP_SOFTMAX_XENT_STREAM_BWD,
              .operand_count = 4,
              .operand = {{OP_SRC_IN, 0}, {OP_SRC_IN, 1}, {OP_SRC_OUT, 0}, {OP_SRC_OUT, 1}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_SOFTMAX_XENT_STREAM_BWD = {.name = "softmax_cross_entropy_streaming_bwd",
                                               .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                                               .min_in = 4,
                                               .max_in = 5,
                                               .min_out = 1,
                                               .max_out = 1,
                                               .flops = softmax_xent_stream_bwd_flops,
                                               .in_place = 0};

// What a graph runs instead of the two, see passes/fuse_loss.c.
const op_row op_row_SOFTMAX_XENT_GRADIENT = {
    .name = "softmax_cross_entropy_with_gradient",
    .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 3,
    .min_out = 2,
    .max_out = 2,
    .shape = softmax_xent_gradient_shape,
    .flops = softmax_xent_gradient_flops,
    .wide_out = 0x2,
    .in_place = 0,
};

const op_row op_row_MSE = {
    .name = "mse",
    .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .shape = mse_shape,
    .flops = mse_flops,
    .in_place = -1,
    .wide_in = 0x3,
    .wide_out = 0x1,
    .keep_in = 0x3,
    .grad_count = 1,
    .grad = {{.op = HR_OP_MSE_BWD,
              .operand_count = 2,
              .operand = {{OP_SRC_IN, 0}, {OP_SRC_IN, 1}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_MSE_BWD = {.name = "mse_bwd",
                               .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                               .min_in = 2,
                               .max_in = 3,
                               .min_out = 1,
                               .max_out = 1,
                               .flops = mse_flops,
                               .in_place = 0};

// Backward makes the teacher's probabilities once more instead of keeping them. The teacher gets no gradient.
const op_row op_row_KL = {
    .name = "kl_divergence",
    .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 2,
    .max_out = 2,
    .shape = kl_shape,
    .flops = kl_flops,
    .in_place = 0,
    .wide_in = 0x3,
    .wide_out = 0x3,
    .keep_in = 0x2,
    .keep_out = 0x1,
    .grad_count = 1,
    .grad = {{.op = HR_OP_KL_BWD,
              .operand_count = 2,
              .operand = {{OP_SRC_OUT, 0}, {OP_SRC_IN, 1}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_KL_BWD = {.name = "kl_divergence_bwd",
                              .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                              .min_in = 2,
                              .max_in = 3,
                              .min_out = 1,
                              .max_out = 1,
                              .flops = kl_bwd_flops,
                              .in_place = 0};

// The target gets no gradient.
const op_row op_row_BINARY_XENT = {
    .name = "binary_cross_entropy",
    .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .shape = binary_shape,
    .flops = binary_flops,
    .in_place = -1,
    .wide_in = 0x3,
    .wide_out = 0x1,
    .keep_in = 0x3,
    .grad_count = 1,
    .grad = {{.op = HR_OP_BINARY_XENT_BWD,
              .operand_count = 2,
              .operand = {{OP_SRC_IN, 0}, {OP_SRC_IN, 1}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_BINARY_XENT_BWD = {.name = "binary_cross_entropy_bwd",
                                       .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                                       .min_in = 2,
                                       .max_in = 3,
                                       .min_out = 1,
                                       .max_out = 1,
                                       .flops = binary_flops,
                                       .in_place = 0};

const op_row op_row_FOCAL = {
    .name = "focal",
    .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .shape = binary_shape,
    .flops = focal_flops,
    .in_place = -1,
    .wide_in = 0x3,
    .wide_out = 0x1,
    .keep_in = 0x3,
    .grad_count = 1,
    .grad = {{.op = HR_OP_FOCAL_BWD,
              .operand_count = 2,
              .operand = {{OP_SRC_IN, 0}, {OP_SRC_IN, 1}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_FOCAL_BWD = {.name = "focal_bwd",
                                 .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                                 .min_in = 2,
                                 .max_in = 3,
                                 .min_out = 1,
                                 .max_out = 1,
                                 .flops = focal_flops,
                                 .in_place = 0};

const op_row op_row_ACCURACY = {
    .name = "accuracy",
    .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .shape = accuracy_shape,
    .flops = per_logit_flops,
    .in_place = -1,
};
