// SPDX-License-Identifier: Apache-2.0
// What the free memory of a snapshot is worth: its holes and what pins each of them, and what would have to go for a
// request to find room. Pure functions of a snapshot.
//
//   region ├──used──┬─free─┬─used─┬─free─┬──────used──────┬─free─┤
//            below   hole    above   hole                   hole
//                   └──── joined ─────┘      when `above` of the first hole, `below` of the second, is freed
#ifndef EVENTS_HEAP_HOLES_H
#define EVENTS_HEAP_HOLES_H

#include "headroom/status.h"

#include "base/vec.h"
#include "events/heap.h"

// What a hole ends at: a chunk in use (an index of the snapshot's chunks), or HR_NO_ID: the end of its region.
typedef struct heap_pin {
    uint32_t chunk;
    uint64_t joined_bytes; // the hole that would be there if it were freed; at a region's end the hole itself
} heap_pin;

// A run of free chunks in one region. Usually one chunk; several where they wait for a stream or a stamp before they
// are joined.
typedef struct heap_hole {
    uint64_t address, bytes;
    uint32_t first, count; // chunks
    heap_pin below, above;
} heap_hole;

typedef struct heap_holes {
    VEC(heap_hole) list; // the largest first, the lower index first among equals
    uint64_t bytes;      // of all of them
} heap_holes;

// The caller's to deinit. NOMEM when host memory is short: *out is empty then.
HR_MUST_CHECK hr_status heap_holes_of(const heap_snapshot *p, heap_holes *out, hr_err *err);
void heap_holes_deinit(heap_holes *holes);

// The hole that freeing one chunk in use would leave, with the holes on both of its sides.
uint64_t heap_joined_bytes(const heap_snapshot *p, uint32_t chunk);

// The last request that the snapshot knows of, and the requests since a chunk became what it is; HEAP_NO_AGE where the
// snapshot does not know.
#define HEAP_NO_AGE UINT64_MAX
uint64_t heap_now(const heap_snapshot *p);
uint64_t heap_age(const heap_chunk *c, uint64_t now);

// Neighbouring chunks of one region that together have room for a request once those in use among them are gone.
typedef struct heap_window {
    bool found;
    uint32_t first, count;      // chunks; both ends are needed
    uint64_t bytes, used_bytes; // of all of them, and of those in use
    uint32_t used_chunks;
} heap_window;

// May this chunk be part of a window? One that may not (a weight, a region of another pool) parts the heap.
typedef bool (*heap_chooser)(void *context, const heap_chunk *chunk);

// The window with the fewest bytes in use; then of the fewest chunks in use, then the shortest, then the lowest.
// `may_go` NULL: every chunk may. O(chunks).
heap_window heap_cheapest_window(const heap_snapshot *p, uint64_t bytes, heap_chooser may_go, void *context);

#endif
