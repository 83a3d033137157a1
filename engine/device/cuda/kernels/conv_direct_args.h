// SPDX-License-Identifier: Apache-2.0
// What the kernels of conv_direct.cu are given. Read by C and by CUDA C++.
#ifndef KERNELS_CONV_DIRECT_ARGS_H
#define KERNELS_CONV_DIRECT_ARGS_H

#include <stdint.h>

enum {
    CONV_TILE_ROWS = 128,
    CONV_TILE_COLUMNS = 64,
    CONV_TILE_DEPTH = 16,
    CONV_THREADS = 256, // 16 across a tile, 16 down it
    CONV_SUM_COLUMNS = 32,
};

// A convolution x → y. Its forward pass, data gradient and weight gradient walk the same products
// x[n, oh·stride + kh·apart − pad, …, c] · w[kh,kw,c,f] · y[n, oh, ow, f]. Images are NHWC, weights HWIO.
typedef struct conv_direct_args {
    const void *x, *y, *w; // the two that are read
    const void *bias;      // of what is written; NULL: none
    void *out;
    float *partial; // weights: [splits, kh·kw·c, f] to be summed up; NULL: out is written
    int64_t samples;
    int32_t x_h, x_w, x_c, y_h, y_w, y_c;
    int32_t group_c, group_f, groups;                                 // channels of a group in x and in y
    int32_t kernel_h, kernel_w, stride_h, stride_w, apart_h, apart_w; // apart: from tap to tap
    int32_t pad_top, pad_left;
    int32_t act; // hr_act: none, RELU or RELU6
    int32_t splits;
    uint32_t unused; // no byte of an argument is undefined
} conv_direct_args;

// Sums of columns: rows of x[rows, columns] in `splits` parts, each a line of partial; without partial, one part.
typedef struct conv_columns_args {
    const void *x;
    void *out;
    float *partial;
    int64_t rows;
    int32_t columns, splits;
} conv_columns_args;

// out[i] = Σ over splits of partial[split][i]
typedef struct conv_sum_args {
    const float *partial;
    void *out;
    int64_t count;
    int32_t splits;
    uint32_t unused; // no byte of an argument is undefined
} conv_sum_args;

#endif
