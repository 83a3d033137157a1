// SPDX-License-Identifier: Apache-2.0
// The order of axes in PERMUTE's attribute: which axis of x every axis of y is, four bits each in attr.rule. The first
// axis, which counts samples or parts of them, stays where it is.
#ifndef OPS_PERMUTE_H
#define OPS_PERMUTE_H

#include <stdint.h>

#include "ops/op.h"

// axes[k], k < rank: the axis of x that is axis k of y.
int32_t permute_rule(const uint32_t *axes, uint32_t rank);
uint32_t permute_axis(const op_attr *attr, uint32_t k);
// Elements of x from one place of y's axis k to the next.
int64_t permute_stride(const op_attr *attr, const hr_shape *x, uint32_t k);

#endif
