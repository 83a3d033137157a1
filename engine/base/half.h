// SPDX-License-Identifier: Apache-2.0
// The two-byte float types: float16 (IEEE 754 binary16: largest 65504, smallest above zero 5.96e-8) and bfloat16
// (the upper half of a float32). Rounding is to the nearest, ties to even; what is too large becomes infinite.
#ifndef BASE_HALF_H
#define BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float_of_bf16(uint16_t half)
{
    return float_of_bits((uint32_t)half << 16);
}

static inline uint16_t bf16_of_float(float value)
{
    uint32_t bits = bits_of_float(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return (uint16_t)(bits >> 16 | 0x40u); // stays a NaN
    }
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static inline float float_of_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t magnitude = half & 0x7fffu;
    if (magnitude >= 0x7c00u) {
        return float_of_bits(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    }
    // Subnormals are multiples of 2^-24, taken as whole numbers: a denormal float may be treated as zero.
    float value = magnitude < 0x400u ? (float)(int32_t)magnitude * 0x1p-24f
                                     : float_of_bits((magnitude << 13) + 0x38000000u);
    return float_of_bits(sign | bits_of_float(value));
}

static inline uint16_t f16_of_float(float value)
{
    uint32_t bits = bits_of_float(value);
    uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        return (uint16_t)(sign | 0x7e00u);
    }
    if (magnitude >= 0x477ff000u) { // 65520 and above round to infinity
        return (uint16_t)(sign | 0x7c00u);
    }
    if (magnitude < 0x38800000u) { // subnormal: the addition rounds at the place of 2^-24
        float sum = float_of_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (bits_of_float(sum) - 0x3f000000u));
    }
    uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
    return (uint16_t)(sign | (rounded - 0x38000000u) >> 13);
}

#endif
