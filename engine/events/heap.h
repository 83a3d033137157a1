// SPDX-License-Identifier: Apache-2.0
// A heap as a snapshot: every chunk of every region at one instant, whoever drew it: an allocator of ours
// (memory/heap_snapshot.h), a PyTorch snapshot, a TensorFlow log. Dumps, heap maps and diagnosis read snapshots.
#ifndef EVENTS_HEAP_H
#define EVENTS_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/event.h"

#include "base/intern.h"
#include "base/vec.h"

// Everywhere: requested ≤ in_use ≤ pool ≤ limit. A limit of 0 in a snapshot from a file: the file does not say.
typedef struct heap_counters {
    uint64_t requested_bytes, in_use_bytes, pool_bytes, limit_bytes;
    uint64_t peak_in_use_bytes, peak_pool_bytes, peak_requested_bytes;
    uint64_t largest_allocation_bytes;
    uint64_t largest_free_bytes; // 0 when nothing is free in the pool
    uint64_t allocations;        // served since creation or the last clear
    double fragmentation;        // 1 − largest_free / (pool − in_use); 0 when nothing is free
} heap_counters;

// What a region is to its allocator.
#define HEAP_REGION_MAP(X)                                                                                   \
    X(PLAIN, "plain")                                                                                        \
    X(SMALL, "small")           /* caching: of the pool of small blocks */                                   \
    X(LARGE, "large")           /* caching: of the pool of large blocks */                                   \
    X(EXPANDABLE, "expandable") /* caching: a mapped run of an expandable segment */

typedef enum heap_region_kind {
#define X(name, text) HEAP_REGION_##name,
    HEAP_REGION_MAP(X)
#undef X
        HEAP_REGION_KINDS
} heap_region_kind;

// One chunk. Chunks tile their region without gaps.
typedef struct heap_chunk {
    uint64_t address, size_bytes, requested_bytes; // requested 0 when free
    uint64_t region_address, region_bytes;
    uint64_t allocation_id; // 1, 2, 3 … in the order of serving; 0 when free, or where a file does not say
    uint64_t since;         // requests served when it became what it is; 0 where a file does not say
    uint64_t freed_at;      // bfc with timestamps, free and not yet safe for all: its stamp; else 0
    uint32_t tensor;        // tag of the allocation (in snapshots from files: of `names`), HR_NO_ID when free
    uint32_t stream;
    uint32_t handle; // its number in the allocator's table, as TensorFlow's dump prints it; HR_NO_ID: none
    uint8_t region_kind; // heap_region_kind
    bool in_use;         // not to be had: used, or pending
    bool pending;        // freed, but a stream has not got there yet
} heap_chunk;

typedef bool (*heap_visitor)(void *context, const heap_chunk *chunk); // false stops the walk

// The request that could not be served.
typedef struct heap_refusal {
    bool any;
    uint64_t requested_bytes;
    uint64_t rounded_bytes; // as the allocator rounds it
    uint64_t driver_bytes;  // what was asked of the driver in the end; 0: nothing
    uint32_t tensor, stream;
    bool recorded;              // a driver refused, not numbers: what the file is of
    bool told;                  // and said how much it had:
    uint64_t device_free_bytes; // of the whole device
    uint64_t device_bytes;      // the whole device; 0: nobody says
} heap_refusal;

// Starts zeroed.
typedef struct heap_snapshot {
    char source[48]; // "bfc", "GPU_0_bfc"
    heap_counters counters;
    uint64_t next_region_bytes; // bfc: what it would ask the driver for next; 0 where there is no such thing
    VEC(heap_chunk) chunks;     // by region, by address
    intern names;               // of tensors, where the snapshot comes from a file; else empty
    heap_refusal refusal;
    uint32_t damaged_regions; // of a file that was cut: regions of which it does not show every chunk
    uint64_t missing_bytes;   // of these, as far as the file says how large they were; not in the pool here
} heap_snapshot;

void heap_snapshot_deinit(heap_snapshot *p);
// Recounts requested, in_use, pool, largest_free, fragmentation from the chunks, and raises the peaks to them.
void heap_snapshot_count(heap_snapshot *p);

#endif
