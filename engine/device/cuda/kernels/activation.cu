// SPDX-License-Identifier: Apache-2.0
// Activations and their gradients: one read of every operand, one write, sixteen bytes at a time.
#include "activation_args.h"
#include "kernel.cuh"

// Applies F to whole vectors, then to the few elements behind them. Base addresses are aligned to 256.
template <typename T, typename F> __device__ __forceinline__ void map_one(const activation_args &a, F f)
{
    constexpr int n = lanes<T>::count;
    const T *x = static_cast<const T *>(a.x);
    T *out = static_cast<T *>(a.out);
    const int64_t packs = a.count / n;
    for (int64_t i = grid_thread(); i < packs; i += grid_width()) {
        pack<T, n> v = reinterpret_cast<const pack<T, n> *>(x)[i];
#pragma unroll
        for (int k = 0; k < n; k++) {
            v.at[k] = narrow<T>(f(widen(v.at[k])));
        }
        reinterpret_cast<pack<T, n> *>(out)[i] = v;
    }
    for (int64_t i = packs * n + grid_thread(); i < a.count; i += grid_width()) {
        out[i] = narrow<T>(f(widen(x[i])));
    }
}

struct relu_of {
    __device__ float operator()(float x) const
    {
        return x > 0.0f ? x : 0.0f;
    }
};

#define RELU(suffix, type)                                                                                   \
    extern "C" __global__ void relu_##suffix(activation_args a)                                              \
    {                                                                                                        \
        map_one<type>(a, relu_of());                                                                         \
    }
FOR_REAL_TYPES(RELU)
