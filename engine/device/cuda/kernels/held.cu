// SPDX-License-Identifier: Apache-2.0
// Weights that are held as whole numbers, as the type that is computed in (ops/held.h), with the bits of base/quantize.h and base/nf4.h.
// A thread makes N columns of a row at a time: sixteen bytes of them where rows are as many whole pieces, else one.
#include "held_args.h"
#include "map.cuh"

#define INT4_BLOCK 128 // rows that have one scale
#define NF4_BLOCK  64  // values that have one

// The N halves of bytes from `column` of a packed row on. With N above 1 both are multiples of it.
template <int N> struct halves_at {
    pack<uint8_t, (N + 1) / 2> bytes;
    const int odd;
    __device__ __forceinline__ halves_at(const uint8_t *row, int64_t column)
        : bytes(*reinterpret_cast<const pack<uint8_t, (N + 1) / 2> *>(row + column / 2)),
          odd(N == 1 ? (int)(column % 2) : 0)
    {
    }
    __device__ __forceinline__ int low_first(int k) const
    {
        return bytes.at[(odd + k) / 2 * (N > 1)] >> (odd + k) % 2 * 4 & 0xf;
    }
    __device__ __forceinline__ int high_first(int k) const
    {
        return bytes.at[(odd + k) / 2 * (N > 1)] >> (1 - (odd + k) % 2) * 4 & 0xf;
    }
};

template <int N> struct of_int8 {
    static __device__ __forceinline__ void read(const held_args &a, const float *, int64_t row,
                                                int64_t column, float (&w)[N])
    {
        const int8_t *from = static_cast<const int8_t *>(a.q) + row * a.columns + column;
        const pack<int8_t, N> q = *reinterpret_cast<const pack<int8_t, N> *>(from);
        const pack<float, N> scale = *reinterpret_cast<const pack<float, N> *>(a.scale + column);
#pragma unroll
        for (int k = 0; k < N; k++) {
            w[k] = (float)q.at[k] / scale.at[k];
        }
    }
};

template <int N> struct of_int4 {
    static __device__ __forceinline__ void read(const held_args &a, const float *, int64_t row,
                                                int64_t column, float (&w)[N])
    {
        const int64_t group = row / INT4_BLOCK * a.columns + column;
        const halves_at<N> q(static_cast<const uint8_t *>(a.q) + row * ((a.columns + 1) / 2), column);
        const pack<float, N> scale = *reinterpret_cast<const pack<float, N> *>(a.scale + group);
        const pack<int8_t, N> zero = *reinterpret_cast<const pack<int8_t, N> *>(a.zero + group);
#pragma unroll
        for (int k = 0; k < N; k++) {
            w[k] = product((float)((q.low_first(k) ^ 8) - 8 - zero.at[k]), scale.at[k]);
        }
    }
};

// All of them are one row.
template <int N> struct of_nf4 {
    static __device__ __forceinline__ void read(const held_args &a, const float *level, int64_t,
                                                int64_t column, float (&w)[N])
    {
        const halves_at<N> q(static_cast<const uint8_t *>(a.q), column);
        const float scale = a.scale[column / NF4_BLOCK];
#pragma unroll
        for (int k = 0; k < N; k++) {
            w[k] = product(level[q.high_first(k)], scale);
        }
    }
};

template <typename T, int N, template <int> class numbers>
__device__ __forceinline__ void dequantize(const held_args &a)
{
    SHARED float level[HELD_LEVELS]; // each in a bank of its own
    for (int k = 0; k < HELD_LEVELS && threadIdx.x == 0; k++) {
        level[k] = a.level[k]; // by one thread: an index that is not known would copy the arguments
    }
    __syncthreads();
    for (int64_t i = grid_thread(); i < a.pieces; i += grid_width()) {
        const int64_t row = a.pieces <= INT32_MAX ? (int64_t)quotient((uint32_t)i, a.row)
                                                  : (int64_t)quotient((uint64_t)i, a.row);
        float w[N];
        numbers<N>::read(a, level, row, (i - row * a.row.by) * N, w);
        pack<T, N> made;
#pragma unroll
        for (int k = 0; k < N; k++) {
            made.at[k] = narrow<T>(w[k]);
        }
        static_cast<pack<T, N> *>(a.w)[i] = made;
    }
}

#define DEQUANTIZE(held, width, suffix, type, n)                                                             \
    extern "C" __global__ void dequantize_##held##_##width##_##suffix(held_args a)                           \
    {                                                                                                        \
        dequantize<type, n, of_##held>(a);                                                                   \
    }
#define DEQUANTIZES(suffix, type)                                                                            \
    DEQUANTIZE(int8, wide, suffix, type, lanes<type>::count)                                                 \
    DEQUANTIZE(int8, narrow, suffix, type, 1)                                                                \
    DEQUANTIZE(int4, wide, suffix, type, lanes<type>::count)                                                 \
    DEQUANTIZE(int4, narrow, suffix, type, 1)                                                                \
    DEQUANTIZE(nf4, wide, suffix, type, lanes<type>::count)                                                  \
    DEQUANTIZE(nf4, narrow, suffix, type, 1)
FOR_REAL_TYPES(DEQUANTIZES)
