// SPDX-License-Identifier: Apache-2.0
// Inside of the best-fit allocator, shared by bfc.c (requests), bfc_chunks.c (splitting, joining), bfc_regions.c
// (growing, collecting) and bfc_stamps.c (timestamps).
#ifndef MEMORY_BFC_IMPL_H
#define MEMORY_BFC_IMPL_H

#include "base/vec.h"
#include "memory/bfc.h"
#include "memory/bins.h"
#include "memory/chunks.h"

#define BFC_ROUNDING_BYTES ((uint64_t)BIN_MIN_BYTES)

// Its first chunk is the same record for the region's whole life: a split keeps the low part in the record, a merge
// the lower record.
typedef struct bfc_region {
    uint64_t address, bytes;
    uint32_t first;
} bfc_region;

typedef struct bfc {
    allocator base;
    chunks chunks;
    bins bins;
    VEC(bfc_region) regions; // by address
    uint64_t next_region_bytes;
    uint64_t spare_bytes; // a rest of so many is split off even when it is less than the request
    bool garbage_collection;
    // With timestamps, a free chunk's `since` is its stamp, 0 once it is safe.
    bool timestamped;
    bfc_counter *counter; // own_counter, or borrowed
    bfc_counter own_counter;
    uint64_t safe_frontier;
    VEC(uint32_t) waiting; // records in the order they were freed; some are used again, or gone, by now
} bfc;

static inline bfc *bfc_of(allocator *a)
{
    return (bfc *)a;
}

static inline const bfc *bfc_of_const(const allocator *a)
{
    return (const bfc *)a;
}

static inline uint64_t bfc_round_up(uint64_t bytes)
{
    return (bytes + BFC_ROUNDING_BYTES - 1) & ~(BFC_ROUNDING_BYTES - 1);
}

static inline uint64_t bfc_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline bool bfc_is_free(const chunk *c)
{
    return c->allocation_id == 0;
}

// ---- bfc_chunks.c ---------------------------------------------------------------------------------------------

// Cuts `id`, which is in no bin, to `bytes`; the rest becomes a free chunk behind it.
void bfc_split(bfc *b, uint32_t id, uint64_t bytes);
// Joins a free chunk that is in no bin with its free neighbours, the next one first, then the previous one. What has
// a stamp is joined only by force. The chunk that remains, in no bin.
uint32_t bfc_coalesce(bfc *b, uint32_t id, bool by_force);
// The record is free for another chunk; until then a stale number finds it in use.
void bfc_drop(bfc *b, uint32_t id);

// ---- bfc_regions.c --------------------------------------------------------------------------------------------

// Grows the pool so that a chunk of `rounded_bytes` is free. OOM when limit or backing do not allow it.
hr_status bfc_extend(bfc *b, uint64_t rounded_bytes);
// Gives all wholly free regions back when that makes room for `rounded_bytes`; false when it would not.
bool bfc_collect(bfc *b, uint64_t rounded_bytes);

// ---- bfc_stamps.c ---------------------------------------------------------------------------------------------

// Room to remember one more release. False when host memory is short.
bool bfc_reserve_waiting(bfc *b);
// A chunk that was just freed, in no bin: stamps it and lets it wait, in its bin.
void bfc_let_wait(bfc *b, uint32_t id);
void bfc_merge_safe(bfc *b);
// Merges what waits, safe or not, until a chunk of `rounded_bytes` comes of it; false when none does.
bool bfc_merge_by_force(bfc *b, uint64_t rounded_bytes);

#endif
