// SPDX-License-Identifier: Apache-2.0
// What the kernels of activation.cu are given. Read by C and by CUDA C++.
#ifndef KERNELS_ACTIVATION_ARGS_H
#define KERNELS_ACTIVATION_ARGS_H

#include <stdint.h>

typedef struct activation_args {
    const void *x;    // forward: x; backward: y or x, as the operation says
    const void *dy;   // backward only
    const void *more; // to be added to dy, of the rectifiers
    void *out;        // may lie on x or dy
    int64_t count;
    float slope;     // of leaky_relu
    uint32_t unused; // no byte of an argument is undefined
} activation_args;

#endif
