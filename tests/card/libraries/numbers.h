// SPDX-License-Identifier: Apache-2.0
// The numbers of the emulated libraries: what lies in memory, read and written as double. Rounding is to the nearest,
// ties to even, as the card's.
#ifndef CARD_LIBRARIES_NUMBERS_H
#define CARD_LIBRARIES_NUMBERS_H

#include <stdint.h>
#include <string.h>

#include "base/half.h"

typedef enum number {
    NUMBER_NONE,
    NUMBER_F32,
    NUMBER_F16,
    NUMBER_BF16,
    NUMBER_I32,
    NUMBER_U8,
    NUMBER_I64,
    NUMBER_I8 // the last: which engines the emulated cuDNN has is drawn of these
} number;

static inline uint64_t number_bytes(number type)
{
    return type == NUMBER_I64                         ? 8
           : type == NUMBER_F32 || type == NUMBER_I32 ? 4
           : type == NUMBER_U8 || type == NUMBER_I8   ? 1
                                                      : 2;
}

static inline double number_read(number type, const void *base, int64_t index)
{
    const unsigned char *at = (const unsigned char *)base + (uint64_t)index * number_bytes(type);
    uint16_t half = 0;
    float single = 0;
    int32_t whole = 0;
    switch ((int)type) {
    case NUMBER_I64:
        return 0.0; // seeds are no numbers: who wants one reads all its bits
    case NUMBER_F32:
        memcpy(&single, at, sizeof single);
        return (double)single;
    case NUMBER_I32:
        memcpy(&whole, at, sizeof whole);
        return whole;
    case NUMBER_U8:
        return *at;
    case NUMBER_I8:
        return (int8_t)*at;
    default:
        memcpy(&half, at, sizeof half);
        return (double)(type == NUMBER_F16 ? float_of_f16(half) : float_of_bf16(half));
    }
}

static inline void number_write(number type, void *base, int64_t index, double value)
{
    unsigned char *at = (unsigned char *)base + (uint64_t)index * number_bytes(type);
    const float single = (float)value;
    const int32_t whole = type == NUMBER_I32 ? (int32_t)value : 0;
    const uint16_t half = type == NUMBER_F16    ? f16_of_float(single)
                          : type == NUMBER_BF16 ? bf16_of_float(single)
                                                : (uint16_t)0;
    switch ((int)type) {
    case NUMBER_F32:
        memcpy(at, &single, sizeof single);
        break;
    case NUMBER_I32:
        memcpy(at, &whole, sizeof whole);
        break;
    case NUMBER_U8:
        *at = (unsigned char)(value != 0 ? value : 0);
        break;
    default:
        memcpy(at, &half, sizeof half);
    }
}

// float32 with ten bits of mantissa: what tensor cores make of float32 operands in TF32.
static inline double number_tf32(double value)
{
    const uint32_t bits = bits_of_float((float)value);
    if ((bits & 0x7f800000u) == 0x7f800000u) {
        return value;
    }
    return (double)float_of_bits((bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu);
}

// Not a number in every float type: what a workspace is filled with, so that nothing else may lie there.
enum { NUMBER_RUBBISH = 0xff };

#endif
