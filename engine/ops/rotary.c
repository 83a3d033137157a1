// SPDX-License-Identifier: Apache-2.0
// Rotary positions (Su et al., "RoFormer", arXiv:2104.09864), in the form of GPT-NeoX and Llama: features i and i + half of a head of
// F are turned together, at place p by p * base^(-2i/F). Nothing is kept: the gradient is turned back.
#include "ops/rows.h"

static hr_status rotary_shape(const op_attr *attr, const op_operand *in, size_t in_count, op_operand *out,
                              size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count;
    const hr_shape *x = &in[0].shape;
    if (x->rank != 3 || attr->heads < 1 || x->dim[2] % (2 * attr->heads) != 0) {
        char had[64];
        return HR_FAIL(err, MODEL,
                       "rotary positions need [N,length,features] in %d heads of an even size, had %s",
                       attr->heads, shape_text(x, had, sizeof had));
    }
    if (!(attr->base > 0)) {
        return HR_FAIL(err, MODEL, "rotary positions need a base above 0, had %g", attr->base);
    }
    out[0] = in[0];
    return HR_OK;
}

// Sine and cosine are those of a place, whatever the sample and the head.
static uint64_t rotary_flops(const op_query *q)
{
    return 3 * op_out_elements(q, 0);
}

const op_row op_row_ROTARY = {
    .name = "rotary",
    .traits = {COST_ELEMENTWISE, OP_CHEAP, OP_NO_ACT, OP_BY_HEAD},
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .shape = rotary_shape,
    .flops = rotary_flops,
    .in_place = 0,
    .grad_count = 1,
    .grad = {{.op = HR_OP_ROTARY_BWD,
              .operand_count = 1,
              .operand = {{OP_SRC_GRAD, 0}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_ROTARY_BWD = {
    .name = "rotary_bwd",
    .traits = {COST_ELEMENTWISE, OP_COSTLY, OP_NO_ACT, OP_BY_HEAD},
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .flops = rotary_flops,
    .in_place = 0,
};
