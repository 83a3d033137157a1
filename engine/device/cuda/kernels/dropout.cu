// SPDX-License-Identifier: Apache-2.0
// Dropout: the words of ops/dropout.h. The four words of a call stand sixteen elements apart in a block of 64, and
// neighbours come from neighbouring calls; so a thread makes as many calls as sixteen bytes have elements and fills four
// such vectors, 16 elements apart. No call is made twice, nothing but x, y and the mask is moved.
#include "dropout_args.h"
#include "map.cuh"
#include "philox.cuh"

// Bit w * N + l: the element of word w and call l is kept.
template <int N>
__device__ __forceinline__ uint32_t draw(const dropout_args &a, uint64_t first_call, uint64_t sample)
{
    uint32_t kept = 0;
#pragma unroll
    for (int l = 0; l < N; l++) {
        const philox_words words = philox(a.scalars->key[0], a.scalars->key[1], first_call + l, sample);
#pragma unroll
        for (int w = 0; w < PHILOX_WORDS; w++) {
            kept |= (words.word[w] >= a.threshold ? 1u : 0u) << (w * N + l);
        }
    }
    return kept;
}

template <typename T, int N>
__device__ __forceinline__ pack<T, N> applied(const dropout_args &a, pack<T, N> values, uint32_t kept)
{
#pragma unroll
    for (int l = 0; l < N; l++) {
        values.at[l] = narrow<T>((kept >> l & 1u) != 0 ? widen(values.at[l]) * a.scale : 0.0f);
    }
    return values;
}

template <int N> __device__ __forceinline__ pack<uint8_t, N> mask_of(uint32_t kept)
{
    pack<uint8_t, N> mask;
#pragma unroll
    for (int l = 0; l < N; l++) {
        mask.at[l] = (uint8_t)(kept >> l & 1u);
    }
    return mask;
}

// Whole vectors: every sample has a multiple of N elements, so that none is cut and all are aligned. They are on their
// way while the numbers are drawn.
template <typename T, int N>
__device__ __forceinline__ void apply_vectors(const dropout_args &a, int64_t sample, int64_t call,
                                              int64_t element)
{
    const T *x = static_cast<const T *>(a.x) + sample * a.per_sample;
    T *out = static_cast<T *>(a.out) + sample * a.per_sample;
    pack<T, N> values[PHILOX_WORDS];
#pragma unroll
    for (int w = 0; w < PHILOX_WORDS; w++) {
        if (element + w * DRAW_LANES < a.per_sample) {
            values[w] = *reinterpret_cast<const pack<T, N> *>(x + element + w * DRAW_LANES);
        }
    }
    const uint32_t kept = draw<N>(a, (uint64_t)call, a.scalars->first_sample + (uint64_t)sample);
#pragma unroll
    for (int w = 0; w < PHILOX_WORDS; w++) {
        const int64_t at = element + w * DRAW_LANES;
        if (at < a.per_sample) {
            *reinterpret_cast<pack<T, N> *>(out + at) = applied<T, N>(a, values[w], kept >> w * N);
            if (a.mask != nullptr) {
                *reinterpret_cast<pack<uint8_t, N> *>(a.mask + sample * a.per_sample + at) =
                    mask_of<N>(kept >> w * N);
            }
        }
    }
}

template <typename T, int N>
__device__ __forceinline__ void apply_elements(const dropout_args &a, int64_t sample, int64_t call,
                                               int64_t element)
{
    const uint32_t kept = draw<N>(a, (uint64_t)call, a.scalars->first_sample + (uint64_t)sample);
    const int64_t begin = sample * a.per_sample;
    for (int k = 0; k < PHILOX_WORDS * N; k++) {
        const int64_t at = element + k / N * DRAW_LANES + k % N;
        if (at < a.per_sample) {
            const bool keeps = (kept >> k & 1u) != 0;
            const float x = widen(static_cast<const T *>(a.x)[begin + at]);
            static_cast<T *>(a.out)[begin + at] = narrow<T>(keeps ? x * a.scale : 0.0f);
            if (a.mask != nullptr) {
                a.mask[begin + at] = keeps;
            }
        }
    }
}

// Pieces of a sample are numbered block by block, DRAW_LANES / N in each.
template <typename T> __device__ __forceinline__ void dropout(const dropout_args &a)
{
    constexpr int n = lanes<T>::count, of_block = DRAW_LANES / n;
    const int64_t count = a.samples * a.pieces.by;
    for (int64_t i = grid_thread(); i < count; i += grid_width()) {
        const int64_t sample = count <= INT32_MAX ? (int64_t)quotient((uint32_t)i, a.pieces)
                                                  : (int64_t)quotient((uint64_t)i, a.pieces);
        const int64_t piece = i - sample * a.pieces.by, block = piece / of_block, lane = piece % of_block * n;
        if (a.per_sample % n == 0) {
            apply_vectors<T, n>(a, sample, block * DRAW_LANES + lane, block * DRAW_BLOCK + lane);
        } else {
            apply_elements<T, n>(a, sample, block * DRAW_LANES + lane, block * DRAW_BLOCK + lane);
        }
    }
}

struct kept_of {
    float scale;
    __device__ float operator()(float mask, float dy) const
    {
        return mask != 0.0f ? dy * scale : 0.0f;
    }
};

// ---- of whole samples -------------------------------------------------------------------------------------------

// As a sample's first element would be kept.
__device__ __forceinline__ float factor_of(const drop_path_args &a, int64_t sample)
{
    if (a.drawn == nullptr) {
        return a.factors[sample];
    }
    const philox_words words =
        philox(a.scalars->key[0], a.scalars->key[1], 0, a.scalars->first_sample + (uint64_t)sample);
    return words.word[0] >= a.threshold ? a.scale : 0.0f;
}

template <typename T, int N> __device__ __forceinline__ void multiply_samples(const drop_path_args &a)
{
    const pack<T, N> *x = static_cast<const pack<T, N> *>(a.x);
    for (int64_t i = grid_thread(); i < a.count; i += grid_width()) {
        const int64_t sample = (int64_t)quotient((uint64_t)i, a.vectors);
        const float factor = factor_of(a, sample);
        pack<T, N> values = x[i];
#pragma unroll
        for (int k = 0; k < N; k++) {
            values.at[k] = narrow<T>(widen(values.at[k]) * factor);
        }
        static_cast<pack<T, N> *>(a.out)[i] = values;
        if (a.drawn != nullptr && i == sample * a.vectors.by) {
            a.drawn[sample] = factor;
        }
    }
}

#define OF_TYPE(suffix, type)                                                                                \
    extern "C" __global__ void dropout_##suffix(dropout_args a)                                              \
    {                                                                                                        \
        dropout<type>(a);                                                                                    \
    }                                                                                                        \
    extern "C" __global__ void drop_path_wide_##suffix(drop_path_args a)                                     \
    {                                                                                                        \
        multiply_samples<type, lanes<type>::count>(a);                                                       \
    }                                                                                                        \
    extern "C" __global__ void drop_path_narrow_##suffix(drop_path_args a)                                   \
    {                                                                                                        \
        multiply_samples<type, 1>(a);                                                                        \
    }                                                                                                        \
    extern "C" __global__ void dropout_bwd_mask_##suffix(dropout_mask_args a)                                \
    {                                                                                                        \
        map(kept_of{a.scale}, a.count, static_cast<type *>(a.dx), a.mask, static_cast<const type *>(a.dy));  \
    }
FOR_REAL_TYPES(OF_TYPE)
