// SPDX-License-Identifier: Apache-2.0
// What stands around a convolution of the library: weights from HWIO to KRSC and back, what the library does not fuse
// behind its result, and the gradient of a bias.
#include "conv_args.h"
#include "kernel.cuh"

// ---- transpose ----------------------------------------------------------------------------------------------------

// A tile is read along its rows and written along its columns; the odd pitch keeps both free of bank conflicts.
template <typename T> __device__ __forceinline__ void transpose(const transpose_args &a)
{
    SHARED T tile[CONV_TILE][CONV_TILE + 1];
    const T *x = static_cast<const T *>(a.x);
    T *y = static_cast<T *>(a.y);
    const int lane = threadIdx.x % CONV_TILE, first = threadIdx.x / CONV_TILE;
    const int64_t across = (a.columns + CONV_TILE - 1) / CONV_TILE;
    const int64_t tiles = across * ((a.rows + CONV_TILE - 1) / CONV_TILE);
    for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const int64_t row = t / across * CONV_TILE, column = t % across * CONV_TILE;
        for (int i = first; i < CONV_TILE; i += CONV_TILE_THREADS / CONV_TILE) {
            if (row + i < a.rows && column + lane < a.columns) {
                tile[i][lane] = x[(row + i) * a.columns + column + lane];
            }
        }
        __syncthreads();
        for (int i = first; i < CONV_TILE; i += CONV_TILE_THREADS / CONV_TILE) {
            if (column + i < a.columns && row + lane < a.rows) {
                y[(column + i) * a.rows + row + lane] = tile[lane][i];
            }
        }
        __syncthreads();
    }
}

#define TRANSPOSE(bytes, type)                                                                               \
    extern "C" __global__ void conv_transpose_##bytes(transpose_args a)                                      \
    {                                                                                                        \
        transpose<type>(a);                                                                                  \
    }
TRANSPOSE(2, uint16_t)
TRANSPOSE(4, uint32_t)

// ---- tail ---------------------------------------------------------------------------------------------------------

// y = clamp(y + bias): not a number stays what it is.
template <typename T> __device__ __forceinline__ float tail_of(const tail_args &a, float y, int64_t column)
{
    if (a.bias != nullptr) {
        y += widen(static_cast<const T *>(a.bias)[column]);
    }
    return y < a.low ? a.low : y > a.high ? a.high : y;
}

template <typename T> __device__ __forceinline__ void tail(const tail_args &a)
{
    constexpr int n = lanes<T>::count;
    T *y = static_cast<T *>(a.y);
    const int64_t packs = a.count / n;
    for (int64_t i = grid_thread(); i < packs; i += grid_width()) {
        pack<T, n> v = reinterpret_cast<const pack<T, n> *>(y)[i];
        int64_t column = i * n % a.columns;
#pragma unroll
        for (int k = 0; k < n; k++) {
            v.at[k] = narrow<T>(tail_of<T>(a, widen(v.at[k]), column));
            column = column + 1 == a.columns ? 0 : column + 1;
        }
        reinterpret_cast<pack<T, n> *>(y)[i] = v;
    }
    for (int64_t i = packs * n + grid_thread(); i < a.count; i += grid_width()) {
        y[i] = narrow<T>(tail_of<T>(a, widen(y[i]), i % a.columns));
    }
}

#define TAIL(suffix, type)                                                                                   \
    extern "C" __global__ void conv_tail_##suffix(tail_args a)                                               \
    {                                                                                                        \
        tail<type>(a);                                                                                       \
    }
FOR_REAL_TYPES(TAIL)

// ---- sums of columns ----------------------------------------------------------------------------------------------

// blockIdx.x is one of the column tiles, blockIdx.y one of the parts. The order of a sum is that of rows, parts and warps.
template <typename T, typename OUT> __device__ __forceinline__ void column_sums(const column_sum_args &a)
{
    constexpr int height = CONV_TILE_THREADS / CONV_SUM_COLUMNS;
    SHARED float room[height][CONV_SUM_COLUMNS];
    const int lane = threadIdx.x % CONV_SUM_COLUMNS, level = threadIdx.x / CONV_SUM_COLUMNS;
    const int64_t column = (int64_t)blockIdx.x * CONV_SUM_COLUMNS + lane;
    const T *x = static_cast<const T *>(a.x);
    float sum = 0.0f;
    if (column < a.columns) {
        for (int64_t r = (int64_t)blockIdx.y * height + level; r < a.rows; r += a.parts * height) {
            sum += widen(x[r * a.columns + column]);
        }
    }
    room[level][lane] = sum;
    __syncthreads();
    if (level == 0 && column < a.columns) {
        for (int k = 1; k < height; k++) {
            sum += room[k][lane];
        }
        static_cast<OUT *>(a.y)[(int64_t)blockIdx.y * a.columns + column] = narrow<OUT>(sum);
    }
}

// conv_sum_FROM_TO
#define COLUMN_SUMS(from_suffix, from, to_suffix, to)                                                        \
    extern "C" __global__ void conv_sum_##from_suffix##_##to_suffix(column_sum_args a)                       \
    {                                                                                                        \
        column_sums<from, to>(a);                                                                            \
    }
COLUMN_SUMS(f32, float, f32, float)
COLUMN_SUMS(f16, f16, f32, float)
COLUMN_SUMS(bf16, bf16, f32, float)
COLUMN_SUMS(f32, float, f16, f16)
COLUMN_SUMS(f32, float, bf16, bf16)
COLUMN_SUMS(f16, f16, f16, f16)
COLUMN_SUMS(bf16, bf16, bf16, bf16)
