// SPDX-License-Identifier: Apache-2.0
// What CUDA forbids, and what it allows beside: for the tests of the emulated card.
#include "kernel.cuh"
#include "misuse_args.h"

extern "C" __global__ void misuse_barrier(misuse_args a)
{
    if (threadIdx.x % 2 == 0) {
        __syncthreads();
    }
    a.out[threadIdx.x] = 1.0f;
}

extern "C" __global__ void misuse_shuffle(misuse_args a)
{
    float x = (float)threadIdx.x;
    if (threadIdx.x < 16) {
        x = warp_sum(x);
    }
    a.out[threadIdx.x] = x;
}

extern "C" __global__ void misuse_part_warp(misuse_args a)
{
    a.out[threadIdx.x] = warp_sum(1.0f);
}

extern "C" __global__ void misuse_mixed_words(misuse_args a)
{
    const float x =
        threadIdx.x % 2 == 0 ? __shfl_xor_sync(FULL_WARP, 1.0f, 2) : __shfl_down_sync(FULL_WARP, 1.0f, 2);
    a.out[threadIdx.x] = x;
}

extern "C" __global__ void misuse_address(misuse_args a)
{
    a.out[grid_thread() + 128 * 1024] = 1.0f; // half a MiB behind
}

// Without the barrier that it needs.
extern "C" __global__ void misuse_race(misuse_args a)
{
    SHARED float room[1024];
    room[threadIdx.x] = (float)threadIdx.x;
    a.out[threadIdx.x] = room[blockDim.x - 1 - threadIdx.x];
}

// Without the barrier behind a sum, whose room is written again while others may still read it.
extern "C" __global__ void misuse_room(misuse_args a)
{
    SHARED float room[WARP];
    float sum = 0.0f;
    for (int n = 0; n < (int)a.count; n++) {
        const float warp = warp_sum((float)(n + 1));
        if (threadIdx.x % WARP == 0) {
            room[threadIdx.x / WARP] = warp;
        }
        __syncthreads();
        sum += warp_sum(threadIdx.x % WARP < blockDim.x / WARP ? room[threadIdx.x % WARP] : 0.0f);
    }
    a.out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void misuse_dynamic(misuse_args a)
{
    SHARED_DYNAMIC(float, room);
    for (int64_t i = threadIdx.x; i < a.count; i += blockDim.x) {
        room[i] = (float)i;
    }
    __syncthreads();
    for (int64_t i = threadIdx.x; i < a.count; i += blockDim.x) {
        a.out[i] = room[a.count - 1 - i];
    }
}

// One sum per block, the long way round: static shared memory, barriers, shuffles and an atomic.
extern "C" __global__ void sums_of_blocks(misuse_args a)
{
    SHARED float room[WARP];
    SHARED int before;
    if (threadIdx.x == 0) {
        before = 0;
    }
    __syncthreads();
    atomicAdd(&before, (int)threadIdx.x);
    const float sum = block_sum((float)(blockIdx.x + threadIdx.x), room);
    const float most = block_max((float)threadIdx.x, room);
    if (threadIdx.x == 0) {
        a.out[blockIdx.x] = sum + most + (float)before;
    }
}
