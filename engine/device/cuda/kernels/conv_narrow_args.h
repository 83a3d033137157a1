// SPDX-License-Identifier: Apache-2.0
// What the kernels of conv_narrow.cu are given. Read by C and by CUDA C++.
#ifndef KERNELS_CONV_NARROW_ARGS_H
#define KERNELS_CONV_NARROW_ARGS_H

#include <stdint.h>

enum {
    NARROW_STRIP = 4,     // pixels of a thread, side by side
    NARROW_THREADS = 128, // forward and data gradient
    NARROW_WEIGHT_THREADS = 256,
};

// A depthwise convolution x[N,H,W,C] → y[N,H',W',C], weights [kernel,kernel,1,C].
typedef struct conv_narrow_args {
    const void *x, *y, *w; // the two that are read
    const void *bias;      // forward; NULL: none
    void *out;
    float *partial; // weights: a line of `sums` a part
    int64_t samples;
    int32_t x_h, x_w, y_h, y_w, channels;
    int32_t pad_top, pad_left;
    int32_t act;            // forward: hr_act, none, RELU or RELU6
    int32_t blocks_per_row; // forward and data: of NARROW_THREADS
    int32_t wide;      // weights: threads side by side over channels, a power of two; the others over rows
    int32_t parts;     // weights: of all rows of y
    int32_t with_bias; // weights: sums of y behind the weights'
} conv_narrow_args;

// Column i of partial[parts, weights + biases], summed up, into weights or, behind them, biases.
typedef struct conv_narrow_sum_args {
    const float *partial;
    void *weights, *biases;
    int64_t weight_count, bias_count;
    int32_t parts;
    uint32_t unused; // no byte of an argument is undefined
} conv_narrow_sum_args;

#endif
