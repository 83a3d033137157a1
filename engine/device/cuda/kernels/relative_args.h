// SPDX-License-Identifier: Apache-2.0
// What the kernels of relative.cu are given. Read by C and by CUDA C++.
#ifndef KERNELS_RELATIVE_ARGS_H
#define KERNELS_RELATIVE_ARGS_H

#include "divisor.h"

enum { RELATIVE_THREADS = 256, RELATIVE_BUCKETS_MOST = 128 };

typedef struct relative_args {
    const void *in; // the table [rows, heads], or the gradient of the biases
    void *out;      // [windows, heads, queries, keys], or the gradient of the table
    int64_t count;  // biases, or numbers of the table
    divisor keys, queries, heads;
    int64_t windows;
    int32_t window_h, window_w; // pixels of a window; 0: buckets
    int32_t across, down;       // windows of the image beside and below one another
    int32_t shift_h, shift_w;
    int32_t buckets, causal; // of a half
    float hidden, unused;    // no byte of an argument is undefined
    int32_t from[RELATIVE_BUCKETS_MOST];
} relative_args;

#endif
