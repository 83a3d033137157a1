// SPDX-License-Identifier: Apache-2.0
// What the kernels of products.cu are given. Read by C and by CUDA C++.
#ifndef KERNELS_PRODUCTS_ARGS_H
#define KERNELS_PRODUCTS_ARGS_H

#include <stdint.h>

enum { PRODUCTS_THREADS = 256, PRODUCTS_WARPS = PRODUCTS_THREADS / 32 };

// product_bias: every row of y becomes the bias, for a product that adds to y. product_clip: y = min(max(y, 0), ceiling).
typedef struct products_args {
    void *y;
    const void *bias;
    int64_t count, columns; // elements of y, and of a row
    float ceiling;
    uint32_t unused; // no byte of an argument is undefined
} products_args;

// product_sums: block (x, part) sums its rows of a band of columns; with one part straight into `sums`.
// product_sums_end: the parts, in their order.
typedef struct column_sums_args {
    const void *x; // [rows, columns]
    float *parts;  // [parts, columns]; unused with one part
    void *sums;
    int64_t rows, columns, part_count;
} column_sums_args;

#endif
