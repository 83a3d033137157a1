// SPDX-License-Identifier: Apache-2.0
// Smooth activations, sixteen elements at a time, in any layout of whole blocks. Every form is written so that an
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
    const job j = {r->in[0], r->query->in_count > 1 ? r->in[1] : NULL, r->out[0]};
    workers_for_pieces(r->device->workers, cpu_elements_of(&r->query->out[0]), GRAIN, body, &j);
}

MAP(gelu)
MAP(gelu_tanh)
MAP(silu)
MAP(sigmoid)
MAP(tanh)
MAP_GRADIENT(gelu_bwd)
MAP_GRADIENT(gelu_tanh_bwd)
MAP_GRADIENT(silu_bwd)
MAP_GRADIENT(sigmoid_bwd)
MAP_GRADIENT(tanh_bwd)

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
