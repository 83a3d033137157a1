// SPDX-License-Identifier: Apache-2.0
// How far a device's results may lie from the judge's, ‖ours − judge‖ / ‖judge‖ per output: one table for every
// operation and type.
#ifndef TESTS_OP_TOLERANCE_H
#define TESTS_OP_TOLERANCE_H

#include "numeric/op_harness.h"

// GELU of float32 behind a product of cuBLASLt, whose tanh is its own: up to 4.7e-6 was measured (an H100, CUDA 13.0, 5 x 7 by
// 7 x 3). What it was given, and GELU by itself, have the table's.
#define OP_TOLERANCE_GELU_BEHIND_PRODUCT 1e-5

// Of a result of `op` whose activations are `real`: HR_F32, HR_F16, HR_BF16. Fails the test when the table has no row.
double op_tolerance(hr_op op, hr_dtype real);

#endif
