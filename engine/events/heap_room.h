// SPDX-License-Identifier: Apache-2.0
// What a heap had for a request that it refused: how much was free, how much of it in one piece, what other streams
// kept from it, and which neighbours stood in the way. Facts of one snapshot; causes and sentences are made of them
// elsewhere (insight/diagnose.h).
#ifndef EVENTS_HEAP_ROOM_H
#define EVENTS_HEAP_ROOM_H

#include "events/heap_holes.h"

enum { HEAP_ROOM_HOLES = 8 };

// What it would be if everything that was picked were free.
typedef struct heap_without {
    uint64_t held_bytes, waste_bytes; // by that, and of it beyond what was asked for
    uint64_t hole_bytes;              // the largest hole that the request could use then
} heap_without;

typedef struct heap_room {
    bool any;               // there is a request and a heap
    uint64_t needed_bytes;  // the request as its allocator rounds it
    uint64_t limit_bytes;   // the pool where the snapshot does not know the limit
    uint64_t free_bytes;    // the limit less what is in use, pending memory counted as free
    uint64_t waste_bytes;   // in use beyond what was asked for
    uint64_t hole_bytes;    // the largest hole that the request may use
    uint64_t ungrown_bytes; // left to take from the device below the limit
    uint64_t driver_bytes;  // what the device was asked for in the end; 0: nothing, or nobody says
    uint64_t largest_bytes; // the larger of hole and ungrown
    uint64_t
        elsewhere_bytes; // the largest piece that it may not, though nothing uses it: another stream's, or pending
    uint32_t elsewhere_stream;       // whose
    uint64_t holes[HEAP_ROOM_HOLES]; // the largest runs of free chunks, largest first
    uint32_t hole_count;             // of all of them; 0 also when host memory was short
    heap_window window;              // the cheapest neighbours to free for it
    heap_without retained;           // had nothing been; 0: nothing is, or nobody asked
} heap_room;

// Memory that a request on `stream` for `bytes` may have. PyTorch's blocks are of one stream and, up to 1 MiB or
// beyond, of one pool; elsewhere what waits for a stream is that stream's.
bool heap_may_use(const heap_chunk *c, uint64_t bytes, uint32_t stream);
heap_without heap_without_them(const heap_snapshot *p, heap_chooser gone, void *context);
// Of the snapshot's refusal. `may_go` as in heap_cheapest_window: what could be freed for it at all.
heap_room heap_room_of(const heap_snapshot *p, heap_chooser may_go, void *context);

#endif
