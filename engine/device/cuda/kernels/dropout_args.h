// SPDX-License-Identifier: Apache-2.0
// What the kernels of dropout.cu are given, and what of it changes from step to step. Read by C and by CUDA C++.
#ifndef KERNELS_DROPOUT_ARGS_H
#define KERNELS_DROPOUT_ARGS_H

#include "divisor.h"

// In device memory: the key of this update's numbers and the batch's first sample.
typedef struct dropout_scalars {
    uint64_t first_sample;
    uint32_t key[2];
} dropout_scalars;

typedef struct dropout_args {
    const void *x; // dy of a backward
    void *out;     // may be x
    uint8_t *mask; // written where it is not NULL
    const dropout_scalars *scalars;
    int64_t samples;
    int64_t per_sample; // elements
    divisor pieces;     // of a sample: a thread draws and applies one
    uint32_t threshold; // a word below it drops its element
    float scale;
} dropout_args;

typedef struct drop_path_args {
    const void *x; // dy of a backward
    void *out;     // may be x
    float *drawn;  // written; NULL: `factors` are read
    const float *factors;
    const dropout_scalars *scalars; // of what is drawn
    int64_t count;                  // vectors in all
    divisor vectors;                // of a sample
    uint32_t threshold;
    float scale;
} drop_path_args;

typedef struct dropout_mask_args {
    const uint8_t *mask;
    const void *dy;
    void *dx; // may be dy
    int64_t count;
    float scale;
    uint32_t unused; // no byte of an argument is undefined
} dropout_mask_args;

#endif
