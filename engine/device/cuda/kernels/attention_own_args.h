// SPDX-License-Identifier: Apache-2.0
// What the kernels of attention_own.cu are given. Read by C and by CUDA C++.
#ifndef KERNELS_ATTENTION_OWN_ARGS_H
#define KERNELS_ATTENTION_OWN_ARGS_H

#include <stdint.h>

#include "dropout_args.h"

enum {
    ATTENTION_TILE = 64,     // queries and keys of a tile, and features that are in shared memory at once
    ATTENTION_THREADS = 128, // 16 across a tile, 8 down it
};

// Head h of row i of sample n is [(n·length + i)·row + h·features], `features` long; of y and dy with `width` for `row`.
typedef struct attention_own_args {
    const void *q, *k, *v;
    const void *y, *dy; // backward only
    void *out;          // y; backward of the queries: dq
    void *dk, *dv;
    float *lse; // [samples, heads, queries]: forward writes it, backward reads it
    float *
        delta; // the same shape: Σ dy·y of a row; backward of the queries writes it, that of the keys reads it
    int64_t samples, heads, queries, keys;
    int32_t row, width, features; // row · ATTENTION_TILE fits an int32
    int32_t causal;
    float scale;                    // of q·k
    int32_t windows;                // a block has this share of a head's features as its result
    const dropout_scalars *scalars; // of the kernels that drop
    uint32_t threshold;             // a word below it drops its weight
    float kept_scale;
} attention_own_args;

#endif
