// SPDX-License-Identifier: Apache-2.0
// Sums, products and casts element by element: every operand is read once, every result written once.
#include "elementwise_args.h"
#include "group.cuh"

// A batch may come in double. In front of the patterns, which look for it where they are written.
__device__ __forceinline__ float widen(double x)
{
    return (float)x;
}

#include "map.cuh"

struct sum_of {
    __device__ float operator()(float a, float b) const
    {
        return a + b;
    }
};

struct relu_sum_of {
    __device__ float operator()(float a, float b) const
    {
        const float y = a + b;
        return y > 0.0f ? y : 0.0f;
    }
};

struct relu6_sum_of {
    __device__ float operator()(float a, float b) const
    {
        const float y = a + b;
        return y > 6.0f ? 6.0f : y > 0.0f ? y : 0.0f;
    }
};

struct product_of {
    __device__ float operator()(float a, float b) const
    {
        return a * b;
    }
};

struct scaled_by {
    float factor;
    __device__ float operator()(float x) const
    {
        return factor * x;
    }
};

struct itself {
    __device__ float operator()(float x) const
    {
        return x;
    }
};

// Both gradients of an element are known before the first is written.
template <typename T> __device__ __forceinline__ void multiply_bwd(const elementwise_args &e)
{
    constexpr int n = lanes<T>::count;
    const T *a = static_cast<const T *>(e.a), *b = static_cast<const T *>(e.b),
            *dy = static_cast<const T *>(e.dy);
    T *da = static_cast<T *>(e.out), *db = static_cast<T *>(e.db);
    const int64_t packs = e.count / n;
    for (int64_t i = grid_thread(); i < packs; i += grid_width()) {
        const pack<T, n> of_a = map_pack<T, n>(product_of(), i, dy, b),
                         of_b = map_pack<T, n>(product_of(), i, dy, a);
        reinterpret_cast<pack<T, n> *>(da)[i] = of_a;
        reinterpret_cast<pack<T, n> *>(db)[i] = of_b;
    }
    for (int64_t i = packs * n + grid_thread(); i < e.count; i += grid_width()) {
        const float g = widen(dy[i]), of_a = g * widen(b[i]), of_b = g * widen(a[i]);
        da[i] = narrow<T>(of_a);
        db[i] = narrow<T>(of_b);
    }
}

#define OF_TWO(name, f, suffix, type)                                                                        \
    extern "C" __global__ void name##_##suffix(elementwise_args e)                                           \
    {                                                                                                        \
        map(f(), e.count, static_cast<type *>(e.out), static_cast<const type *>(e.a),                        \
            static_cast<const type *>(e.b));                                                                 \
    }

#define KERNELS(suffix, type)                                                                                \
    OF_TWO(add, sum_of, suffix, type)                                                                        \
    OF_TWO(add_relu, relu_sum_of, suffix, type)                                                              \
    OF_TWO(add_relu6, relu6_sum_of, suffix, type)                                                            \
    OF_TWO(multiply, product_of, suffix, type)                                                               \
    extern "C" __global__ void multiply_bwd_##suffix(elementwise_args e)                                     \
    {                                                                                                        \
        multiply_bwd<type>(e);                                                                               \
    }                                                                                                        \
    extern "C" __global__ void scale_##suffix(elementwise_args e)                                            \
    {                                                                                                        \
        const scaled_by f = {(float)(e.factor == nullptr ? e.scale : e.scale * (double)*e.factor)};          \
        map(f, e.count, static_cast<type *>(e.out), static_cast<const type *>(e.a));                         \
    }
FOR_REAL_TYPES(KERNELS)

// ---- of two types -------------------------------------------------------------------------------------------------

#define CAST(from, From, to, To)                                                                             \
    extern "C" __global__ void cast_##from##_##to(cast_args c)                                               \
    {                                                                                                        \
        const group_place here(c.blocks);                                                                    \
        const cast_item &item = c.item[here.item];                                                           \
        map_by(itself(), here.thread, here.width, item.count, static_cast<To *>(item.result),                \
               static_cast<const From *>(item.source));                                                      \
    }
#define ACCUMULATE(from, From, to, To)                                                                       \
    extern "C" __global__ void accumulate_##from##_##to(elementwise_args e)                                  \
    {                                                                                                        \
        map(sum_of(), e.count, static_cast<To *>(e.out), static_cast<const To *>(e.a),                       \
            static_cast<const From *>(e.b));                                                                 \
    }
// A quotient by 255 is the product with a reciprocal of twice the digits: of all 256 bytes the rounded quotient.
struct over_255 {
    __device__ float operator()(float byte) const
    {
        const float once = 1.0f / 255.0f, rest = (float)(1.0 / 255.0 - (double)(1.0f / 255.0f));
        return fmaf(byte, once, byte * rest);
    }
};

#define NORMALISE(from, From, to, To)                                                                        \
    extern "C" __global__ void normalise_##from##_##to(elementwise_args e)                                   \
    {                                                                                                        \
        map(over_255(), e.count, static_cast<To *>(e.out), static_cast<const From *>(e.a));                  \
    }

#define TO_EVERY(MACRO, from, From)                                                                          \
    MACRO(from, From, f32, float)                                                                            \
    MACRO(from, From, f16, f16)                                                                              \
    MACRO(from, From, bf16, bf16)
#define CASTS(suffix, type)       TO_EVERY(CAST, suffix, type)
#define ACCUMULATES(suffix, type) TO_EVERY(ACCUMULATE, suffix, type)
FOR_REAL_TYPES(CASTS)
FOR_REAL_TYPES(ACCUMULATES)
TO_EVERY(CAST, f64, double)
TO_EVERY(NORMALISE, u8, uint8_t)
