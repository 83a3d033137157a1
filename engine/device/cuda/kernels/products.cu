// SPDX-License-Identifier: Apache-2.0
// What stands beside matrix products where the library does not fuse it: bias and sums of columns.
#include "kernel.cuh"
#include "products_args.h"

// A thread writes the same columns of every row that it comes to, when the grid's width is a multiple of a row's packs.
template <typename T, int V> __device__ __forceinline__ void spread(const products_args &a)
{
    const pack<T, V> *bias = static_cast<const pack<T, V> *>(a.bias);
    const pack<T, V> *added = static_cast<const pack<T, V> *>(a.added);
    pack<T, V> *y = static_cast<pack<T, V> *>(a.y);
    const int64_t packs = a.count / V, in_row = a.columns / V;
    int64_t column = grid_thread() % in_row;
    const int64_t step = grid_width() % in_row;
    for (int64_t i = grid_thread(); i < packs; i += grid_width()) {
        pack<T, V> v = bias[column];
        for (int k = 0; added != nullptr && k < V; k++) {
            v.at[k] = narrow<T>(widen(v.at[k]) + widen(added[i].at[k]));
        }
        y[i] = v;
        column += step;
        column -= column >= in_row ? in_row : 0;
    }
}

template <typename T>
__device__ __forceinline__ void store_sum(const column_sums_args &a, int64_t column, float total)
{
    if (a.wide) {
        static_cast<float *>(a.sums)[column] = total;
    } else {
        static_cast<T *>(a.sums)[column] = narrow<T>(total);
    }
}

// A warp takes every PRODUCTS_WARPS-th row of the part, a thread V columns; the warps' sums meet in shared memory.
template <typename T, int V> __device__ __forceinline__ void add_columns(const column_sums_args &a)
{
    SHARED float room[PRODUCTS_WARPS][WARP * V];
    const int warp = (int)threadIdx.x / WARP, lane = (int)threadIdx.x % WARP;
    const int64_t column = ((int64_t)blockIdx.x * WARP + lane) * V;
    const int64_t first = a.rows * blockIdx.y / a.part_count,
                  behind = a.rows * (blockIdx.y + 1) / a.part_count;
    float sum[V];
    for (int k = 0; k < V; k++) {
        sum[k] = 0.0f;
    }
    for (int64_t row = first + warp; row < behind && column < a.columns; row += PRODUCTS_WARPS) {
        const pack<T, V> v =
            *reinterpret_cast<const pack<T, V> *>(static_cast<const T *>(a.x) + row * a.columns + column);
#pragma unroll
        for (int k = 0; k < V; k++) {
            sum[k] += widen(v.at[k]);
        }
    }
    for (int k = 0; k < V; k++) {
        room[warp][lane * V + k] = sum[k];
    }
    __syncthreads();
    for (int k = (int)threadIdx.x; k < WARP * V; k += PRODUCTS_THREADS) {
        const int64_t at = (int64_t)blockIdx.x * WARP * V + k;
        float total = 0.0f;
        for (int w = 0; w < PRODUCTS_WARPS; w++) {
            total += room[w][k];
        }
        if (at < a.columns && a.part_count == 1) {
            store_sum<T>(a, at, total);
        } else if (at < a.columns) {
            a.parts[blockIdx.y * a.columns + at] = total;
        }
    }
}

template <typename T> __device__ __forceinline__ void add_parts(const column_sums_args &a)
{
    for (int64_t column = grid_thread(); column < a.columns; column += grid_width()) {
        float total = 0.0f;
        for (int64_t part = 0; part < a.part_count; part++) {
            total += a.parts[part * a.columns + column];
        }
        store_sum<T>(a, column, total);
    }
}

#define PRODUCTS(suffix, type)                                                                               \
    extern "C" __global__ void product_bias_##suffix(products_args a)                                        \
    {                                                                                                        \
        spread<type, 1>(a);                                                                                  \
    }                                                                                                        \
    extern "C" __global__ void product_bias_packs_##suffix(products_args a)                                  \
    {                                                                                                        \
        spread<type, lanes<type>::count>(a);                                                                 \
    }                                                                                                        \
    extern "C" __global__ void product_sums_##suffix(column_sums_args a)                                     \
    {                                                                                                        \
        add_columns<type, 1>(a);                                                                             \
    }                                                                                                        \
    extern "C" __global__ void product_sums_packs_##suffix(column_sums_args a)                               \
    {                                                                                                        \
        add_columns<type, lanes<type>::count>(a);                                                            \
    }                                                                                                        \
    extern "C" __global__ void product_sums_end_##suffix(column_sums_args a)                                 \
    {                                                                                                        \
        add_parts<type>(a);                                                                                  \
    }
FOR_REAL_TYPES(PRODUCTS)
