// SPDX-License-Identifier: Apache-2.0
// What the kernels of pool.cu are given. Read by C and by CUDA C++.
#ifndef KERNELS_POOL_ARGS_H
#define KERNELS_POOL_ARGS_H

#include <stdint.h>

typedef struct pool_args {
    const void *x, *y, *dy; // as the operation needs them
    const uint8_t *index;
    const float *gamma, *beta, *mean, *variance; // max_pool_normalised: of the image's channels
    void *out;
    uint8_t *index_out;                  // NULL: not asked for
    int64_t packs;                       // of the result
    int32_t height, width, channels;     // of the image
    int32_t pooled_height, pooled_width; // of what was pooled
    int32_t kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left;
    int32_t padding; // a mean is of the whole window
    int32_t vectors; // channels are whole packs of sixteen bytes
    int32_t
        across; // global: threads side by side over packs of channels, a power of two; the rest over pixels
    float epsilon, floor, ceiling; // of the normalisation and its activation
    uint32_t unused;               // no byte of an argument is undefined
} pool_args;

#define POOL_THREADS 256

#endif
