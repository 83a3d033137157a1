// SPDX-License-Identifier: Apache-2.0
// Activations and their gradients. Each moves what it must: forward one operand and one result, backward two operands
// and one result.
#include "activation_args.h"
#include "map.cuh"

__device__ __forceinline__ float sigmoid(float x)
{
    return quick_ratio(1.0f, 1.0f + expf(-x));
}

// ---- forward: of x ------------------------------------------------------------------------------------------------

struct relu_of {
    __device__ float operator()(float x) const
    {
        return x > 0.0f ? x : 0.0f;
    }
};

struct relu6_of {
    __device__ float operator()(float x) const
    {
        return x > 6.0f ? 6.0f : x > 0.0f ? x : 0.0f;
    }
};

#define ROOT_HALF       0.70710678f /* sqrt(1/2) */
#define DENSITY_AT_ZERO 0.39894228f /* 1/sqrt(2 pi) */

struct gelu_of {
    __device__ float operator()(float x) const
    {
        return 0.5f * x * (1.0f + erff(x * ROOT_HALF));
    }
};

// (1 + tanh(u)) / 2 is the sigmoid of 2u.
#define TWO_ROOT_2_OVER_PI 1.59576912f
#define CUBIC              0.044715f

struct gelu_tanh_of {
    __device__ float operator()(float x) const
    {
        return quick_ratio(x, 1.0f + expf(-TWO_ROOT_2_OVER_PI * x * (1.0f + CUBIC * x * x)));
    }
};

struct silu_of {
    __device__ float operator()(float x) const
    {
        return quick_ratio(x, 1.0f + expf(-x));
    }
};

struct tanh_of {
    __device__ float operator()(float x) const
    {
        return tanhf(x);
    }
};

struct sigmoid_of {
    __device__ float operator()(float x) const
    {
        return sigmoid(x);
    }
};

struct hard_sigmoid_of {
    __device__ float operator()(float x) const
    {
        return x < -3.0f ? 0.0f : x > 3.0f ? 1.0f : x * 0.16666667f + 0.5f;
    }
};

struct hard_swish_of {
    __device__ float operator()(float x) const
    {
        return x * hard_sigmoid_of()(x);
    }
};

struct leaky_relu_of {
    float slope;
    __device__ float operator()(float x) const
    {
        return x > 0.0f ? x : slope * x;
    }
};

struct softplus_of {
    __device__ float operator()(float x) const
    {
        return (x > 0.0f ? x : 0.0f) + log1pf(expf(-fabsf(x)));
    }
};

// tanh(ln(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2), and 1 less it; from e^-|x|.
struct tanh_softplus {
    float t, rest;
    __device__ __forceinline__ explicit tanh_softplus(float x)
    {
        const float e = expf(-fabsf(x)), left = e * (e + 2.0f), twice = 2.0f * e * e;
        const float over = quick_ratio(1.0f, x < 0.0f ? left + 2.0f : 1.0f + 2.0f * e + twice);
        t = (x < 0.0f ? left : 1.0f + 2.0f * e) * over;
        rest = (x < 0.0f ? 2.0f : twice) * over;
    }
};

struct mish_of {
    __device__ float operator()(float x) const
    {
        return x * tanh_softplus(x).t;
    }
};

#define FORWARD(op, suffix, type)                                                                            \
    extern "C" __global__ void op##_##suffix(activation_args a)                                              \
    {                                                                                                        \
        map(op##_of(), a.count, static_cast<type *>(a.out), static_cast<const type *>(a.x));                 \
    }
#define FORWARDS(suffix, type)                                                                               \
    FORWARD(relu, suffix, type)                                                                              \
    FORWARD(relu6, suffix, type)                                                                             \
    FORWARD(gelu, suffix, type)                                                                              \
    FORWARD(gelu_tanh, suffix, type)                                                                         \
    FORWARD(silu, suffix, type)                                                                              \
    FORWARD(tanh, suffix, type)                                                                              \
    FORWARD(sigmoid, suffix, type)                                                                           \
    FORWARD(hard_sigmoid, suffix, type)                                                                      \
    FORWARD(hard_swish, suffix, type)                                                                        \
    FORWARD(softplus, suffix, type)                                                                          \
    FORWARD(mish, suffix, type)                                                                              \
    extern "C" __global__ void leaky_relu_##suffix(activation_args a)                                        \
    {                                                                                                        \
        map(leaky_relu_of{a.slope}, a.count, static_cast<type *>(a.out), static_cast<const type *>(a.x));    \
    }
FOR_REAL_TYPES(FORWARDS)

// ---- backward: of y and dy, smooth ones of x and dy --------------------------------------------------------------

struct relu_bwd_of {
    __device__ float operator()(float y, float dy) const
    {
        return y > 0.0f ? dy : 0.0f;
    }
};

struct relu6_bwd_of {
    __device__ float operator()(float y, float dy) const
    {
        return y > 0.0f && y < 6.0f ? dy : 0.0f;
    }
};

struct gelu_bwd_of {
    __device__ float operator()(float x, float dy) const
    {
        const float below = 0.5f * (1.0f + erff(x * ROOT_HALF));
        return dy * (below + x * DENSITY_AT_ZERO * expf(-0.5f * x * x));
    }
};

struct gelu_tanh_bwd_of {
    __device__ float operator()(float x, float dy) const
    {
        const float square = x * x;
        const float s = sigmoid(TWO_ROOT_2_OVER_PI * x * (1.0f + CUBIC * square));
        const float inner = TWO_ROOT_2_OVER_PI * (1.0f + 3.0f * CUBIC * square);
        return dy * s * (1.0f + x * (1.0f - s) * inner);
    }
};

struct silu_bwd_of {
    __device__ float operator()(float x, float dy) const
    {
        const float s = sigmoid(x);
        return dy * s * (1.0f + x * (1.0f - s));
    }
};

struct tanh_bwd_of {
    __device__ float operator()(float y, float dy) const
    {
        return dy * (1.0f - y * y);
    }
};

struct sigmoid_bwd_of {
    __device__ float operator()(float y, float dy) const
    {
        return dy * y * (1.0f - y);
    }
};

struct hard_sigmoid_bwd_of {
    __device__ float operator()(float y, float dy) const
    {
        return y > 0.0f && y < 1.0f ? dy * 0.16666667f : 0.0f;
    }
};

struct hard_swish_bwd_of {
    __device__ float operator()(float x, float dy) const
    {
        return x < -3.0f ? 0.0f : x > 3.0f ? dy : dy * (x * 0.33333334f + 0.5f);
    }
};

struct leaky_relu_bwd_of {
    float slope;
    __device__ float operator()(float y, float dy) const
    {
        return y > 0.0f ? dy : slope * dy;
    }
};

struct softplus_bwd_of {
    __device__ float operator()(float x, float dy) const
    {
        return dy * sigmoid(x);
    }
};

struct mish_bwd_of {
    __device__ float operator()(float x, float dy) const
    {
        const tanh_softplus of(x);
        return dy * (of.t + x * sigmoid(x) * of.rest * (1.0f + of.t));
    }
};

// Of two gradients, their sum as it would have been stored.
template <typename T, typename F> struct of_sum {
    __device__ float operator()(float y, float dy, float more) const
    {
        return F()(y, widen(narrow<T>(dy + more)));
    }
};

#define BACKWARD_SUM(op, suffix, type)                                                                       \
    extern "C" __global__ void op##_bwd_sum_##suffix(activation_args a)                                      \
    {                                                                                                        \
        map(of_sum<type, op##_bwd_of>(), a.count, static_cast<type *>(a.out),                                \
            static_cast<const type *>(a.x), static_cast<const type *>(a.dy),                                 \
            static_cast<const type *>(a.more));                                                              \
    }
#define BACKWARD(op, suffix, type)                                                                           \
    extern "C" __global__ void op##_bwd_##suffix(activation_args a)                                          \
    {                                                                                                        \
        map(op##_bwd_of(), a.count, static_cast<type *>(a.out), static_cast<const type *>(a.x),              \
            static_cast<const type *>(a.dy));                                                                \
    }
#define BACKWARDS(suffix, type)                                                                              \
    BACKWARD(relu, suffix, type)                                                                             \
    BACKWARD(relu6, suffix, type)                                                                            \
    BACKWARD_SUM(relu, suffix, type)                                                                         \
    BACKWARD_SUM(relu6, suffix, type)                                                                        \
    BACKWARD(gelu, suffix, type)                                                                             \
    BACKWARD(gelu_tanh, suffix, type)                                                                        \
    BACKWARD(silu, suffix, type)                                                                             \
    BACKWARD(tanh, suffix, type)                                                                             \
    BACKWARD(sigmoid, suffix, type)                                                                          \
    BACKWARD(hard_sigmoid, suffix, type)                                                                     \
    BACKWARD(hard_swish, suffix, type)                                                                       \
    BACKWARD(softplus, suffix, type)                                                                         \
    BACKWARD(mish, suffix, type)                                                                             \
    extern "C" __global__ void leaky_relu_bwd_##suffix(activation_args a)                                    \
    {                                                                                                        \
        map(leaky_relu_bwd_of{a.slope}, a.count, static_cast<type *>(a.out), static_cast<const type *>(a.x), \
            static_cast<const type *>(a.dy));                                                                \
    }
FOR_REAL_TYPES(BACKWARDS)
