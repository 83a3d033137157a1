// SPDX-License-Identifier: Apache-2.0
// Updates of variables: weights, gradient and slots are read once, weights and slots are written once, sixteen bytes at
// a time, of many variables in one launch. All arithmetic is float32, whatever the tensors are. Formulas are Keras 3's.
#include "group.cuh"
#include "update_args.h"

// One element: w and its slots, in place.
struct sgd_rule {
    const update_args &a;
    const update_scalars s;
    __device__ void operator()(float &w, float g, float *) const
    {
        w = s.kept * w - s.rate * g;
    }
};

struct momentum_rule {
    const update_args &a;
    const update_scalars s;
    __device__ void operator()(float &w, float g, float *v) const
    {
        v[0] = a.momentum * v[0] - s.rate * g;
        w = s.kept * w + v[0];
    }
};

struct rmsprop_rule {
    const update_args &a;
    const update_scalars s;
    __device__ void operator()(float &w, float g, float *v) const
    {
        v[0] = a.beta1 * v[0] + a.keep1 * (g * g);
        w = s.kept * w - s.rate * g / sqrtf(v[0] + s.epsilon);
    }
};

struct adam_rule {
    const update_args &a;
    const update_scalars s;
    __device__ void operator()(float &w, float g, float *moment) const
    {
        moment[0] += (g - moment[0]) * a.keep1;
        moment[1] += (g * g - moment[1]) * a.keep2;
        w = s.kept * w - s.rate * moment[0] / (sqrtf(moment[1]) + s.epsilon);
    }
};

struct lion_rule {
    const update_args &a;
    const update_scalars s;
    __device__ void operator()(float &w, float g, float *m) const
    {
        const float direction = a.beta1 * m[0] + a.keep1 * g;
        const float step = direction > 0.0f ? s.rate : direction < 0.0f ? -s.rate : 0.0f;
        w = s.kept * w - step;
        m[0] = a.beta2 * m[0] + a.keep2 * g;
    }
};

struct ema_rule {
    const update_args &a;
    const update_scalars s;
    __device__ void operator()(float &e, float w, float *) const
    {
        e = s.momentum * e + s.keep * w;
    }
};

// Elements from `at` on: N of them at once.
template <typename T, int N, int SLOTS, typename RULE>
__device__ __forceinline__ void update_at(const update_item &a, const RULE &rule, int64_t at, bool masks)
{
    typedef pack<T, N> piece;
    piece w = *reinterpret_cast<const piece *>(static_cast<const T *>(a.w) + at), slot[UPDATE_SLOTS];
    const piece g = *reinterpret_cast<const piece *>(static_cast<const T *>(a.g) + at);
#pragma unroll
    for (int k = 0; k < SLOTS; k++) {
        slot[k] = *reinterpret_cast<const piece *>(static_cast<const T *>(a.slot[k]) + at);
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        float weight = widen(w.at[i]), state[UPDATE_SLOTS];
#pragma unroll
        for (int k = 0; k < SLOTS; k++) {
            state[k] = widen(slot[k].at[i]);
        }
        rule(weight, widen(g.at[i]), state);
        w.at[i] = narrow<T>(weight);
#pragma unroll
        for (int k = 0; k < SLOTS; k++) {
            slot[k].at[i] = narrow<T>(state[k]);
        }
    }
    if (masks) {
        const piece mask = *reinterpret_cast<const piece *>(static_cast<const T *>(a.mask) + at);
#pragma unroll
        for (int i = 0; i < N; i++) {
            w.at[i] = widen(mask.at[i]) == 0.0f ? narrow<T>(0.0f) : w.at[i];
        }
    }
    *reinterpret_cast<piece *>(static_cast<T *>(a.w) + at) = w;
#pragma unroll
    for (int k = 0; k < SLOTS; k++) {
        *reinterpret_cast<piece *>(static_cast<T *>(a.slot[k]) + at) = slot[k];
    }
}

template <typename T, int SLOTS, typename RULE>
__device__ __forceinline__ void update_all(const update_args &a)
{
    constexpr int n = lanes<T>::count;
    if (a.finite != nullptr && *a.finite == 0) {
        return;
    }
    const group_place here(a.blocks);
    const update_item &item = a.item[here.item];
    const RULE rule{a, *item.scalars};
    const bool masks = item.mask != nullptr && item.scalars->masks != 0;
    const int64_t packs = item.count / n;
    for (int64_t i = here.thread; i < packs; i += here.width) {
        update_at<T, n, SLOTS>(item, rule, i * n, masks);
    }
    for (int64_t i = packs * n + here.thread; i < item.count; i += here.width) {
        update_at<T, 1, SLOTS>(item, rule, i, masks);
    }
}

#define UPDATE(name, suffix, type, slots)                                                                    \
    extern "C" __global__ void name##_##suffix(update_args a)                                                \
    {                                                                                                        \
        update_all<type, slots, name##_rule>(a);                                                             \
    }
#define UPDATES(suffix, type)                                                                                \
    UPDATE(sgd, suffix, type, 0)                                                                             \
    UPDATE(momentum, suffix, type, 1)                                                                        \
    UPDATE(rmsprop, suffix, type, 1)                                                                         \
    UPDATE(adam, suffix, type, 2)                                                                            \
    UPDATE(lion, suffix, type, 1)                                                                            \
    UPDATE(ema, suffix, type, 0)
FOR_REAL_TYPES(UPDATES)
