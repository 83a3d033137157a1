// SPDX-License-Identifier: Apache-2.0
// What the kernels of update.cu are given. Read by C and by CUDA C++.
#ifndef KERNELS_UPDATE_ARGS_H
#define KERNELS_UPDATE_ARGS_H

#include <stdint.h>

#include "group_args.h"

enum { UPDATE_SLOTS = 2 };

// Of this update, in device memory.
typedef struct update_scalars {
    float rate, epsilon;  // Adam's: ops/adam.h
    float kept;           // of a weight, behind its decay
    float momentum, keep; // EMA: of the average, of the variable
    int32_t masks;        // is the mask applied?
} update_scalars;

typedef struct update_item {
    void *w;       // EMA: the average
    const void *g; // EMA: the variable
    void *slot[UPDATE_SLOTS];
    const void *mask; // where it is 0 the weight is; NULL: none
    const update_scalars *scalars;
    int64_t count;
} update_item;

typedef struct update_args {
    update_item item[GROUP_ITEMS];
    group_blocks blocks;
    const int32_t *finite;            // 0: nothing changes; NULL: always
    float beta1, beta2, keep1, keep2; // keep = 1 - beta
    float momentum, unused;
} update_args;

#endif
