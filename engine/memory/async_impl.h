// SPDX-License-Identifier: Apache-2.0
// The pool's insides: chunks over mapped regions (async_pieces.c), requests (async.c).
#ifndef MEMORY_ASYNC_IMPL_H
#define MEMORY_ASYNC_IMPL_H

#include "base/vec.h"
#include "memory/allocator.h"
#include "memory/bins.h"
#include "memory/chunks.h"

enum { ASYNC_EVERYBODY = 0 }; // the owner of what all streams may use

// A run of mapped pieces. Chunks are linked by address through all regions.
typedef struct async_region {
    uint64_t address, bytes;
    uint32_t first;
} async_region;

// Streams that may use a free chunk: chunk.group is an index of these.
typedef struct async_owner {
    uint32_t stream; // of ASYNC_EVERYBODY: none
    bins free;
} async_owner;

typedef struct async_heap {
    allocator base;
    chunks chunks;
    uint32_t last;             // the highest chunk
    VEC(async_region) regions; // by address
    VEC(async_owner) owners;
    uint64_t origin, reserved_bytes;
    uint64_t piece_bytes, threshold_bytes;
} async_heap;

static inline bool async_is_free(const chunk *c)
{
    return c->allocation_id == 0;
}

static inline uint64_t async_end(const chunk *c)
{
    return c->address + c->size_bytes;
}

// Two chunks without a hole between them.
static inline bool async_touch(const async_heap *h, uint32_t low, uint32_t high)
{
    return low != CHUNK_NONE && high != CHUNK_NONE &&
           async_end(&h->chunks.records[low]) == h->chunks.records[high].address;
}

// Room in the books for two more chunks, one more region and one more allocation; false when host memory is short.
bool async_reserve(async_heap *h);

void async_shelve(async_heap *h, uint32_t id);   // into its owner's bins
void async_unshelve(async_heap *h, uint32_t id); // out of them
// Cuts `id` to `bytes`; the rest is a free chunk of the same owner, in its bins. Needs async_reserve.
uint32_t async_split(async_heap *h, uint32_t id, uint64_t bytes);
// Two that touch, neither in a bin, become the lower one.
void async_join(async_heap *h, uint32_t low, uint32_t high);
// Puts a free chunk into its bins, joined with free neighbours of its owner; the chunk it is part of now.
uint32_t async_settle(async_heap *h, uint32_t id);

// First chunk of the shortest run of neighbours that `owner` may use, of at least `bytes`.
uint32_t async_find_run(const async_heap *h, uint32_t owner, uint64_t bytes);
// Maps what is missing for a run of `bytes`, of which there is none yet; *run is its first chunk. OOM when limit,
// addresses or backing refuse: nothing has changed. Needs async_reserve.
hr_status async_grow(async_heap *h, uint32_t owner, uint64_t bytes, uint32_t *run);
// Unmaps free pieces until `keep_bytes` are mapped or none is free (or no host memory is, for the books).
void async_trim(async_heap *h, uint64_t keep_bytes);

#endif
