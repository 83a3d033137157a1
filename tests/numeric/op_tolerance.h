// SPDX-License-Identifier: Apache-2.0
// How far a device's results may lie from the judge's, ‖ours − judge‖ / ‖judge‖ per output: one table for every
// operation and type.
#ifndef TESTS_OP_TOLERANCE_H
#define TESTS_OP_TOLERANCE_H

#include "numeric/op_harness.h"

// Of a result of `op` whose activations are `real`: HR_F32, HR_F16, HR_BF16. Fails the test when the table has no row.
double op_tolerance(hr_op op, hr_dtype real);

#endif
