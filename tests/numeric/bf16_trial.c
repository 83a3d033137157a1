// SPDX-License-Identifier: Apache-2.0
#include "numeric/bf16_trial.h"

#include <check.h>

#include "base/half.h"

void half_round(double *values, uint64_t count, hr_dtype half)
{
    for (uint64_t i = 0; i < count; i++) {
        values[i] = half == HR_F16 ? (double)float_of_f16(f16_of_float((float)values[i]))
                                   : (double)float_of_bf16(bf16_of_float((float)values[i]));
    }
}

void bf16_round(double *values, uint64_t count)
{
    half_round(values, count, HR_BF16);
}

bool bf16_is_real(const op_operand *operand)
{
    return dtype_is_real((hr_dtype)operand->dtype);
}

bf16_wide bf16_wide_of_backward(const op_query *forward, const op_grad *rule)
{
    const op_row *row = op_row_of((hr_op)forward->op);
    bf16_wide w = {0, 0};
    uint32_t place = 0;
    for (uint32_t k = 0; k < rule->operand_count; k++) {
        const op_grad_operand from = rule->operand[k];
        if (from.source != OP_SRC_IN || from.index < forward->in_count) {
            const uint32_t mask = from.source == OP_SRC_IN ? row->wide_in : row->wide_out;
            w.in |= (mask >> from.index & 1u) << place++;
        }
    }
    for (uint32_t k = 0; k < rule->result_count; k++) {
        w.out |= ((uint32_t)row->wide_in >> rule->result[k] & 1u) << k;
    }
    return w;
}

// Sums of squares and the scales of bytes are float32, as passes/clip.c and optimizer_rules.c make them.
bf16_wide bf16_wide_of(hr_op op)
{
    const op_row *row = op_row_of(op);
    switch ((int)op) {
    case HR_OP_SQUARE_SUM:
        return (bf16_wide){0x2, 0x1};
    case HR_OP_CLIP:
        return (bf16_wide){0x2, 0};
    case HR_OP_ADAM8BIT:
        return (bf16_wide){0x10, 0x8};
    default:
        return (bf16_wide){row->wide_in, row->wide_out};
    }
}

void half_round_inputs(op_trial *t, bf16_wide w, hr_dtype half)
{
    for (uint32_t k = 0; k < t->query.in_count; k++) {
        if (bf16_is_real(&t->query.in[k]) && (w.in >> k & 1) == 0) {
            half_round(t->in[k], op_trial_in_count(t, k), half);
        }
    }
}

void bf16_round_inputs(op_trial *t, bf16_wide w)
{
    half_round_inputs(t, w, HR_BF16);
}

op_trial half_trial(const op_trial *t, bf16_wide w, hr_dtype half)
{
    op_trial copy = op_trial_copy(t, half);
    for (uint32_t k = 0; k < copy.query.in_count; k++) {
        if (bf16_is_real(&copy.query.in[k]) && (w.in >> k & 1) != 0) {
            copy.query.in[k].dtype = HR_F32;
        }
    }
    for (uint32_t k = 0; k < copy.query.out_count; k++) {
        if (bf16_is_real(&copy.query.out[k]) && (w.out >> k & 1) != 0) {
            copy.query.out[k].dtype = HR_F32;
        }
    }
    return copy;
}

op_trial bf16_trial(const op_trial *t, bf16_wide w)
{
    return half_trial(t, w, HR_BF16);
}
