// SPDX-License-Identifier: Apache-2.0
// What the kernels of precision.cu are given. Read by C and by CUDA C++.
//
// Sums come in two stages: every block leaves its part in the workspace, then one block adds the parts in their order.
// How many blocks there are follows from the number of elements alone, so that a sum is the same on every card. Where
// one block is enough, it finishes by itself.
#ifndef KERNELS_PRECISION_ARGS_H
#define KERNELS_PRECISION_ARGS_H

#include <stdint.h>

enum { SUM_THREADS = 512, SUM_BLOCK_ELEMENTS = 16384, SUM_BLOCKS_MAX = 1024 };

// What one block has counted.
enum { COUNT_FLUSHED, COUNT_OVERFLOWING, COUNT_STRANGE, COUNT_KINDS };

typedef struct finite_args {
    const void *g;
    int32_t *finite;
    float *health;    // all rows
    uint32_t *counts; // [blocks][COUNT_KINDS]; unused with one block
    int64_t elements, health_floats, row;
    int32_t blocks;
    int32_t begins; // both results begin here
    float flushed, largest;
} finite_args;

typedef struct square_sum_args {
    const void *g;
    const float *before; // NULL: 0; may be out
    float *out, *parts;  // [blocks]; unused with one block
    int64_t elements;
    int32_t blocks;
    uint32_t unused; // no byte of an argument is undefined
} square_sum_args;

typedef struct clip_args {
    const void *g;
    const float *sum;
    void *out; // may be g
    int64_t elements;
    float largest_norm;
    uint32_t unused; // no byte of an argument is undefined
} clip_args;

typedef struct unscale_args {
    void *g;
    const float *given; // NULL: 1
    int64_t elements;
    float scale;
    uint32_t unused; // no byte of an argument is undefined
} unscale_args;

typedef struct scale_update_args {
    float *scale;
    int32_t *clean;
    const int32_t *finite;
    int32_t steps; // clean ones, after which the scale doubles
    float floor_scale;
} scale_update_args;

#endif
