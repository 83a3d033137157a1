// SPDX-License-Identifier: Apache-2.0
// Fake quantization (ops/fake_quant.h): of weights by their own largest value, of activations by a range that follows
// them. Gradients go straight through, those of what lay outside of the range are cut off.
#include "ops/rows.h"

static hr_status same_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                            size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count, (void)err;
    out[0] = in[0];
    return HR_OK;
}

static uint64_t five_an_element(const op_query *q)
{
    return 5 * op_in_elements(q, 0);
}

static uint64_t two_an_element(const op_query *q)
{
    return 2 * op_in_elements(q, 0);
}

const op_row op_row_FAKE_QUANT_WEIGHTS = {
    .name = "fake_quant_weights",
    .traits = {COST_ELEMENTWISE, OP_CHEAP, OP_NO_ACT, OP_WHOLE},
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .shape = same_shape,
    .flops = five_an_element,
    .in_place = -1,
    .passes_gradient = 0x1,
};

const op_row op_row_FAKE_QUANT = {
    .name = "fake_quant",
    .traits = {COST_ELEMENTWISE, OP_CHEAP, OP_NO_ACT, OP_BY_ELEMENT, .whole = 0x2},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .shape = same_shape,
    .flops = five_an_element,
    .in_place = 0,
    .keep_in = 0x1,
    .wide_in = 0x2,
    .grad_count = 1,
    .grad = {{.op = HR_OP_FAKE_QUANT_BWD,
              .operand_count = 3,
              .operand = {{OP_SRC_IN, 0}, {OP_SRC_IN, 1}, {OP_SRC_GRAD, 0}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_FAKE_QUANT_BWD = {
    .name = "fake_quant_bwd",
    .traits = {COST_ELEMENTWISE, OP_COSTLY, OP_NO_ACT, OP_BY_ELEMENT, .whole = 0x2},
    .min_in = 3,
    .max_in = 3,
    .min_out = 1,
    .max_out = 1,
    .in_place = 2,
    .wide_in = 0x2};

const op_row op_row_TRACK_RANGE = {.name = "track_range",
                                   .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                                   .min_in = 2,
                                   .max_in = 2,
                                   .min_out = 1,
                                   .max_out = 1,
                                   .flops = two_an_element,
                                   .in_place = -1,
                                   .updates = 0x2,
                                   .wide_in = 0x2,
                                   .wide_out = 0x1};
