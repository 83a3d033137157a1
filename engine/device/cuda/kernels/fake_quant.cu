// SPDX-License-Identifier: Apache-2.0
// Fake quantization (ops/fake_quant.h), with its arithmetic: every product is rounded by itself. Largest values of floats that are
// not negative are largest values of their bits, in any order.
#include "fake_quant_args.h"
#include "kernel.cuh"

struct levels {
    float low, high, scale, inverse, zero;
};

__device__ __forceinline__ levels levels_between(float below, float above, float lowest, float highest)
{
    levels l;
    l.scale = (above + below) / (highest - lowest);
    const float at = l.scale > 0.0f ? lowest + below / l.scale : lowest;
    const float nudged = at < lowest ? lowest : at > highest ? highest : roundf(at);
    l.low = product(lowest - nudged, l.scale);
    l.high = product(highest - nudged, l.scale);
    l.inverse = l.scale > 0.0f ? 1.0f / l.scale : 0.0f;
    l.zero = floorf(product(-l.low, l.inverse) + 0.5f);
    return l;
}

__device__ __forceinline__ levels levels_of_weights(float largest)
{
    return levels_between(largest, largest, 1.0f, 255.0f);
}

__device__ __forceinline__ float at_level(const levels &l, float x)
{
    const float below_top = x > l.high ? l.high : x, inside = below_top < l.low ? l.low : below_top;
    return product(floorf(product(inside - l.low, l.inverse) - l.zero + 0.5f), l.scale);
}

__device__ __forceinline__ void raise_to(float *largest, float value)
{
    if (value > 0.0f) {
        atomicMax(reinterpret_cast<unsigned *>(largest), __float_as_uint(value));
    }
}

// ---- weights ------------------------------------------------------------------------------------------------------

// A thread keeps to one channel: it steps by as many elements as threads fill whole channels.
template <typename T> __device__ __forceinline__ void weights_largest(const fake_quant_args &a)
{
    const T *w = static_cast<const T *>(a.x);
    const int64_t width = grid_width(),
                  step = width < a.channels ? a.channels : width / a.channels * a.channels;
    for (int64_t first = grid_thread(); first < step; first += width) {
        float largest = 0.0f;
        for (int64_t i = first; i < a.count; i += step) {
            largest = fmaxf(largest, fabsf(widen(w[i])));
        }
        raise_to(&a.largest[first % a.channels], largest);
    }
}

template <typename T> __device__ __forceinline__ void weights_levels(const fake_quant_args &a)
{
    const T *w = static_cast<const T *>(a.x);
    T *y = static_cast<T *>(a.y);
    const int64_t width = grid_width(),
                  step = width < a.channels ? a.channels : width / a.channels * a.channels;
    for (int64_t first = grid_thread(); first < step; first += width) {
        const levels l = levels_of_weights(a.largest[first % a.channels]);
        for (int64_t i = first; i < a.count; i += step) {
            y[i] = narrow<T>(at_level(l, widen(w[i])));
        }
    }
}

// ---- activations --------------------------------------------------------------------------------------------------

template <typename T> __device__ __forceinline__ void fake_quant(const fake_quant_args &a)
{
    const T *x = static_cast<const T *>(a.x);
    T *y = static_cast<T *>(a.y);
    const levels l = levels_between(a.range[0], a.range[1], 0.0f, 255.0f);
    for (int64_t i = grid_thread(); i < a.count; i += grid_width()) {
        y[i] = narrow<T>(at_level(l, widen(x[i])));
    }
}

template <typename T> __device__ __forceinline__ void fake_quant_bwd(const fake_quant_args &a)
{
    const T *x = static_cast<const T *>(a.x), *dy = static_cast<const T *>(a.dy);
    T *dx = static_cast<T *>(a.y);
    const levels l = levels_between(a.range[0], a.range[1], 0.0f, 255.0f);
    for (int64_t i = grid_thread(); i < a.count; i += grid_width()) {
        const float value = widen(x[i]);
        dx[i] = value >= l.low && value <= l.high ? dy[i] : narrow<T>(0.0f);
    }
}

template <typename T> __device__ __forceinline__ void batch_range(const fake_quant_args &a)
{
    SHARED float room[WARP];
    const T *x = static_cast<const T *>(a.x);
    float below = 0.0f, above = 0.0f;
    for (int64_t i = grid_thread(); i < a.count; i += grid_width()) {
        const float value = widen(x[i]);
        below = fmaxf(below, -value);
        above = fmaxf(above, value);
    }
    below = block_max(below, room);
    above = block_max(above, room);
    if (threadIdx.x == 0) {
        raise_to(&a.largest[0], below);
        raise_to(&a.largest[1], above);
    }
}

extern "C" __global__ void track_range(fake_quant_args a)
{
    const int k = threadIdx.x;
    if (k < 2) {
        const float was = a.range[k], batch = a.largest[k];
        const float moved = a.widest != 0 ? (batch > was ? batch : was) : was - product(was - batch, a.keep);
        a.range[k] = __float_as_uint(batch) < 0x7f800000u ? moved : was; // finite
    }
}

#define OF_TYPE(suffix, type)                                                                                \
    extern "C" __global__ void weights_largest_##suffix(fake_quant_args a)                                   \
    {                                                                                                        \
        weights_largest<type>(a);                                                                            \
    }                                                                                                        \
    extern "C" __global__ void weights_levels_##suffix(fake_quant_args a)                                    \
    {                                                                                                        \
        weights_levels<type>(a);                                                                             \
    }                                                                                                        \
    extern "C" __global__ void fake_quant_##suffix(fake_quant_args a)                                        \
    {                                                                                                        \
        fake_quant<type>(a);                                                                                 \
    }                                                                                                        \
    extern "C" __global__ void fake_quant_bwd_##suffix(fake_quant_args a)                                    \
    {                                                                                                        \
        fake_quant_bwd<type>(a);                                                                             \
    }                                                                                                        \
    extern "C" __global__ void batch_range_##suffix(fake_quant_args a)                                       \
    {                                                                                                        \
        batch_range<type>(a);                                                                                \
    }

FOR_REAL_TYPES(OF_TYPE)
