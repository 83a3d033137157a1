// SPDX-License-Identifier: Apache-2.0
#include "attention_pair.h"

bool attention_drops(const op_query *q)
{
    return (q->op == HR_OP_ATTENTION || q->op == HR_OP_ATTENTION_BWD) && q->attr.rate > 0.0;
}

static op_query forward_of(const op_query *q)
{
    const op_attention a = op_attention_of(q);
    op_query forward = *q;
    forward.op = HR_OP_ATTENTION;
    forward.in_count = a.y; // operands of forward come first
    forward.out_count = 2;
    forward.out[0] = q->in[a.y];
    forward.out[1] = q->in[a.lse];
    return forward;
}

static op_query backward_of(const op_query *q)
{
    const op_attention a = op_attention_of(q);
    op_query backward = *q;
    backward.op = HR_OP_ATTENTION_BWD;
    backward.in_count = (uint8_t)(a.lse + 1);
    backward.out_count = q->in_count;
    backward.in[a.y] = backward.in[a.dy] = q->out[0];
    backward.in[a.lse] = q->out[1];
    for (uint8_t k = 0; k < q->in_count; k++) {
        backward.out[k] = q->in[k];
    }
    return backward;
}

op_query attention_other_pass(const op_query *q)
{
    return q->op == HR_OP_ATTENTION ? backward_of(q) : forward_of(q);
}
