// SPDX-License-Identifier: Apache-2.0
// What the kernels of reduce.cu are given: [outer, middle, inner], or the products of two such, summed over the middle. Read by C and by CUDA C++.
#ifndef KERNELS_REDUCE_ARGS_H
#define KERNELS_REDUCE_ARGS_H

#include "divisor.h"

enum { REDUCE_THREADS = 256 };

typedef struct reduce_args {
    const void *in;
    const void *times; // of as many elements; NULL: nothing
    void *out;
    float *parts;                 // [gridDim.y][outer * inner] when the middle is summed in parts; else NULL
    int64_t outer, middle, chunk; // middle places of a part
    divisor columns;              // vectors of inner
    divisor tiles;                // reduce_columns: of `across` columns each
    uint32_t across;              // reduce_columns: a power of two, at most a warp
    float share;                  // of every sum
} reduce_args;

// out[i] = share * (parts[0][i] + parts[1][i] + ...)
typedef struct reduce_parts_args {
    const float *parts;
    void *out;
    int64_t count; // of sums
    int32_t part_count;
    float share;
} reduce_parts_args;

#endif
