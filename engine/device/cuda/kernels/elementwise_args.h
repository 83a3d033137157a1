// SPDX-License-Identifier: Apache-2.0
// What the kernels of elementwise.cu are given. Read by C and by CUDA C++.
#ifndef KERNELS_ELEMENTWISE_ARGS_H
#define KERNELS_ELEMENTWISE_ARGS_H

#include <stdint.h>

#include "group_args.h"

typedef struct elementwise_args {
    const void *a, *b, *dy; // b: ADD, MULTIPLY, ACCUMULATE (which adds it to a); dy: MULTIPLY_BWD
    void *out, *db;         // MULTIPLY_BWD: da, db; da may lie on dy, every other `out` on a
    int64_t count;
    const float *factor; // SCALE: one number of the device; NULL: 1
    double scale;
} elementwise_args;

typedef struct cast_item {
    const void *source;
    void *result;
    int64_t count;
} cast_item;

typedef struct cast_args {
    cast_item item[GROUP_ITEMS];
    group_blocks blocks;
} cast_args;

#endif
