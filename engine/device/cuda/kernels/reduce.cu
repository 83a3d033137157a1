// SPDX-License-Identifier: Apache-2.0
// Sums over neighbouring axes, in float32, in an order that depends on nothing but the shape and the card. Every operand
// is read once. Three ways over [outer, middle, inner]: a thread a vector of sums where there are enough of them, blocks
// that share a sum's middle where there are few, warps along rows where the last axis is summed; the latter two in parts
// where a card would otherwise idle.
#include "map.cuh"
#include "reduce_args.h"

template <typename T, int N>
__device__ __forceinline__ void add_values(float (&sum)[N], const pack<T, N> values)
{
#pragma unroll
    for (int k = 0; k < N; k++) {
        sum[k] += widen(values.at[k]);
    }
}

// Vector `at` of what is summed.
template <typename T, int N>
__device__ __forceinline__ void add_terms(const reduce_args &a, float (&sum)[N], int64_t at)
{
    const pack<T, N> values = static_cast<const pack<T, N> *>(a.in)[at];
    if (a.times == nullptr) {
        add_values<T, N>(sum, values);
        return;
    }
    const pack<T, N> times = static_cast<const pack<T, N> *>(a.times)[at];
#pragma unroll
    for (int k = 0; k < N; k++) {
        sum[k] += widen(values.at[k]) * widen(times.at[k]);
    }
}

// The sums of one vector, to `out` or as a part.
template <typename T, int N>
__device__ __forceinline__ void put_sums(const reduce_args &a, int64_t at, const float (&sum)[N])
{
    if (a.parts != nullptr) {
        float *parts = a.parts + ((int64_t)blockIdx.y * a.outer * a.columns.by + at) * N;
#pragma unroll
        for (int k = 0; k < N; k++) {
            parts[k] = sum[k];
        }
        return;
    }
    pack<T, N> values;
#pragma unroll
    for (int k = 0; k < N; k++) {
        values.at[k] = narrow<T>(sum[k] * a.share);
    }
    static_cast<pack<T, N> *>(a.out)[at] = values;
}

template <typename T, int N> __device__ __forceinline__ void reduce_flat(const reduce_args &a)
{
    const int64_t columns = a.columns.by;
    for (int64_t i = grid_thread(); i < a.outer * columns; i += grid_width()) {
        const int64_t outer = (int64_t)quotient((uint64_t)i, a.columns);
        const int64_t from = outer * a.middle * columns + (i - outer * columns);
        float sum[N] = {};
#pragma unroll 4
        for (int64_t m = 0; m < a.middle; m++) {
            add_terms<T, N>(a, sum, from + m * columns);
        }
        put_sums<T, N>(a, i, sum);
    }
}

// `across` threads side by side, the others of the block below them; `room` holds N floats a thread.
template <typename T, int N> __device__ __forceinline__ void reduce_columns(const reduce_args &a, float *room)
{
    const int across = (int)a.across, deep = (int)blockDim.x / across;
    const int side = (int)threadIdx.x % across, row = (int)threadIdx.x / across;
    const int64_t columns = a.columns.by, first = (int64_t)blockIdx.y * a.chunk;
    const int64_t last = first + a.chunk < a.middle ? first + a.chunk : a.middle;
    for (int64_t block = blockIdx.x; block < a.outer * a.tiles.by; block += gridDim.x) {
        const int64_t outer = (int64_t)quotient((uint64_t)block, a.tiles);
        const int64_t column = (block - outer * a.tiles.by) * across + side;
        float sum[N] = {};
        if (column < columns) {
            const int64_t from = outer * a.middle * columns + column;
#pragma unroll 4
            for (int64_t m = first + row; m < last; m += deep) {
                add_terms<T, N>(a, sum, from + m * columns);
            }
        }
        for (int k = 0; k < N; k++) {
            room[k * (int)blockDim.x + (int)threadIdx.x] = sum[k];
        }
        __syncthreads();
        for (int half = deep / 2; half > 0; half /= 2) {
            for (int k = 0; k < N && row < half; k++) {
                float *mine = room + k * (int)blockDim.x + (int)threadIdx.x;
                *mine += mine[half * across];
            }
            __syncthreads();
        }
        if (row == 0 && column < columns) {
            for (int k = 0; k < N; k++) {
                sum[k] = room[k * (int)blockDim.x + (int)threadIdx.x];
            }
            put_sums<T, N>(a, outer * columns + column, sum);
        }
        __syncthreads();
    }
}

// A warp along a row; inner is 1, the middle has whole vectors.
template <typename T, int N> __device__ __forceinline__ void reduce_rows(const reduce_args &a)
{
    const int64_t vectors = a.middle / N, first = (int64_t)blockIdx.y * (a.chunk / N);
    const int64_t last = first + a.chunk / N < vectors ? first + a.chunk / N : vectors;
    const int lane = (int)threadIdx.x % WARP;
    for (int64_t row = grid_thread() / WARP; row < a.outer; row += grid_width() / WARP) {
        float sums[N] = {};
#pragma unroll 4
        for (int64_t m = first + lane; m < last; m += WARP) {
            add_terms<T, N>(a, sums, row * vectors + m);
        }
        float sum[1] = {0.0f};
#pragma unroll
        for (int k = 0; k < N; k++) {
            sum[0] += sums[k];
        }
        sum[0] = warp_sum(sum[0]);
        if (lane == 0) {
            put_sums<T, 1>(a, row, sum);
        }
    }
}

template <typename T> __device__ __forceinline__ void reduce_parts(const reduce_parts_args &a)
{
    for (int64_t i = grid_thread(); i < a.count; i += grid_width()) {
        float sum = 0.0f;
#pragma unroll 4
        for (int part = 0; part < a.part_count; part++) {
            sum += a.parts[part * a.count + i];
        }
        static_cast<T *>(a.out)[i] = narrow<T>(sum * a.share);
    }
}

#define OF_VECTORS(suffix, type, width, n)                                                                   \
    extern "C" __global__ void reduce_flat_##width##_##suffix(reduce_args a)                                 \
    {                                                                                                        \
        reduce_flat<type, n>(a);                                                                             \
    }                                                                                                        \
    extern "C" __global__ void reduce_columns_##width##_##suffix(reduce_args a)                              \
    {                                                                                                        \
        SHARED float room[REDUCE_THREADS * (n)];                                                             \
        reduce_columns<type, n>(a, room);                                                                    \
    }                                                                                                        \
    extern "C" __global__ void reduce_rows_##width##_##suffix(reduce_args a)                                 \
    {                                                                                                        \
        reduce_rows<type, n>(a);                                                                             \
    }

#define OF_TYPE(suffix, type)                                                                                \
    OF_VECTORS(suffix, type, wide, lanes<type>::count)                                                       \
    OF_VECTORS(suffix, type, narrow, 1)                                                                      \
    extern "C" __global__ void reduce_parts_##suffix(reduce_parts_args a)                                    \
    {                                                                                                        \
        reduce_parts<type>(a);                                                                               \
    }
FOR_REAL_TYPES(OF_TYPE)
