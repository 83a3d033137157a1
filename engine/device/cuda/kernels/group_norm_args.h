// SPDX-License-Identifier: Apache-2.0
// What the kernels of group_norm.cu are given. Read by C and by CUDA C++.
#ifndef KERNELS_GROUP_NORM_ARGS_H
#define KERNELS_GROUP_NORM_ARGS_H

#include "divisor.h"

enum { GROUP_NORM_THREADS = 256 };

typedef struct group_norm_args {
    const void *x, *dy;
    const float *gamma, *beta;
    void *out;          // y or dx; dx may be dy
    float *mean, *rstd; // [samples, groups]: results forward, operands backward
    float *sums;        // backward: [samples, 2, channels] of dy and of dy times the normalised x
    int64_t samples, places, channels, groups;
    divisor width; // channels of a group
    float epsilon, unused;
} group_norm_args;

typedef struct group_norm_finish_args {
    const float *sums;
    float *dgamma, *dbeta;
    int64_t samples, channels;
} group_norm_finish_args;

#endif
