// SPDX-License-Identifier: Apache-2.0
// Two-byte numbers to float32 in vectors, the bits of base/half.h. To be inlined into CPU_HOT loops.
#ifndef DEVICE_CPU_WIDEN_H
#define DEVICE_CPU_WIDEN_H

#include <string.h>

#include "base/half.h"
#include "ops/op.h"
#include "simd.h"

// The bits of base/half.h, `lanes` at a time.
#define WIDEN_LANES(lanes)                                                                                   \
    typedef uint16_t halves_##lanes __attribute__((vector_size(2 * (lanes)), aligned(2), may_alias));        \
    typedef int32_t bits_##lanes __attribute__((vector_size(4 * (lanes))));                                  \
    typedef float floats_##lanes __attribute__((vector_size(4 * (lanes)), aligned(4), may_alias));           \
    CPU_INLINE void widen_##lanes(float *to, const uint16_t *from, const hr_dtype type)                      \
    {                                                                                                        \
        const bits_##lanes half = __builtin_convertvector(*(const halves_##lanes *)from, bits_##lanes);      \
        const bits_##lanes sign = (half & 0x8000) << 16, magnitude = half & 0x7fff;                          \
        const bits_##lanes is_small = magnitude<0x400, is_strange = magnitude> 0x7bff;                       \
        const bits_##lanes normal = (magnitude << 13) + 0x38000000 + (is_strange & 0x38000000);              \
        const bits_##lanes small =                                                                           \
            (bits_##lanes)(__builtin_convertvector(magnitude, floats_##lanes) * 0x1p-24F);                   \
        const bits_##lanes f16 = sign | (small & is_small) | (normal & ~is_small);                           \
        *(floats_##lanes *)to = (floats_##lanes)(type == HR_F16 ? f16 : half << 16);                         \
    }
WIDEN_LANES(16)
WIDEN_LANES(8)
WIDEN_LANES(4)

// What no vector is filled with begins in the vector before it.
CPU_INLINE void widen_run(float *restrict to, const void *data, int64_t at, int64_t count,
                          const hr_dtype type)
{
    const uint16_t *restrict from = (const uint16_t *)data + at;
    if (type == HR_F32) {
        memcpy(to, (const float *)data + at, (size_t)count * sizeof *to);
    } else if (count >= 16) {
        for (int64_t i = 0; i + 16 <= count; i += 16) {
            widen_16(to + i, from + i, type);
        }
        widen_16(to + count - 16, from + count - 16, type);
    } else if (count >= 8) {
        widen_8(to, from, type);
        widen_8(to + count - 8, from + count - 8, type);
    } else if (count >= 4) {
        widen_4(to, from, type);
        widen_4(to + count - 4, from + count - 4, type);
    } else {
        for (int64_t i = 0; i < count; i++) {
            to[i] = type == HR_F16 ? float_of_f16(from[i]) : float_of_bf16(from[i]);
        }
    }
}

#endif
