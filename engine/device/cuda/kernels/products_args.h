// SPDX-License-Identifier: Apache-2.0
// What the kernels of products.cu are given. Read by C and by CUDA C++.
#ifndef KERNELS_PRODUCTS_ARGS_H
#define KERNELS_PRODUCTS_ARGS_H

#include <stdint.h>

enum { PRODUCTS_THREADS = 256, PRODUCTS_WARPS = PRODUCTS_THREADS / 32 };

// product_bias: every row of y becomes the bias, with what is added, for a product that adds to y.
typedef struct products_args {
    void *y;
    const void *bias;
    const void *added;      // of y's shape; NULL: nothing
    int64_t count, columns; // elements of y, and of a row
} products_args;

// product_sums: block (x, part) sums its rows of a band of columns; with one part straight into `sums`.
// product_sums_end: the parts, in their order.
typedef struct column_sums_args {
    const void *x; // [rows, columns]
    float *parts;  // [parts, columns]; unused with one part
    void *sums;
    int64_t rows, columns, part_count;
    int32_t wide;    // the sums are float32, whatever x is
    uint32_t unused; // no byte of an argument is undefined
} column_sums_args;

#endif
