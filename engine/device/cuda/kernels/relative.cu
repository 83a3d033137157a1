// SPDX-License-Identifier: Apache-2.0
// Biases by where a query and a key stand to one another. Forward a thread a bias; backward a block a number of the table,
// whose threads look through all pairs: the order of a sum depends on nothing but the shapes.
#include "map.cuh"
#include "relative_args.h"

__device__ __forceinline__ int32_t row_of_pair(const relative_args &a, int32_t i, int32_t j)
{
    if (a.window_h > 0) {
        const int32_t w = a.window_w, down = i / w - j / w, right = i % w - j % w;
        return (down + a.window_h - 1) * (2 * w - 1) + right + w - 1;
    }
    const int32_t behind = j - i;
    const int32_t distance = behind < 0 ? -behind : a.causal ? 0 : behind;
    int32_t bucket = 0;
    for (int k = 1; k < a.buckets; k++) {
        bucket = distance >= a.from[k] ? k : bucket;
    }
    return bucket + (!a.causal && behind > 0 ? a.buckets : 0);
}

// The last window of a side ends with the `shift` pixels that came from the other end.
__device__ __forceinline__ bool is_torn(int32_t size, int32_t shift, int32_t x, int32_t y)
{
    return shift > 0 && (x < size - shift) != (y < size - shift);
}

__device__ __forceinline__ bool is_hidden(const relative_args &a, int64_t window, int32_t i, int32_t j)
{
    if (a.windows == 1 && a.shift_h == 0 && a.shift_w == 0) {
        return false;
    }
    const int32_t w = a.window_w;
    return (window / a.across == a.down - 1 && is_torn(a.window_h, a.shift_h, i / w, j / w)) ||
           (window % a.across == a.across - 1 && is_torn(w, a.shift_w, i % w, j % w));
}

template <typename T> __device__ __forceinline__ void fill(const relative_args &a)
{
    const T *table = static_cast<const T *>(a.in);
    for (int64_t at = grid_thread(); at < a.count; at += grid_width()) {
        const uint64_t row = quotient((uint64_t)at, a.keys), head = quotient(row, a.queries);
        const uint64_t window = quotient(head, a.heads);
        const int32_t j = (int32_t)(at - (int64_t)row * a.keys.by);
        const int32_t i = (int32_t)((int64_t)row - (int64_t)head * a.queries.by);
        const int64_t column = (int64_t)head - (int64_t)window * a.heads.by;
        float bias = widen(table[row_of_pair(a, i, j) * a.heads.by + column]);
        bias += is_hidden(a, (int64_t)window, i, j) ? a.hidden : 0.0f;
        static_cast<T *>(a.out)[at] = narrow<T>(bias);
    }
}

template <typename T> __device__ __forceinline__ void sum_pairs(const relative_args &a, float *room)
{
    const T *dbias = static_cast<const T *>(a.in);
    const int64_t pairs = a.queries.by * a.keys.by;
    for (int64_t number = blockIdx.x; number < a.count; number += gridDim.x) {
        const int32_t row = (int32_t)quotient((uint64_t)number, a.heads);
        const int64_t head = number - row * a.heads.by;
        float sum = 0.0f;
        for (int64_t pair = threadIdx.x; pair < pairs; pair += blockDim.x) {
            const int32_t i = (int32_t)quotient((uint64_t)pair, a.keys);
            if (row_of_pair(a, i, (int32_t)(pair - i * a.keys.by)) != row) {
                continue;
            }
            for (int64_t p = 0; p < a.windows; p++) {
                sum += widen(dbias[(p * a.heads.by + head) * pairs + pair]);
            }
        }
        sum = block_sum(sum, room);
        if (threadIdx.x == 0) {
            static_cast<T *>(a.out)[number] = narrow<T>(sum);
        }
    }
}

#define OF_TYPE(suffix, type)                                                                                \
    extern "C" __global__ void relative_bias_##suffix(relative_args a)                                       \
    {                                                                                                        \
        fill<type>(a);                                                                                       \
    }                                                                                                        \
    extern "C" __global__ void relative_bias_bwd_##suffix(relative_args a)                                   \
    {                                                                                                        \
        SHARED float room[WARP];                                                                             \
        sum_pairs<type>(a, room);                                                                            \
    }
FOR_REAL_TYPES(OF_TYPE)
