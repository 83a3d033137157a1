// SPDX-License-Identifier: Apache-2.0
// Adam whose moments are bytes (base/code8.h): a warp takes a block of 256 values, decodes it, updates it in float32 and
// encodes it again; every byte moves once.
//
// The code of a ratio is found without a search: its exponent names a decade or two, whose steps are equally wide, and
// one comparison with the middle between two values corrects what rounding or the end of a decade made of it.
#include "adam8bit_args.h"
#include "kernel.cuh"

#define BLOCK     256
#define PER_LANE  (BLOCK / WARP)
#define ZERO_CODE 127 // of m
// Adding it to a number from 0 to 2^22 rounds that to an integer, which the low bits then hold.
#define INTEGER_BITS   12582912.0f
#define FIRST_EXPONENT (127 - ADAM8BIT_OCTAVES)

struct codec {
    code_octave octave[ADAM8BIT_OCTAVES];
    code_run run[ADAM8BIT_RUNS];
    float value[ADAM8BIT_VALUES], middle[ADAM8BIT_VALUES]; // middle: to the next value above
};

// By all threads of the block.
__device__ __forceinline__ void load_codec(codec &c, const code_finder &finder, const float *value, int count)
{
    for (int i = threadIdx.x; i < ADAM8BIT_VALUES; i += blockDim.x) {
        c.value[i] = i < count ? value[i] : 1.0f;
        c.middle[i] = i + 1 < count ? (value[i] + value[i + 1]) * 0.5f : 2.0f;
    }
    for (int i = threadIdx.x; i < ADAM8BIT_OCTAVES; i += blockDim.x) {
        c.octave[i] = finder.octave[i];
    }
    for (int i = threadIdx.x; i < ADAM8BIT_RUNS; i += blockDim.x) {
        c.run[i] = finder.run[i];
    }
}

// Steps above zero of a ratio in [0, 1].
__device__ __forceinline__ int steps_of(const codec &c, float ratio)
{
    const int exponent = (int)(__float_as_uint(ratio) >> 23) - FIRST_EXPONENT;
    const int place = exponent < 0 ? 0 : exponent < ADAM8BIT_OCTAVES ? exponent : ADAM8BIT_OCTAVES - 1;
    const code_octave octave = c.octave[place];
    const code_run run = c.run[octave.below + (ratio > octave.threshold ? 1 : 0)];
    const int guess = __float_as_uint(fminf(ratio * run.slope + run.offset, run.last) + INTEGER_BITS) & 0xff;
    return guess + (ratio > c.middle[guess] ? 1 : 0);
}

// Divides by the largest of a block; numbers whose inverse float32 does not know are raised first.
struct ratio_to {
    float raise, inverse;
    __device__ explicit ratio_to(float largest)
    {
        raise = largest < 5.421010862e-20f ? 1.844674407e+19f : 1.0f; // 2^-64, 2^64
        inverse = largest > 0.0f ? 1.0f / (largest * raise) : 0.0f;
    }
    __device__ float operator()(float x) const
    {
        return x * raise * inverse;
    }
};

// The eight values of a lane, in pieces of N neighbours that are WARP * N apart.
template <typename T, int N> __device__ __forceinline__ int place_of(int k)
{
    return k / N * WARP * N + (int)(threadIdx.x % WARP) * N + k % N;
}

template <typename T, int N>
__device__ __forceinline__ void load_values(const void *from, int64_t first, int64_t count, T rest, T *out)
{
    const T *base = static_cast<const T *>(from) + first;
    if (count == BLOCK) {
#pragma unroll
        for (int k = 0; k < PER_LANE; k += N) {
            const pack<T, N> v = *reinterpret_cast<const pack<T, N> *>(base + place_of<T, N>(k));
#pragma unroll
            for (int i = 0; i < N; i++) {
                out[k + i] = v.at[i];
            }
        }
        return;
    }
#pragma unroll
    for (int k = 0; k < PER_LANE; k++) {
        const int place = place_of<T, N>(k);
        out[k] = place < count ? base[place] : rest;
    }
}

template <typename T, int N>
__device__ __forceinline__ void store_values(void *to, int64_t first, int64_t count, const T *values)
{
    T *base = static_cast<T *>(to) + first;
    if (count == BLOCK) {
#pragma unroll
        for (int k = 0; k < PER_LANE; k += N) {
            pack<T, N> v;
#pragma unroll
            for (int i = 0; i < N; i++) {
                v.at[i] = values[k + i];
            }
            *reinterpret_cast<pack<T, N> *>(base + place_of<T, N>(k)) = v;
        }
        return;
    }
#pragma unroll
    for (int k = 0; k < PER_LANE; k++) {
        const int place = place_of<T, N>(k);
        if (place < count) {
            base[place] = values[k];
        }
    }
}

// Codes of m are ZERO_CODE below and above; there is no -1. A second moment that is not zero stays so: it divides.
__device__ __forceinline__ void encode(const codec &m_codec, const codec &v_codec, const float *m,
                                       const float *v, float m_largest, float v_largest, uint8_t *m_code,
                                       uint8_t *v_code)
{
    const ratio_to m_ratio(m_largest), v_ratio(v_largest);
#pragma unroll
    for (int k = 0; k < PER_LANE; k++) {
        const int steps = steps_of(m_codec, fabsf(m_ratio(m[k])));
        const int code = steps_of(v_codec, v_ratio(v[k]));
        m_code[k] =
            (uint8_t)(m[k] >= 0.0f ? ZERO_CODE + steps : ZERO_CODE - (steps < ZERO_CODE ? steps : ZERO_CODE));
        v_code[k] = (uint8_t)(code == 0 && v[k] > 0.0f ? 1 : code);
    }
}

template <typename T>
__device__ __forceinline__ void update_block(const adam8bit_args &a, const adam8bit_scalars &s,
                                             const codec &m_codec, const codec &v_codec, int64_t block)
{
    constexpr int n = lanes<T>::count;
    const int64_t first = block * BLOCK, rest = a.elements - first, count = rest < BLOCK ? rest : BLOCK;
    T w[PER_LANE], g[PER_LANE];
    uint8_t m_code[PER_LANE], v_code[PER_LANE];
    float m[PER_LANE], v[PER_LANE], m_largest = 0.0f, v_largest = 0.0f;
    load_values<T, n>(a.w, first, count, narrow<T>(0.0f), w);
    load_values<T, n>(a.g, first, count, narrow<T>(0.0f), g);
    load_values<uint8_t, n>(a.m, first, count, ZERO_CODE, m_code);
    load_values<uint8_t, n>(a.v, first, count, 0, v_code);
    const float m_scale = a.scales[block], v_scale = a.scales[a.blocks + block];
#pragma unroll
    for (int k = 0; k < PER_LANE; k++) {
        const float gradient = widen(g[k]);
        const int steps = (int)m_code[k] - ZERO_CODE;
        const float size = m_codec.value[steps < 0 ? -steps : steps] * m_scale;
        m[k] = steps < 0 ? -size : size;
        v[k] = v_codec.value[v_code[k]] * v_scale;
        m[k] += (gradient - m[k]) * a.keep1;
        v[k] += (gradient * gradient - v[k]) * a.keep2;
        w[k] = narrow<T>(s.kept * widen(w[k]) - s.rate * m[k] / (sqrtf(v[k]) + s.epsilon));
        m_largest = fmaxf(m_largest, fabsf(m[k]));
        v_largest = fmaxf(v_largest, v[k]);
    }
    m_largest = warp_max(m_largest);
    v_largest = warp_max(v_largest);
    encode(m_codec, v_codec, m, v, m_largest, v_largest, m_code, v_code);
    store_values<T, n>(a.w, first, count, w);
    store_values<uint8_t, n>(a.m, first, count, m_code);
    store_values<uint8_t, n>(a.v, first, count, v_code);
    if (threadIdx.x % WARP == 0) {
        a.scales[block] = m_largest;
        a.scales[a.blocks + block] = v_largest;
    }
}

template <typename T> __device__ __forceinline__ void adam8bit(const adam8bit_args &a)
{
    SHARED codec m_codec, v_codec;
    if (a.finite != nullptr && *a.finite == 0) {
        return;
    }
    load_codec(m_codec, a.m_finder, a.m_value, ADAM8BIT_VALUES / 2 + 1);
    load_codec(v_codec, a.v_finder, a.v_value, ADAM8BIT_VALUES);
    __syncthreads();
    const adam8bit_scalars s = *a.scalars;
    for (int64_t block = grid_thread() / WARP; block < a.blocks; block += grid_width() / WARP) {
        update_block<T>(a, s, m_codec, v_codec, block);
    }
}

#define ADAM8BIT(suffix, type)                                                                               \
    extern "C" __global__ void adam8bit_##suffix(adam8bit_args a)                                            \
    {                                                                                                        \
        adam8bit<type>(a);                                                                                   \
    }
FOR_REAL_TYPES(ADAM8BIT)
