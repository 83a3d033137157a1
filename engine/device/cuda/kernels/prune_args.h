// SPDX-License-Identifier: Apache-2.0
// What the kernels of prune.cu are given. Read by C and by CUDA C++.
#ifndef KERNELS_PRUNE_ARGS_H
#define KERNELS_PRUNE_ARGS_H

#include <stdint.h>

#include "group_args.h"

enum { PRUNE_THREADS = 256 };

// Of this update, in device memory.
typedef struct prune_scalars {
    int64_t kept;   // units that stay
    int32_t act;    // prune_act
    int32_t unused; // no byte of an argument is undefined
} prune_scalars;

typedef struct prune_item {
    void *w, *mask;
    const prune_scalars *scalars;
    int64_t count;
    int64_t side; // of the axis; BLOCKS: columns
    int64_t step; // from one place of the axis to the next
} prune_item;

typedef struct prune_args {
    prune_item item[GROUP_ITEMS];
    group_blocks blocks;
    const int32_t *finite; // 0: nothing changes; NULL: always
    int32_t rule;          // op_prune_rule
    int32_t height, width; // of a block; GROUPS: `height` of `width` become zero
    int32_t unused;
} prune_args;

// Of PRUNE_CHANNELS: in every `pitch` of `last` places, filter f has the `each` from offset + f * each on; its mask lies at f * step.
typedef struct prune_channels_args {
    void *w;
    const void *mask;
    int64_t count, last, pitch, offset, each, filters, step;
} prune_channels_args;

#endif
