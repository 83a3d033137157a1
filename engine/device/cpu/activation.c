// SPDX-License-Identifier: Apache-2.0
// Activations but ReLU and ReLU6, sixteen elements at a time, in any layout of whole blocks. Every form is written so that an
// exponential is never taken of a positive number. A result may lie over an operand.
#include <string.h>

#include "base/workers.h"
#include "cpu.h"
#include "exp.h"
#include "simd.h"
#include "smooth.h"

enum { GRAIN = 8192 };

typedef struct job {
    const float *a, *b; // x or y, and dy for a gradient
    float *y;
    float slope; // of LEAKY_RELU
} job;

// ---- on lanes ---------------------------------------------------------------------------------------------

// The normal distribution: e^(-x²/2) and the share below x. The tail beyond |x| is that exponential times a
// polynomial in 1 / (1 + p|x|) (the form of Hastings, "Approximations for Digital Computers", 1955; fitted here to
// 2e-8 of the tail itself), so that small shares keep their digits.
CPU_INLINE void normal_of(const f32x16 *x, f32x16 *density, f32x16 *below)
{
    f32x16 distance;
    magnitude(x, &distance);
    const f32x16 u = 1.0f / (1.0f + distance * 0.26870058f);
    f32x16 e = *x * *x * -0.5f;
    exp_lanes(&e);
    f32x16 p = u * 0x1.e22b38p-5f - 0x1.0c0234p-2f;
    p = p * u + 0x1.735b28p-2f;
    p = p * u - 0x1.47a94p-3f;
    p = p * u + 0x1.d4dfbp-3f;
    p = p * u + 0x1.1cf81cp-3f;
    p = p * u + 0x1.a15222p-3f;
    p = p * u + 0x1.b6263cp-3f;
    p = p * u + 0x1.b71c66p-3f;
    const f32x16 tail = 0.5f * e * (p * u), rest = 1.0f - tail;
    *density = e;
    *below = tail;
    unless_negative(x, below, &rest);
}

CPU_INLINE void gelu_lanes(f32x16 *x)
{
    f32x16 density, below;
    normal_of(x, &density, &below);
    *x *= below;
}

CPU_INLINE void gelu_bwd_lanes(f32x16 *x, const f32x16 *dy)
{
    f32x16 density, below;
    normal_of(x, &density, &below);
    *x = *dy * (below + *x * density * 0.39894228f);
}

// x/2 (1 + tanh v) = x·sigmoid(2v)
CPU_INLINE void gelu_tanh_lanes(f32x16 *x)
{
    const f32x16 twice = *x * (1.5957691f + 0.071354816f * *x * *x);
    f32x16 s;
    sigmoid_of(&twice, &s);
    *x *= s;
}

CPU_INLINE void gelu_tanh_bwd_lanes(f32x16 *x, const f32x16 *dy)
{
    const f32x16 square = *x * *x, twice = *x * (1.5957691f + 0.071354816f * square);
    f32x16 s;
    sigmoid_of(&twice, &s);
    *x = *dy * (s + *x * s * (1.0f - s) * (1.5957691f + 0.21406445f * square));
}

CPU_INLINE void silu_lanes(f32x16 *x)
{
    f32x16 s;
    sigmoid_of(x, &s);
    *x *= s;
}

CPU_INLINE void silu_bwd_lanes(f32x16 *x, const f32x16 *dy)
{
    f32x16 s;
    sigmoid_of(x, &s);
    *x = *dy * s * (1.0f + *x * (1.0f - s));
}

CPU_INLINE void sigmoid_lanes(f32x16 *x)
{
    f32x16 s;
    sigmoid_of(x, &s);
    *x = s;
}

CPU_INLINE void sigmoid_bwd_lanes(f32x16 *y, const f32x16 *dy)
{
    *y = *dy * *y * (1.0f - *y);
}

CPU_INLINE void tanh_bwd_lanes(f32x16 *y, const f32x16 *dy)
{
    *y = *dy * (1.0f - *y * *y);
}

// x/6 + 1/2 in [0, 1]; not-a-number stays.
CPU_INLINE void hard_sigmoid_lanes(f32x16 *x)
{
    const f32x16 s = *x * 0.16666667f + 0.5f, none = {0}, all = none + 1.0f, beyond = 1.0f - s;
    f32x16 y = none;
    unless_negative(&s, &y, &s);
    *x = all;
    unless_negative(&beyond, x, &y);
}

CPU_INLINE void hard_sigmoid_bwd_lanes(f32x16 *y, const f32x16 *dy)
{
    const u32x16 inside = (u32x16)(*y > 0.0f) & (u32x16)(*y < 1.0f);
    *y = (f32x16)((u32x16)(*dy * 0.16666667f) & inside);
}

CPU_INLINE void hard_swish_lanes(f32x16 *x)
{
    f32x16 s = *x;
    hard_sigmoid_lanes(&s);
    *x *= s;
}

CPU_INLINE void hard_swish_bwd_lanes(f32x16 *x, const f32x16 *dy)
{
    const f32x16 left = *x + 3.0f, right = 3.0f - *x, inside = *dy * (*x * 0.33333334f + 0.5f);
    f32x16 below = {0};
    unless_negative(&left, &below, &inside);
    *x = *dy;
    unless_negative(&right, x, &below);
}

CPU_INLINE void softplus_lanes(f32x16 *x)
{
    f32x16 e, above = {0};
    magnitude(x, &e);
    e = -e;
    exp_lanes(&e);
    log1p_lanes(&e);
    unless_negative(x, &above, x);
    *x = above + e;
}

CPU_INLINE void softplus_bwd_lanes(f32x16 *x, const f32x16 *dy)
{
    f32x16 s;
    sigmoid_of(x, &s);
    *x = *dy * s;
}

// tanh(ln(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2), and 1 less it; from e^-|x|.
CPU_INLINE void tanh_softplus_of(const f32x16 *x, f32x16 *t, f32x16 *rest)
{
    f32x16 e;
    magnitude(x, &e);
    e = -e;
    exp_lanes(&e);
    const f32x16 left = e * (e + 2.0f), over_left = 1.0f / (left + 2.0f);
    const f32x16 above = 1.0f + 2.0f * e, twice = 2.0f * e * e, over_right = 1.0f / (above + twice);
    const f32x16 right = above * over_right, right_rest = twice * over_right;
    *t = left * over_left;
    *rest = 2.0f * over_left;
    unless_negative(x, t, &right);
    unless_negative(x, rest, &right_rest);
}

CPU_INLINE void mish_lanes(f32x16 *x)
{
    f32x16 t, rest;
    tanh_softplus_of(x, &t, &rest);
    *x *= t;
}

CPU_INLINE void mish_bwd_lanes(f32x16 *x, const f32x16 *dy)
{
    f32x16 t, rest, s;
    tanh_softplus_of(x, &t, &rest);
    sigmoid_of(x, &s);
    *x = *dy * (t + *x * s * rest * (1.0f + t));
}

// ---- over ranges ------------------------------------------------------------------------------------------

// What is left of a range, in lanes of its own.
CPU_INLINE void take_tail(f32x16 *lanes, const float *from, int64_t count)
{
    *lanes = (f32x16){0};
    memcpy(lanes, from, (size_t)count * sizeof *from);
}

#define MAP(name)                                                                                            \
    CPU_HOT static void name##_range(const job *j, int64_t begin, int64_t end)                               \
    {                                                                                                        \
        int64_t i = begin;                                                                                   \
        for (; i + CPU_LANES <= end; i += CPU_LANES) {                                                       \
            f32x16 x = F32X16(j->a + i);                                                                     \
            name##_lanes(&x);                                                                                \
            F32X16W(j->y + i) = x;                                                                           \
        }                                                                                                    \
        if (i < end) {                                                                                       \
            f32x16 x;                                                                                        \
            take_tail(&x, j->a + i, end - i);                                                                \
            name##_lanes(&x);                                                                                \
            memcpy(j->y + i, &x, (size_t)(end - i) * sizeof(float));                                         \
        }                                                                                                    \
    }                                                                                                        \
    RUN(name)

#define MAP_GRADIENT(name)                                                                                   \
    CPU_HOT static void name##_range(const job *j, int64_t begin, int64_t end)                               \
    {                                                                                                        \
        int64_t i = begin;                                                                                   \
        for (; i + CPU_LANES <= end; i += CPU_LANES) {                                                       \
            f32x16 x = F32X16(j->a + i);                                                                     \
            const f32x16 dy = F32X16(j->b + i);                                                              \
            name##_lanes(&x, &dy);                                                                           \
            F32X16W(j->y + i) = x;                                                                           \
        }                                                                                                    \
        if (i < end) {                                                                                       \
            f32x16 x, dy;                                                                                    \
            take_tail(&x, j->a + i, end - i);                                                                \
            take_tail(&dy, j->b + i, end - i);                                                               \
            name##_lanes(&x, &dy);                                                                           \
            memcpy(j->y + i, &x, (size_t)(end - i) * sizeof(float));                                         \
        }                                                                                                    \
    }                                                                                                        \
    RUN(name)

#define RUN(name)                                                                                            \
    static void name##_body(const void *argument, int64_t begin, int64_t end, uint32_t worker)               \
    {                                                                                                        \
        (void)worker;                                                                                        \
        name##_range(argument, begin, end);                                                                  \
    }                                                                                                        \
    static void run_##name(const cpu_run *r)                                                                 \
    {                                                                                                        \
        run(r, name##_body);                                                                                 \
    }

static void run(const cpu_run *r, workers_body body)
{
    const job j = {r->in[0], r->query->in_count > 1 ? r->in[1] : NULL, r->out[0], (float)r->query->attr.rate};
    workers_for_pieces(r->device->workers, cpu_elements_of(&r->query->out[0]), GRAIN, body, &j);
}

MAP(gelu)
MAP(gelu_tanh)
MAP(silu)
MAP(sigmoid)
MAP(tanh)
MAP(hard_sigmoid)
MAP(hard_swish)
MAP(softplus)
MAP(mish)
MAP_GRADIENT(gelu_bwd)
MAP_GRADIENT(gelu_tanh_bwd)
MAP_GRADIENT(silu_bwd)
MAP_GRADIENT(sigmoid_bwd)
MAP_GRADIENT(tanh_bwd)
MAP_GRADIENT(hard_sigmoid_bwd)
MAP_GRADIENT(hard_swish_bwd)
MAP_GRADIENT(softplus_bwd)
MAP_GRADIENT(mish_bwd)

// ---- a slope below zero -----------------------------------------------------------------------------------

CPU_HOT static void leaky_range(const job *j, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        const float x = j->a[i], below = j->slope * x;
        j->y[i] = x > 0.0f ? x : below;
    }
}

CPU_HOT static void leaky_bwd_range(const job *j, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        const float dy = j->b[i], below = j->slope * dy;
        j->y[i] = j->a[i] > 0.0f ? dy : below;
    }
}

RUN(leaky)
RUN(leaky_bwd)

static bool is_by_tanh(const cpu_device *device, const op_query *q)
{
    (void)device;
    return (q->attr.flags & OP_FLAG_TANH) != 0;
}

const cpu_impl cpu_gelu = {.name = "lanes", .run = run_gelu};
const cpu_impl cpu_gelu_tanh = {.name = "lanes, tanh", .fits = is_by_tanh, .run = run_gelu_tanh};
const cpu_impl cpu_gelu_bwd = {.name = "lanes", .run = run_gelu_bwd};
const cpu_impl cpu_gelu_tanh_bwd = {.name = "lanes, tanh", .fits = is_by_tanh, .run = run_gelu_tanh_bwd};
const cpu_impl cpu_silu = {.name = "lanes", .run = run_silu};
const cpu_impl cpu_silu_bwd = {.name = "lanes", .run = run_silu_bwd};
const cpu_impl cpu_sigmoid = {.name = "lanes", .run = run_sigmoid};
const cpu_impl cpu_sigmoid_bwd = {.name = "lanes", .run = run_sigmoid_bwd};
const cpu_impl cpu_tanh = {.name = "lanes", .run = run_tanh};
const cpu_impl cpu_tanh_bwd = {.name = "lanes", .run = run_tanh_bwd};
const cpu_impl cpu_hard_sigmoid = {.name = "lanes", .run = run_hard_sigmoid};
const cpu_impl cpu_hard_sigmoid_bwd = {.name = "lanes", .run = run_hard_sigmoid_bwd};
const cpu_impl cpu_hard_swish = {.name = "lanes", .run = run_hard_swish};
const cpu_impl cpu_hard_swish_bwd = {.name = "lanes", .run = run_hard_swish_bwd};
const cpu_impl cpu_softplus = {.name = "lanes", .run = run_softplus};
const cpu_impl cpu_softplus_bwd = {.name = "lanes", .run = run_softplus_bwd};
const cpu_impl cpu_mish = {.name = "lanes", .run = run_mish};
const cpu_impl cpu_mish_bwd = {.name = "lanes", .run = run_mish_bwd};
const cpu_impl cpu_leaky_relu = {.name = "loops", .run = run_leaky};
const cpu_impl cpu_leaky_relu_bwd = {.name = "loops", .run = run_leaky_bwd};
