// SPDX-License-Identifier: Apache-2.0
// Kernels that work on several tensors at once: each has blocks of its own, which walk over it as over a tensor alone.
#ifndef KERNELS_GROUP_CUH
#define KERNELS_GROUP_CUH

#include "group_args.h"
#include "kernel.cuh"

struct group_place {
    int item;
    int64_t thread, width; // among the threads of that item

    __device__ __forceinline__ explicit group_place(const group_blocks &blocks)
    {
        int low = 0, high = blocks.count - 1;
        while (low < high) {
            const int middle = (low + high) / 2;
            if (blockIdx.x < blocks.end[middle]) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        const uint32_t begin = low == 0 ? 0 : blocks.end[low - 1];
        item = low;
        thread = (int64_t)(blockIdx.x - begin) * blockDim.x + threadIdx.x;
        width = (int64_t)(blocks.end[low] - begin) * blockDim.x;
    }
};

#endif
