// SPDX-License-Identifier: Apache-2.0
// Sixteen exponentials at once, to be inlined into CPU_HOT loops.
//
// x = n ln 2 + r with |r| <= ln 2 / 2, e^x = 2^n (1 + r + r² P(r)); P was fitted to the least relative error. At most
// 1 unit in the last place away for -87.3 <= x <= 1, 0 below (the result would be denormal), not-a-number stays.
// Softmax never asks for more than e^0.
#ifndef DEVICE_CPU_EXP_H
#define DEVICE_CPU_EXP_H

#include "simd.h"

typedef uint32_t u32x16 __attribute__((vector_size(64)));

CPU_INLINE void exp_lanes(f32x16 *x)
{
    // Adding this rounds to a whole number, which then stands in the lowest bits.
    const float rounder = 0x1.8p23f;
    const float ln2_high = 0x1.63p-1f,
                ln2_low = -0x1.bd0106p-13f; // the first ends in zeros: n times it is exact
    const f32x16 turns = *x * 0x1.715476p0f + rounder;
    const f32x16 n = turns - rounder;
    const f32x16 r = (*x - n * ln2_high) - n * ln2_low;
    f32x16 p = r * 0x1.6a242cp-10f + 0x1.1239e4p-7f;
    p = p * r + 0x1.5558f2p-5f;
    p = p * r + 0x1.555492p-3f;
    p = p * r + 0x1.fffffcp-2f;
    const u32x16 power = ((u32x16)turns << 23) + 0x3F800000u; // the bits of 2^n
    const f32x16 y = (p * (r * r) + r + 1.0f) * (f32x16)power;
    const i32x16 vanishes = *x < -0x1.5d58ap6f; // ln of the smallest normal number
    *x = (f32x16)((u32x16)y & ~(u32x16)vanishes);
}

#endif
