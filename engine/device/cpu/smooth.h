// SPDX-License-Identifier: Apache-2.0
// Sixteen sigmoids or hyperbolic tangents at once, to be inlined into CPU_HOT loops.
#ifndef DEVICE_CPU_SMOOTH_H
#define DEVICE_CPU_SMOOTH_H

#include "exp.h"

CPU_INLINE void magnitude(const f32x16 *x, f32x16 *out)
{
    *out = (f32x16)((u32x16)*x & 0x7FFFFFFFu);
}

// *out = x < 0 ? *out : otherwise
CPU_INLINE void unless_negative(const f32x16 *x, f32x16 *out, const f32x16 *otherwise)
{
    const u32x16 negative = (u32x16)(*x < 0.0f);
    *out = (f32x16)(((u32x16)*out & negative) | ((u32x16)*otherwise & ~negative));
}

CPU_INLINE void sigmoid_of(const f32x16 *x, f32x16 *s)
{
    f32x16 e;
    magnitude(x, &e);
    e = -e;
    exp_lanes(&e);
    const f32x16 right = 1.0f / (1.0f + e);
    *s = e * right;
    unless_negative(x, s, &right);
}

// Near zero (1 − e^-2t) / (1 + e^-2t) would cancel: an odd polynomial there, within 1e-8.
CPU_INLINE void tanh_lanes(f32x16 *x)
{
    f32x16 t;
    magnitude(x, &t);
    f32x16 e = t * -2.0f;
    exp_lanes(&e);
    const f32x16 far = (1.0f - e) / (1.0f + e), square = t * t, beyond = t - 0.625f;
    f32x16 p = square * -0x1.76b008p-8f + 0x1.5257bap-6f;
    p = p * square - 0x1.b8446cp-5f;
    p = p * square + 0x1.11076ap-3f;
    p = p * square - 0x1.555534p-2f;
    f32x16 y = t + t * square * p;
    unless_negative(&beyond, &y, &far);
    *x = (f32x16)((u32x16)y | ((u32x16)*x & 0x80000000u));
}

// ln(1 + e) for 0 <= e <= 1, as 2 artanh(e / (2 + e)): the series to the seventh term, within 1e-8.
CPU_INLINE void log1p_lanes(f32x16 *e)
{
    const f32x16 t = *e / (2.0f + *e), square = t * t;
    f32x16 p = square * 0.15384616f + 0.18181819f;
    p = p * square + 0.22222222f;
    p = p * square + 0.2857143f;
    p = p * square + 0.4f;
    p = p * square + 0.6666667f;
    *e = t * (p * square + 2.0f);
}

#endif
