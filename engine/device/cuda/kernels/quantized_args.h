// SPDX-License-Identifier: Apache-2.0
// What the kernels of quantized.cu are given. Read by C and by CUDA C++.
#ifndef KERNELS_QUANTIZED_ARGS_H
#define KERNELS_QUANTIZED_ARGS_H

#include <stdint.h>

enum {
    QUANTIZED_THREADS = 256,
    QUANTIZED_TILE = 16,
    QUANTIZED_TURN = 32,
    QUANTIZED_WORD = 4,
    QUANTIZED_FEW_ROWS = 8, // that weights are read for once
    QUANTIZED_FEW_THREADS = 512,
    QUANTIZED_FEW_UNITS = 32 // of a block
};

// Weights w[rows,columns] become whole numbers.
typedef struct quantize_args {
    const float *w;
    uint32_t *largest; // of int8, zeros at first: the bits of the largest absolute value of each column
    void *q;
    float *scale;
    int8_t *zero;
    int64_t rows, columns;
} quantize_args;

// y[rows,units] = x[rows,depth] · w[depth,units], all of it in whole numbers; number [k,n] of w lies at k * w_depth + n * w_unit. What ends
// in _whole is that number, or a larger one, of depth a multiple of QUANTIZED_WORD: what lies between is 0.
typedef struct int8_args {
    const float *x, *scale, *bias; // bias NULL: none
    const int8_t *w;
    int8_t *numbers;     // [rows_whole,depth_whole]: x
    float *row_inverse;  // [rows_whole]: of their scales
    int8_t *turned;      // [units_whole,depth_whole]: w
    const int32_t *sums; // [rows_whole,units_whole]
    float *y;
    int64_t rows, depth, units, rows_whole, depth_whole, units_whole, w_depth, w_unit;
    float floor, ceiling; // what y is cut to
} int8_args;

// Weights alone are whole numbers, with int4's `zero`: as float32 in `widened`, or on the way into a product.
typedef struct widen_args {
    const float *x, *scale, *bias;
    const void *q;
    const int8_t *zero;
    float *widened, *y;
    int64_t rows, depth, units,
        turned; // turned: weights, and `widened`, lie [units,depth], with a scale for each row
    float floor, ceiling;
} widen_args;

// y[count,features] of rows of a table of whole numbers; what is no row of it reads as zeros.
typedef struct whole_rows_args {
    const int32_t *ids;
    const void *q;
    const float *scale;
    const int8_t *zero; // of int4
    float *y;
    int64_t count, features, entries;
} whole_rows_args;

#endif
