// SPDX-License-Identifier: Apache-2.0
#include "base/philox.h"

#include <string.h>

#include "base/hash.h"

__extension__ typedef unsigned __int128 wide; // the one 128-bit product

enum { PHILOX_ROUNDS = 10 };

philox_key philox_key_of(uint64_t seed, const char *purpose)
{
    uint64_t key = hash64(purpose, strlen(purpose), seed);
    return (philox_key){{(uint32_t)key, (uint32_t)(key >> 32)}};
}

void philox(philox_key key, uint64_t counter_low, uint64_t counter_high, uint32_t out[4])
{
    uint32_t x0 = (uint32_t)counter_low, x1 = (uint32_t)(counter_low >> 32);
    uint32_t x2 = (uint32_t)counter_high, x3 = (uint32_t)(counter_high >> 32);
    uint32_t k0 = key.word[0], k1 = key.word[1];
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        uint64_t p0 = UINT64_C(0xD2511F53) * x0;
        uint64_t p1 = UINT64_C(0xCD9E8D57) * x2;
        x0 = (uint32_t)(p1 >> 32) ^ x1 ^ k0;
        x1 = (uint32_t)p1;
        x2 = (uint32_t)(p0 >> 32) ^ x3 ^ k1;
        x3 = (uint32_t)p0;
        k0 += UINT32_C(0x9E3779B9);
        k1 += UINT32_C(0xBB67AE85);
    }
    out[0] = x0;
    out[1] = x1;
    out[2] = x2;
    out[3] = x3;
}

float philox_uniform(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

uint64_t philox_below(uint32_t high, uint32_t low, uint64_t n)
{
    return (uint64_t)(((wide)((uint64_t)high << 32 | low) * n) >> 64);
}
