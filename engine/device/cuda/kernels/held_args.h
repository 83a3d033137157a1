// SPDX-License-Identifier: Apache-2.0
// What the kernels of held.cu are given. Read by C and by CUDA C++.
#ifndef KERNELS_HELD_ARGS_H
#define KERNELS_HELD_ARGS_H

#include <stdint.h>

#include "divisor.h"

enum { HELD_THREADS = 256, HELD_LEVELS = 16 };

// Weights w[rows,columns] of whole numbers (ops/held.h), a piece of so many columns at a time as the kernel's name says.
typedef struct held_args {
    const void *q;
    const float *scale;
    const int8_t *zero; // of int4
    void *w;
    int64_t pieces, columns;
    divisor row;              // pieces of it
    float level[HELD_LEVELS]; // of nf4
} held_args;

#endif
