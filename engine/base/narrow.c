// SPDX-License-Identifier: Apache-2.0
#include "base/narrow.h"

#include "base/half.h"

// Compiled once per instruction set, chosen when the program starts. Sanitizers get the one plain version, because
// resolvers run before their run time is up.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&     \
    !defined(__SANITIZE_THREAD__)
#define NARROW_HOT                                                                                           \
    __attribute__((optimize("O3"), target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define NARROW_HOT
#endif

NARROW_HOT static void all_to_f16(uint16_t *restrict to, const float *restrict from, uint64_t count)
{
    for (uint64_t k = 0; k < count; k++) {
        to[k] = f16_of_float(from[k]);
    }
}

NARROW_HOT static void all_to_bf16(uint16_t *restrict to, const float *restrict from, uint64_t count)
{
    for (uint64_t k = 0; k < count; k++) {
        to[k] = bf16_of_float(from[k]);
    }
}

void narrow_to_f16(uint16_t *to, const float *from, uint64_t count)
{
    all_to_f16(to, from, count);
}

void narrow_to_bf16(uint16_t *to, const float *from, uint64_t count)
{
    all_to_bf16(to, from, count);
}
