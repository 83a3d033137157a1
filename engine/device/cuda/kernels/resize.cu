// SPDX-License-Identifier: Apache-2.0
// Images of another size, bilinear or by adaptive pooling: a thread a vector of channels of the result. Backward it gathers what its pixel was part
// of, in the order of those pixels: no sum depends on which thread came first.
#include "map.cuh"
#include "resize_args.h"

struct tap {
    int64_t at, next;
    float part;
};

// As resize_tap_of.
template <typename Index> __device__ __forceinline__ tap tap_of(const resize_side &s, int64_t o)
{
    const int64_t way = o * s.step + s.start, on = way < 0 ? 0 : way;
    const int64_t at = (int64_t)quotient((Index)on, s.per);
    return {at, at < s.last ? at + 1 : at, (float)(on - at * s.per.by) / (float)s.per.by};
}

// As resize_first.
__device__ __forceinline__ int64_t first_of(const resize_side &s, int64_t at)
{
    const int64_t way = at * s.per.by - s.start;
    if (at <= 0 || way <= 0) {
        return 0;
    }
    const int64_t first = s.step == 0 ? s.out : (way + s.step - 1) / s.step;
    return first < s.out ? first : s.out;
}

template <typename Index>
__device__ __forceinline__ float share_of(const resize_side &s, int64_t o, int64_t i)
{
    const tap t = tap_of<Index>(s, o);
    return (t.at == i ? 1.0f - t.part : 0.0f) + (t.next == i ? t.part : 0.0f);
}

// Where a vector of the result stands.
struct place {
    int64_t image, h, w, c;
};

template <typename Index, typename Args> __device__ __forceinline__ place place_of(const Args &a, int64_t i)
{
    const Index pixel = quotient((Index)i, a.channels), row = quotient(pixel, a.width);
    const Index image = quotient(row, a.height);
    return {(int64_t)image, (int64_t)(Index)(row - image * (Index)a.height.by),
            (int64_t)(Index)(pixel - row * (Index)a.width.by),
            (int64_t)(Index)((Index)i - pixel * (Index)a.channels.by)};
}

template <typename T, int N> struct sums {
    float at[N];
    __device__ __forceinline__ void add(const pack<T, N> &values, float share)
    {
#pragma unroll
        for (int k = 0; k < N; k++) {
            at[k] += share * widen(values.at[k]);
        }
    }
    __device__ __forceinline__ pack<T, N> rounded() const
    {
        pack<T, N> values;
#pragma unroll
        for (int k = 0; k < N; k++) {
            values.at[k] = narrow<T>(at[k]);
        }
        return values;
    }
};

template <typename T, int N, typename Index> __device__ __forceinline__ void resize_all(const resize_args &a)
{
    const pack<T, N> *x = static_cast<const pack<T, N> *>(a.in);
    const int64_t channels = a.channels.by, row = (a.w.last + 1) * channels;
    for (int64_t i = grid_thread(); i < a.count; i += grid_width()) {
        const place p = place_of<Index>(a, i);
        const tap h = tap_of<Index>(a.h, p.h), w = tap_of<Index>(a.w, p.w);
        const pack<T, N> *upper = x + (p.image * (a.h.last + 1) + h.at) * row + p.c;
        const pack<T, N> *lower = upper + (h.next - h.at) * row;
        sums<T, N> sum = {};
        sum.add(upper[w.at * channels], (1.0f - h.part) * (1.0f - w.part));
        sum.add(upper[w.next * channels], (1.0f - h.part) * w.part);
        sum.add(lower[w.at * channels], h.part * (1.0f - w.part));
        sum.add(lower[w.next * channels], h.part * w.part);
        static_cast<pack<T, N> *>(a.out)[i] = sum.rounded();
    }
}

template <typename T, int N, typename Index>
__device__ __forceinline__ void resize_bwd_all(const resize_args &a)
{
    const pack<T, N> *dy = static_cast<const pack<T, N> *>(a.in);
    const int64_t channels = a.channels.by, row = a.w.out * channels;
    for (int64_t i = grid_thread(); i < a.count; i += grid_width()) {
        const place p = place_of<Index>(a, i);
        const int64_t h_end = first_of(a.h, p.h + 1), w_end = first_of(a.w, p.w + 1);
        const int64_t w_begin = first_of(a.w, p.w - 1);
        const pack<T, N> *from = dy + p.image * a.h.out * row + p.c;
        sums<T, N> sum = {};
        for (int64_t h = first_of(a.h, p.h - 1); h < h_end; h++) {
            const float down = share_of<Index>(a.h, h, p.h);
            for (int64_t w = w_begin; w < w_end; w++) {
                sum.add(from[h * row + w * channels], down * share_of<Index>(a.w, w, p.w));
            }
        }
        static_cast<pack<T, N> *>(a.out)[i] = sum.rounded();
    }
}

template <typename T, int N> __device__ __forceinline__ void resize(const resize_args &a)
{
    if (a.narrow) {
        resize_all<T, N, uint32_t>(a);
    } else {
        resize_all<T, N, uint64_t>(a);
    }
}

template <typename T, int N> __device__ __forceinline__ void resize_bwd(const resize_args &a)
{
    if (a.narrow) {
        resize_bwd_all<T, N, uint32_t>(a);
    } else {
        resize_bwd_all<T, N, uint64_t>(a);
    }
}

// ---- adaptive pooling -----------------------------------------------------------------------------------------

__device__ __forceinline__ int64_t window_begin(int64_t i, int64_t of, int64_t to)
{
    return i * of / to;
}

__device__ __forceinline__ int64_t window_end(int64_t i, int64_t of, int64_t to)
{
    return ((i + 1) * of + to - 1) / to;
}

__device__ __forceinline__ int64_t window_places(int64_t i, int64_t of, int64_t to)
{
    return window_end(i, of, to) - window_begin(i, of, to);
}

template <typename T, int N> __device__ __forceinline__ void adaptive_pool(const adaptive_args &a)
{
    const pack<T, N> *in = static_cast<const pack<T, N> *>(a.in);
    const int64_t channels = a.channels.by, high = a.height.by, wide = a.width.by;
    for (int64_t i = grid_thread(); i < a.count; i += grid_width()) {
        const place p = place_of<uint64_t>(a, i);
        const int64_t h_end = window_end(p.h, a.from_h, high), w_end = window_end(p.w, a.from_w, wide);
        const int64_t w_begin = window_begin(p.w, a.from_w, wide);
        sums<T, N> sum = {};
        for (int64_t h = window_begin(p.h, a.from_h, high); h < h_end; h++) {
            const int64_t down =
                a.back ? window_places(h, high, a.from_h) : window_places(p.h, a.from_h, high);
            for (int64_t w = w_begin; w < w_end; w++) {
                const int64_t right = a.back ? window_places(w, wide, a.from_w) : w_end - w_begin;
                sum.add(in[((p.image * a.from_h + h) * a.from_w + w) * channels + p.c],
                        1.0f / (float)down * (1.0f / (float)right));
            }
        }
        static_cast<pack<T, N> *>(a.out)[i] = sum.rounded();
    }
}

#define OF_TYPE(suffix, type)                                                                                \
    extern "C" __global__ void resize_wide_##suffix(resize_args a)                                           \
    {                                                                                                        \
        resize<type, lanes<type>::count>(a);                                                                 \
    }                                                                                                        \
    extern "C" __global__ void resize_narrow_##suffix(resize_args a)                                         \
    {                                                                                                        \
        resize<type, 1>(a);                                                                                  \
    }                                                                                                        \
    extern "C" __global__ void resize_bwd_wide_##suffix(resize_args a)                                       \
    {                                                                                                        \
        resize_bwd<type, lanes<type>::count>(a);                                                             \
    }                                                                                                        \
    extern "C" __global__ void resize_bwd_narrow_##suffix(resize_args a)                                     \
    {                                                                                                        \
        resize_bwd<type, 1>(a);                                                                              \
    }                                                                                                        \
    extern "C" __global__ void adaptive_wide_##suffix(adaptive_args a)                                       \
    {                                                                                                        \
        adaptive_pool<type, lanes<type>::count>(a);                                                          \
    }                                                                                                        \
    extern "C" __global__ void adaptive_narrow_##suffix(adaptive_args a)                                     \
    {                                                                                                        \
        adaptive_pool<type, 1>(a);                                                                           \
    }
FOR_REAL_TYPES(OF_TYPE)
