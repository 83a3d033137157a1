// SPDX-License-Identifier: Apache-2.0
// The chunks of a heap: records in one growing array, linked to their neighbours by address, and found by the
// address of an allocation. 48 bytes a record and at most 8 a bucket: below 64 per chunk with the array's slack.
//
// A record is known by its index; pointers are good until the next chunks_reserve.
#ifndef MEMORY_CHUNKS_H
#define MEMORY_CHUNKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHUNK_NONE UINT32_MAX

typedef struct chunk {
    uint64_t address, size_bytes;
    union {
        uint64_t requested_bytes; // in use
        struct {                  // free. Write them through chunk_set_free
            uint64_t since : 40;  // requests served when it became free; of merged ones the latest
            uint64_t order : 24;  // among chunks of one size in a tree: this before the address
        };
    };
    uint64_t allocation_id : 40; // 0: free. Write it through chunk_number
    uint64_t group : 24;         // the allocator's own: a region, a pool
    uint32_t prev, next;         // neighbours by address in the same region; CHUNK_NONE at its ends
    union {
        struct {
            uint32_t left, right; // while free: smaller and larger chunks of its bin
        };
        struct {
            uint32_t tensor, chained; // in use: the tag, and the next of its bucket
        };
    };
} chunk;

static inline void chunk_number(chunk *c, uint64_t allocation_id)
{
    c->allocation_id = allocation_id & ((UINT64_C(1) << 40) - 1);
}

static inline void chunk_assign(chunk *c, uint32_t group)
{
    c->group = group & ((UINT32_C(1) << 24) - 1);
}

enum { CHUNK_ORDERS = 1 << 24 };

static inline void chunk_set_free(chunk *c, uint64_t since, uint32_t order)
{
    c->since = since & ((UINT64_C(1) << 40) - 1);
    c->order = order & (CHUNK_ORDERS - 1);
}

_Static_assert(sizeof(chunk) == 48, "metadata is at most 64 bytes a chunk");

// Starts zeroed.
typedef struct chunks {
    chunk *records;
    uint32_t capacity;
    uint32_t used;  // records[used..) were never taken
    uint32_t spare; // 1 + first of the released records, linked by `next`; 0: none
    uint32_t spare_count;
    uint32_t *buckets; // first chunk of each, by address; CHUNK_NONE when empty
    uint32_t bucket_bits;
    uint32_t indexed; // chunks in the buckets
} chunks;

void chunks_deinit(chunks *c);

// Makes room for `fresh` more records and one more indexed address, so that what follows cannot fail. False when
// host memory is short; nothing has changed then.
bool chunks_reserve(chunks *c, uint32_t fresh);
// A record out of the room that was reserved. The caller fills it.
uint32_t chunks_add(chunks *c);
void chunks_release(chunks *c, uint32_t id);

// Finding an allocation by its address: expected O(1).
void chunks_index(chunks *c, uint32_t id);
uint32_t chunks_unindex(chunks *c, uint64_t address);    // its chunk, CHUNK_NONE when there is none
uint32_t chunks_find(const chunks *c, uint64_t address); // the same, and it stays indexed

// Host bytes behind all of this.
size_t chunks_metadata_bytes(const chunks *c);

#endif
