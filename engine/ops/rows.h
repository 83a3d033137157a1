// SPDX-License-Identifier: Apache-2.0
// The rows that the family files fill, one symbol per operation of HR_OP_MAP. Private to ops/.
#ifndef OPS_ROWS_H
#define OPS_ROWS_H

#include "ops/op.h"

#define X(id, text) extern const op_row op_row_##id;
HR_OP_MAP(X)
#undef X

// output k = input 0 in shape and type.
hr_status op_shape_like_first(const op_attr *attr, const op_operand *in, size_t in_count, op_operand *out,
                              size_t out_count, hr_err *err);

// out = (in + pads − kernel) / stride + 1 for one image side; 0 when the kernel does not fit.
int64_t op_window_count(int64_t in, int64_t reach, int32_t stride, int32_t pad_before, int32_t pad_after);

// Of operations that only move bytes.
uint64_t op_no_flops(const op_query *q);
// Type of what is summed over many elements (losses, probabilities): float64 for float64, else float32.
uint32_t op_wide_dtype(uint32_t dtype);

uint64_t op_out_elements(const op_query *q, unsigned k);
uint64_t op_in_elements(const op_query *q, unsigned k);

#endif
