// SPDX-License-Identifier: Apache-2.0
// What the kernels of resize.cu are given. Read by C and by CUDA C++. The numbers of a side are those of ops/resize.h.
#ifndef KERNELS_RESIZE_ARGS_H
#define KERNELS_RESIZE_ARGS_H

#include "divisor.h"

enum { RESIZE_THREADS = 256 };

typedef struct resize_side {
    divisor per;
    int64_t step, start, out, last;
} resize_side;

typedef struct resize_args {
    const void *in;
    void *out;
    int64_t count;                   // vectors of out
    divisor height, width, channels; // of out; channels in vectors
    resize_side h, w;
    int32_t narrow; // places and vectors are counted in 31 bits
    int32_t unused; // no byte of an argument is undefined
} resize_args;

// Windows of ops/adaptive.h, of `from` places a side.
typedef struct adaptive_args {
    const void *in;
    void *out;
    int64_t count;                   // vectors of out
    divisor height, width, channels; // of out; channels in vectors
    int64_t from_h, from_w;
    int32_t back;   // out is a gradient: what it gathers is shared out over the windows it came from
    int32_t unused; // no byte of an argument is undefined
} adaptive_args;

#endif
