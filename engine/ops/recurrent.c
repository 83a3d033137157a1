// SPDX-License-Identifier: Apache-2.0
// Recurrent layers. The product with the inputs of all steps is a dense layer before; here is what cannot be done for
// all steps at once.
#include "ops/rows.h"

static hr_status require_gates(const op_operand *g, const op_operand *wh, hr_err *err)
{
    char gates[64], weights[64];
    const bool fits = g->shape.rank == 3 && wh->shape.rank == 2 && g->shape.dim[2] % 4 == 0 &&
                      wh->shape.dim[0] == g->shape.dim[2] / 4 && wh->shape.dim[1] == g->shape.dim[2];
    if (fits) {
        return HR_OK;
    }
    return HR_FAIL(
        err, MODEL, "lstm needs gates [N, T, 4H] and recurrent weights [H, 4H], had gates %s and weights %s",
        shape_text(&g->shape, gates, sizeof gates), shape_text(&wh->shape, weights, sizeof weights));
}

static hr_status lstm_shape(const op_attr *attr, const op_operand *in, size_t in_count, op_operand *out,
                            size_t out_count, hr_err *err)
{
    (void)attr, (void)in_count;
    HR_TRY(require_gates(&in[0], &in[1], err));
    for (size_t k = 0; k < out_count; k++) {
        out[k] = in[0];
        out[k].shape.dim[2] = k == 2 ? in[0].shape.dim[2] : in[1].shape.dim[0];
    }
    return HR_OK;
}

// The product of every step, and about eight operations for each of the four gates.
static uint64_t lstm_flops(const op_query *q)
{
    const uint64_t gates = op_in_elements(q, 0);
    return 2 * gates * (uint64_t)q->in[1].shape.dim[0] + 8 * gates;
}

// Two products of the forward one's size.
static uint64_t lstm_bwd_flops(const op_query *q)
{
    const uint64_t gates = op_in_elements(q, 3);
    return 4 * gates * (uint64_t)q->in[0].shape.dim[0] + 8 * gates;
}

const op_row op_row_LSTM = {
    .name = "lstm",
    .traits = {COST_PRODUCT, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 3,
    .max_out = 3,
    .shape = lstm_shape,
    .flops = lstm_flops,
    .in_place = 0,
    .in_place_out = 2,
    .keep_in = 0x2,
    .keep_out = 0x7,
    .grad_count = 1,
    .grad =
        {{.op = HR_OP_LSTM_BWD,
          .operand_count = 5,
          .operand = {{OP_SRC_IN, 1}, {OP_SRC_OUT, 0}, {OP_SRC_OUT, 1}, {OP_SRC_OUT, 2}, {OP_SRC_GRAD, 0}},
          .result_count = 2,
          .result = {0, 1}}},
};

// A step's gates are read before their gradient is written.
const op_row op_row_LSTM_BWD = {.name = "lstm_bwd",
                                .traits = {COST_PRODUCT, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                                .min_in = 5,
                                .max_in = 5,
                                .min_out = 2,
                                .max_out = 2,
                                .flops = lstm_bwd_flops,
                                .in_place = 3};

static hr_status gru_shape(const op_attr *attr, const op_operand *in, size_t in_count, op_operand *out,
                           size_t out_count, hr_err *err)
{
    const hr_shape *g = &in[0].shape, *wh = &in[1].shape, *bh = &in[2].shape;
    char gates[64], weights[64], bias[64];
    (void)attr, (void)in_count, (void)out_count;
    if (g->rank != 3 || wh->rank != 2 || bh->rank != 1 || g->dim[2] != 3 * wh->dim[0] ||
        wh->dim[1] != g->dim[2] || bh->dim[0] != g->dim[2]) {
        return HR_FAIL(
            err, MODEL,
            "gru needs gates [N, T, 3H], recurrent weights [H, 3H] and biases [3H], had %s, %s and %s",
            shape_text(g, gates, sizeof gates), shape_text(wh, weights, sizeof weights),
            shape_text(bh, bias, sizeof bias));
    }
    out[0] = out[1] = in[0];
    out[0].shape.dim[2] = wh->dim[0];
    out[1].shape.dim[2] = 4 * wh->dim[0];
    return HR_OK;
}

static uint64_t gru_flops(const op_query *q)
{
    const uint64_t gates = op_in_elements(q, 0);
    return 2 * gates * (uint64_t)q->in[1].shape.dim[0] + 8 * gates;
}

static uint64_t gru_bwd_flops(const op_query *q)
{
    const uint64_t gates = op_in_elements(q, 2) / 4 * 3;
    return 4 * gates * (uint64_t)q->in[0].shape.dim[0] + 8 * gates;
}

const op_row op_row_GRU = {
    .name = "gru",
    .traits = {COST_PRODUCT, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
    .min_in = 3,
    .max_in = 3,
    .min_out = 2,
    .max_out = 2,
    .shape = gru_shape,
    .flops = gru_flops,
    .in_place = -1,
    .keep_in = 0x2,
    .keep_out = 0x3,
    .grad_count = 1,
    .grad = {{.op = HR_OP_GRU_BWD,
              .operand_count = 4,
              .operand = {{OP_SRC_IN, 1}, {OP_SRC_OUT, 0}, {OP_SRC_OUT, 1}, {OP_SRC_GRAD, 0}},
              .result_count = 3,
              .result = {0, 1, 2}}},
};

const op_row op_row_GRU_BWD = {.name = "gru_bwd",
                               .traits = {COST_PRODUCT, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                               .min_in = 4,
                               .max_in = 4,
                               .min_out = 3,
                               .max_out = 3,
                               .flops = gru_bwd_flops,
                               .in_place = -1};
