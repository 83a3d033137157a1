// SPDX-License-Identifier: Apache-2.0
// What every kernel that works on several tensors at once is given of them. Read by C and by CUDA C++.
#ifndef KERNELS_GROUP_ARGS_H
#define KERNELS_GROUP_ARGS_H

#include <stdint.h>

enum { GROUP_ITEMS = 64 }; // as many as leave a kernel's arguments below the 4 KiB of every driver

// Item k has the blocks from end[k - 1] (0 of the first) up to end[k].
typedef struct group_blocks {
    uint32_t end[GROUP_ITEMS];
    int32_t count;
    uint32_t unused; // no byte of an argument is undefined
} group_blocks;

#endif
