// SPDX-License-Identifier: Apache-2.0
#include "data/crc32c.h"

#include <pthread.h>
#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

enum { SLICES = 8 };
#define POLYNOMIAL UINT32_C(0x82f63b78) // reversed

static uint32_t table[SLICES][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void make_table(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t sum = byte;
        for (int bit = 0; bit < 8; bit++) {
            sum = sum >> 1 ^ ((sum & 1) != 0 ? POLYNOMIAL : 0);
        }
        table[0][byte] = sum;
    }
    for (uint32_t byte = 0; byte < 256; byte++) {
        for (int k = 1; k < SLICES; k++) {
            const uint32_t sum = table[k - 1][byte];
            table[k][byte] = sum >> 8 ^ table[0][sum & 255];
        }
    }
}

// Eight bytes at once (Kounavis and Berry, "A systematic approach to building high performance software-based CRC generators",
// 2005).
uint32_t crc32c_plain(const uint8_t *bytes, size_t count)
{
    uint32_t sum = UINT32_MAX;
    (void)pthread_once(&table_once, make_table);
    for (; count >= SLICES; count -= SLICES, bytes += SLICES) {
        const uint32_t low =
            sum ^ (bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24);
        sum = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^
              table[4][low >> 24] ^ table[3][bytes[4]] ^ table[2][bytes[5]] ^ table[1][bytes[6]] ^
              table[0][bytes[7]];
    }
    for (; count > 0; count--) {
        sum = sum >> 8 ^ table[0][(sum ^ *bytes++) & 255];
    }
    return ~sum;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t with_sse42(const uint8_t *bytes, size_t count)
{
    uint64_t sum = UINT32_MAX, word;
    for (; count >= sizeof word; count -= sizeof word, bytes += sizeof word) {
        memcpy(&word, bytes, sizeof word);
        sum = _mm_crc32_u64(sum, word);
    }
    for (; count > 0; count--) {
        sum = _mm_crc32_u8((uint32_t)sum, *bytes++);
    }
    return ~(uint32_t)sum;
}
#endif

uint32_t crc32c(const uint8_t *bytes, size_t count)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) {
        return with_sse42(bytes, count);
    }
#endif
    return crc32c_plain(bytes, count);
}

uint32_t crc32c_masked(const uint8_t *bytes, size_t count)
{
    const uint32_t sum = crc32c(bytes, count);
    return (sum >> 15 | sum << 17) + UINT32_C(0xa282ead8);
}
