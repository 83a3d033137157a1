// SPDX-License-Identifier: Apache-2.0
// What the kernels of rotary.cu are given. Read by C and by CUDA C++.
#ifndef KERNELS_ROTARY_ARGS_H
#define KERNELS_ROTARY_ARGS_H

#include "divisor.h"

enum { ROTARY_PAIRS_MAX = 256, ROTARY_THREADS = 256 };

typedef struct rotary_args {
    const void *x;
    void *out;     // may lie on x
    int64_t pairs; // in all
    divisor half, heads, length;
    float direction, unused; // 1: turned; -1: turned back
    // Turns a place, of 2 pi, in two parts: their sum has more digits than a float.
    float turns[ROTARY_PAIRS_MAX], rest[ROTARY_PAIRS_MAX];
} rotary_args;

#endif
