// SPDX-License-Identifier: Apache-2.0
#include "memory/caching_round.h"

static uint64_t round_to(uint64_t bytes, uint64_t step)
{
    return (bytes + step - 1) / step * step;
}

static unsigned log2_of(uint64_t n)
{
    return 63u - (unsigned)__builtin_clzll(n);
}

// Sizes below 1 MiB count as 1 MiB, those above 32 GiB as 32 GiB.
static uint32_t divisions_of(const caching_options *o, uint64_t bytes)
{
    enum { MIB_LOG2 = 20 };
    unsigned log2 = log2_of(bytes);
    unsigned at = log2 < MIB_LOG2 ? 0 : log2 - MIB_LOG2;
    return o->roundup_divisions[at < CACHING_ROUNDUP_SIZES ? at : CACHING_ROUNDUP_SIZES - 1];
}

uint64_t caching_round(const caching_options *o, uint64_t bytes)
{
    if (bytes < CACHING_BLOCK_BYTES) {
        return CACHING_BLOCK_BYTES;
    }
    uint32_t divisions = divisions_of(o, bytes);
    if (divisions <= 1 || bytes <= CACHING_BLOCK_BYTES * divisions) {
        return round_to(bytes, CACHING_BLOCK_BYTES);
    }
    // From one power of two to the next in equal steps, none of them below 512 bytes.
    return round_to(bytes, (UINT64_C(1) << log2_of(bytes)) >> log2_of(divisions));
}

uint64_t caching_segment_bytes(const caching_options *o, uint64_t rounded_bytes)
{
    return rounded_bytes <= CACHING_SMALL_BYTES ? CACHING_SMALL_SEGMENT
           : rounded_bytes < CACHING_OWN_BYTES  ? o->large_segment_bytes
                                                : round_to(rounded_bytes, CACHING_SEGMENT_STEP);
}
