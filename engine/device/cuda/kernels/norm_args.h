// SPDX-License-Identifier: Apache-2.0
// What the kernels of norm.cu are given. Read by C and by CUDA C++.
#ifndef KERNELS_NORM_ARGS_H
#define KERNELS_NORM_ARGS_H

#include <stdint.h>

// Layer and RMS normalisation of `rows` rows of `features`.
typedef struct norm_args {
    const void *x, *dy;
    const void *more; // backward: added to dx; NULL: nothing
    const float *gamma, *beta;
    const float *mean, *rstd; // of backward; RMS has no mean
    void *y;                  // or dx, which may lie on dy
    float *mean_out, *rstd_out;
    float *partial; // backward: [blocks][gamma, beta][features]
    int64_t rows, features;
    float epsilon;
    int32_t vectors; // every row begins at a multiple of sixteen bytes
    int32_t cached;  // long rows: shared memory holds one
    uint32_t unused; // no byte of an argument is undefined
} norm_args;

// dgamma and dbeta from `parts` partial sums. Without dbeta there is none in `partial`.
typedef struct norm_finish_args {
    const float *partial;
    float *dgamma, *dbeta;
    int64_t features, parts;
} norm_finish_args;

// Matrices of `height` rows one after another.
typedef struct softmax_args {
    const void *x, *dy; // backward: x is y
    void *out;          // may lie on x, or dy
    int64_t rows, columns;
    int64_t height; // causal: row i of a matrix sees i + 1 columns
    int32_t causal, vectors, cached;
    uint32_t unused; // no byte of an argument is undefined
} softmax_args;

#endif
