// SPDX-License-Identifier: Apache-2.0
// What the kernels of fake_quant.cu are given. Read by C and by CUDA C++.
#ifndef KERNELS_FAKE_QUANT_ARGS_H
#define KERNELS_FAKE_QUANT_ARGS_H

#include <stdint.h>

enum { FAKE_QUANT_THREADS = 256 };

typedef struct fake_quant_args {
    const void *x, *dy;
    void *y;
    float *range; // [2]: of activations
    float *
        largest; // zeros at first, of weights: the largest absolute value of each channel; of a batch: of −x and of x
    int64_t count, channels;
    float keep;     // of the moving average
    int32_t widest; // instead of it, the widest range that there was
} fake_quant_args;

#endif
