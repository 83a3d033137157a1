// SPDX-License-Identifier: Apache-2.0
// Where the windows of a pooling lie in its image, and what of their gradients reaches a pixel: of the poolings themselves
// and of what takes their gradient in.
#ifndef KERNELS_POOL_CUH
#define KERNELS_POOL_CUH

#include "pool_args.h"
#include "rows.cuh"

// i % by; i becomes i / by.
__device__ __forceinline__ int split_off(int64_t *i, int by)
{
    const int64_t n = *i;
    *i = (uint64_t)n >> 32 == 0 ? (int64_t)((uint32_t)n / (uint32_t)by) : n / by;
    return (int)(n - *i * by);
}

// A pack of an image: the image, its pixel, its first channel.
struct pixel {
    int64_t image;
    int h, w, c;
    __device__ __forceinline__ pixel(int64_t at, int width, int height, int packs, int v) : image(at)
    {
        c = split_off(&image, packs) * v;
        w = split_off(&image, width);
        h = split_off(&image, height);
    }
};

// The part of a window that lies inside the image: rows [top, bottom), columns [left, right) of the image; `origin_h` and
// `origin_w` are those of place 0, which may lie outside.
struct window {
    int origin_h, origin_w, top, bottom, left, right;
    __device__ __forceinline__ window(const pool_args &a, int h, int w)
        : origin_h(h * a.stride_h - a.pad_top), origin_w(w * a.stride_w - a.pad_left),
          top(origin_h > 0 ? origin_h : 0),
          bottom(origin_h + a.kernel_h < a.height ? origin_h + a.kernel_h : a.height),
          left(origin_w > 0 ? origin_w : 0),
          right(origin_w + a.kernel_w < a.width ? origin_w + a.kernel_w : a.width)
    {
    }
    __device__ __forceinline__ float places(const pool_args &a) const
    {
        return (float)(a.padding != 0 ? a.kernel_h * a.kernel_w : (bottom - top) * (right - left));
    }
};

// The windows [first_h, end_h) x [first_w, end_w) that see a pixel.
struct windows {
    int first_h, end_h, first_w, end_w;
    static __device__ __forceinline__ int first(int at, int kernel, int stride)
    {
        return at < kernel ? 0 : (at - kernel) / stride + 1;
    }
    static __device__ __forceinline__ int end(int at, int stride, int count)
    {
        const int behind = at < 0 ? 0 : at / stride + 1;
        return behind < count ? behind : count;
    }
    __device__ __forceinline__ windows(const pool_args &a, const pixel &p)
        : first_h(first(p.h + a.pad_top, a.kernel_h, a.stride_h)),
          end_h(end(p.h + a.pad_top, a.stride_h, a.pooled_height)),
          first_w(first(p.w + a.pad_left, a.kernel_w, a.stride_w)),
          end_w(end(p.w + a.pad_left, a.stride_w, a.pooled_width))
    {
    }
};

__device__ __forceinline__ int64_t of_image(const pool_args &a, const pixel &p, int h, int w)
{
    return ((p.image * a.height + h) * a.width + w) * a.channels + p.c;
}
__device__ __forceinline__ int64_t of_pooled(const pool_args &a, const pixel &p, int h, int w)
{
    return ((p.image * a.pooled_height + h) * a.pooled_width + w) * a.channels + p.c;
}

// Adds to pack i of the image what reaches it of the gradients of windows whose largest value is there, in their order.
template <typename T, int V>
__device__ __forceinline__ void gather_largest(const pool_args &a, int64_t i, float (&sum)[V])
{
    const T *const dy = static_cast<const T *>(a.dy);
    const pixel p(i, a.width, a.height, a.channels / V, V);
    const windows see(a, p);
    for (int h = see.first_h; h < see.end_h; h++) {
        for (int w = see.first_w; w < see.end_w; w++) {
            const int place =
                (p.h + a.pad_top - h * a.stride_h) * a.kernel_w + p.w + a.pad_left - w * a.stride_w;
            const int64_t at = of_pooled(a, p, h, w);
            const pack<uint8_t, V> index = *reinterpret_cast<const pack<uint8_t, V> *>(a.index + at);
            float d[V];
            load_pack<T, V>(dy + at, d);
#pragma unroll
            for (int lane = 0; lane < V; lane++) {
                sum[lane] += index.at[lane] == place ? d[lane] : 0.0f;
            }
        }
    }
}

#endif
