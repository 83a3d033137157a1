// SPDX-License-Identifier: Apache-2.0
// Which operations take operands whose rows are padded, and which operands: logits over a vocabulary and their gradient,
// by the product that makes them, the loss, and the products that differentiate. A product of matrices takes a row's
// distance as it is; what is done beside it (bias, activation, sums of columns) walks over plain rows.
#include "cuda_device.h"

// Bit k: input k; OUT: output 0.
enum { IN_0 = 1, IN_1 = 2, OUT = 0x80 };

static const struct {
    uint8_t operands; // all of these, and no other
    bool alone;       // a product without anything beside it
} taken[HR_OP_COUNT] = {
    [HR_OP_DENSE] = {OUT, true},
    [HR_OP_DENSE_BWD_DATA] = {IN_0, true},
    [HR_OP_DENSE_BWD_WEIGHTS] = {IN_1, true},
    [HR_OP_SOFTMAX_XENT_STREAM] = {IN_0, false},
    [HR_OP_SOFTMAX_XENT_STREAM_BWD] = {IN_0 | OUT, false},
    [HR_OP_SOFTMAX_XENT_GRADIENT] = {IN_0 | OUT, false},
    [HR_OP_ACCURACY] = {IN_0, false},
};

static bool is_padded(const op_operand *t)
{
    return t->layout == HR_LAYOUT_PADDED;
}

bool cuda_pads_rows(const op_query *q)
{
    uint32_t operands = 0;
    for (uint32_t k = 0; k < q->in_count; k++) {
        operands |= (uint32_t)is_padded(&q->in[k]) << k;
    }
    for (uint32_t k = 0; k < q->out_count; k++) {
        operands |= is_padded(&q->out[k]) ? (uint32_t)OUT << k : 0;
    }
    const bool alone = q->in_count == 2 && q->out_count == 1 && q->attr.act == HR_ACT_NONE;
    return operands != 0 && operands == taken[q->op].operands && (alone || !taken[q->op].alone);
}
