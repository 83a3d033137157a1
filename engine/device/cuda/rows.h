// SPDX-License-Identifier: Apache-2.0
// Private to the families that work on rows: which threads take a row.
#ifndef DEVICE_CUDA_ROWS_H
#define DEVICE_CUDA_ROWS_H

#include "cuda_device.h"

typedef enum cuda_rows_mode { CUDA_ROWS_WARP, CUDA_ROWS_BLOCK, CUDA_ROWS_LONG } cuda_rows_mode;

// A tensor as rows of its last dimension, see kernels/rows_args.h. Mode and vectors depend on nothing but the query.
typedef struct cuda_rows {
    int64_t rows, columns;
    int64_t pitch; // elements from row to row
    cuda_rows_mode mode;
    bool vectors;
    uint32_t at_once; // rows that a block works on side by side
    cuda_grid grid;   // blocks for the rows, no more than fill the card
} cuda_rows;

// `type` is that of the narrowest operand that is held.
cuda_rows cuda_rows_of(const cuda_device *device, const op_operand *t, uint32_t type);
// Gives long rows shared memory where one fits. Returns 1 when it does: args.cached.
int32_t cuda_rows_cache(const cuda_device *device, cuda_rows *rows, uint32_t type);
// "OPERATION_MODE_TYPE", MODE being warp, block or long.
void cuda_rows_kernel(const op_query *q, char name[CUDA_NAME_MAX]);

#endif
