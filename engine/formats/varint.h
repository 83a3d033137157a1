// SPDX-License-Identifier: Apache-2.0
// Numbers in as many bytes as they need: seven bits each, the lowest first, the eighth says that more follow (Protocol
// Buffers' varints). Signed ones are folded, so that small ones of either sign are short.
#ifndef FORMATS_VARINT_H
#define FORMATS_VARINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VARINT_MAX = 10 }; // bytes of the longest

typedef struct byte_span {
    const uint8_t *at, *end;
} byte_span;

static inline size_t varint_put(uint8_t *to, uint64_t value)
{
    size_t count = 0;
    for (; value >= 0x80; value >>= 7) {
        to[count++] = (uint8_t)(value | 0x80);
    }
    to[count++] = (uint8_t)value;
    return count;
}

// Takes the number at the front. False, with nothing taken, when the bytes end within it or it has more than 64 bits.
static inline bool varint_take(byte_span *s, uint64_t *out)
{
    uint64_t value = 0;
    const uint8_t *at = s->at;
    for (unsigned shift = 0; shift < 64 && at < s->end; shift += 7) {
        const uint8_t byte = *at++;
        if (shift == 63 && byte > 1) {
            return false;
        }
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            s->at = at;
            *out = value;
            return true;
        }
    }
    return false;
}

static inline uint64_t varint_fold(uint64_t difference) // of two numbers, modulo 2^64
{
    return difference << 1 ^ (difference >> 63 != 0 ? UINT64_MAX : 0);
}

static inline uint64_t varint_unfold(uint64_t folded)
{
    return folded >> 1 ^ ((folded & 1) != 0 ? UINT64_MAX : 0);
}

#endif
