// SPDX-License-Identifier: Apache-2.0
// Random trials of every forward and update operation: odd sizes, one-sided padding, strides, groups, depthwise
// with a multiplier, rectangular kernels, with and without bias. The same seed gives the same trial.
#ifndef TESTS_OP_CASES_H
#define TESTS_OP_CASES_H

#include "numeric/op_harness.h"

bool op_has_cases(hr_op op);
bool op_is_for_cards(hr_op op); // a pass makes it for cards alone: the cpu device has no kernel for it
bool op_is_quantized(hr_op op); // products with whole-number weights: of float32, without a gradient
// A float64 trial of `op` with spatial sizes up to `size` and some channels up to 2·size, ready to run.
op_trial op_case(hr_op op, uint64_t seed, int64_t size);
// The same over images of 16 or 32 channels.
op_trial op_case_wide(hr_op op, uint64_t seed, int64_t size);

#endif
