// SPDX-License-Identifier: Apache-2.0
// torch.cuda.memory_stats: its counters, kept as PyTorch keeps them.
#ifndef MEMORY_CACHING_STATS_H
#define MEMORY_CACHING_STATS_H

#include <stdint.h>

#include "memory/allocator.h"

// X(NAME, "family"): counts and sums that are kept for all pools, the large and the small one.
#define CACHING_FAMILY_MAP(X)                                                                                \
    X(ACTIVE, "active") /* blocks that are used or pending */                                                \
    X(ACTIVE_BYTES, "active_bytes")                                                                          \
    X(ALLOCATED_BYTES, "allocated_bytes") /* of used blocks */                                               \
    X(ALLOCATION, "allocation")                                                                              \
    X(INACTIVE_SPLIT, "inactive_split") /* free blocks that cannot go back: a neighbour is not free */       \
    X(INACTIVE_SPLIT_BYTES, "inactive_split_bytes")                                                          \
    X(REQUESTED_BYTES, "requested_bytes") /* of active blocks */                                             \
    X(RESERVED_BYTES, "reserved_bytes")   /* what the driver gave */                                         \
    X(SEGMENT, "segment")

typedef enum caching_family {
#define X(name, text) CACHING_##name,
    CACHING_FAMILY_MAP(X)
#undef X
        CACHING_FAMILIES
} caching_family;

typedef struct caching_stat {
    uint64_t current, peak, freed; // allocated = current + freed
} caching_stat;

enum { CACHING_STAT_POOLS = 2 }; // one for each caching_pool

typedef struct caching_stats {
    caching_stat family[CACHING_FAMILIES][CACHING_STAT_POOLS];
    uint64_t peak[CACHING_FAMILIES]; // of both pools together
    caching_stat oversize_allocations, oversize_segments;
    uint64_t alloc_retries, device_allocs, device_frees, oom_rejections, ooms, synchronizations;
} caching_stats;

static inline void caching_stat_raise(caching_stat *s, uint64_t amount)
{
    s->current += amount;
    s->peak = s->current > s->peak ? s->current : s->peak;
}

static inline void caching_stat_lower(caching_stat *s, uint64_t amount)
{
    s->current -= amount;
    s->freed += amount;
}

static inline void caching_raise(caching_stats *s, caching_family family, unsigned pool, uint64_t amount)
{
    caching_stat *of = s->family[family];
    caching_stat_raise(&of[pool], amount);
    const uint64_t both = of[0].current + of[1].current;
    s->peak[family] = both > s->peak[family] ? both : s->peak[family];
}

static inline void caching_lower(caching_stats *s, caching_family family, unsigned pool, uint64_t amount)
{
    caching_stat_lower(&s->family[family][pool], amount);
}

// Says them in alphabetical order, as torch.cuda.memory_stats does: "active.all.allocated", … max_split_size is
// UINT64_MAX (PyTorch's −1) when there is none.
void caching_say_stats(const caching_stats *s, uint64_t max_split_bytes, allocator_say say, void *context);

#endif
