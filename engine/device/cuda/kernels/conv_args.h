// SPDX-License-Identifier: Apache-2.0
// What the kernels of conv.cu are given. Read by C and by CUDA C++.
#ifndef KERNELS_CONV_ARGS_H
#define KERNELS_CONV_ARGS_H

#include <stdint.h>

enum {
    CONV_TILE = 32,          // of a transpose: CONV_TILE squared elements a block
    CONV_TILE_THREADS = 256, // of every kernel of conv.cu
    CONV_SUM_COLUMNS = 32    // columns that a block of a sum takes
};

typedef struct transpose_args {
    const void *x; // [rows, columns]
    void *y;       // [columns, rows]
    int64_t rows, columns;
} transpose_args;

typedef struct tail_args {
    void *y;          // [rows, columns], in place
    const void *bias; // [columns] or none
    int64_t count, columns;
    float low, high; // what the result is kept within
} tail_args;

// Block b of each column takes rows b, b + parts, … in strides of the block's height.
typedef struct column_sum_args {
    const void *x;
    void *y; // [parts, columns]: float32 when there is another stage, else of the last one's type
    int64_t rows, columns, parts;
} column_sum_args;

#endif
