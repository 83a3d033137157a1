// SPDX-License-Identifier: Apache-2.0
// Trials in bfloat16 and float16: what a policy makes of an operation in float64.
#ifndef TESTS_BF16_TRIAL_H
#define TESTS_BF16_TRIAL_H

#include "numeric/op_harness.h"

// Bit k: operand k is float32 whatever the activations are.
typedef struct bf16_wide {
    uint32_t in, out;
} bf16_wide;

bf16_wide bf16_wide_of(hr_op op);
// Of a gradient, as passes/precision.c types it: it has the type of what it is the gradient of.
bf16_wide bf16_wide_of_backward(const op_query *forward, const op_grad *rule);

bool bf16_is_real(const op_operand *operand);
void bf16_round(double *values, uint64_t count);
// Rounds what `w` does not say is float32.
void bf16_round_inputs(op_trial *t, bf16_wide w);
// The same trial on operands of these types.
op_trial bf16_trial(const op_trial *t, bf16_wide w);
// The same for either type of two bytes.
void half_round(double *values, uint64_t count, hr_dtype half);
void half_round_inputs(op_trial *t, bf16_wide w, hr_dtype half);
op_trial half_trial(const op_trial *t, bf16_wide w, hr_dtype half);

#endif
