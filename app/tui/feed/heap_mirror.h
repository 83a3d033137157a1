// SPDX-License-Identifier: Apache-2.0
// A heap, rebuilt from the events of its allocator alone: regions that came, blocks that were handed out, holes between
// them. Every change can be taken back, so that a heap walks forwards and backwards through a step.
//
//   region ├──block──┬─hole─┬──block──┬──block──┬───hole───┤     region ├──block──┤
//
// Events are not trusted. What contradicts the heap as it is (a block in no region, or over another one; a release of
// what is not allocated; a region that goes while something lives in it) is refused and changes nothing, so that regions and
// blocks are always disjoint, and sums cannot wrap. Host memory is bounded by HEAP_BLOCKS_MAX and HEAP_REGIONS_MAX.
//
// Blocks lie in pages, sorted and at least one to a page, so that a heap of a million takes a change in microseconds.
#ifndef TUI_HEAP_MIRROR_H
#define TUI_HEAP_MIRROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/event.h"
#include "headroom/session.h"

enum { HEAP_BLOCKS_MAX = 1 << 21, HEAP_REGIONS_MAX = 65536, HEAP_PAGE_BLOCKS = 512 };

typedef struct heap_region {
    uint64_t address, bytes;
} heap_region;

typedef struct heap_block {
    uint64_t address, bytes, requested_bytes;
    uint32_t tensor;  // HR_NO_ID: unknown
    uint8_t category; // hr_category, or HR_CATEGORY_COUNT
    bool pending;     // freed, but not yet to be had (of a snapshot)
} heap_block;

typedef struct heap_page {
    heap_block *blocks; // owned; room for HEAP_PAGE_BLOCKS
    size_t count;
} heap_page;

// A block's place, or the one behind all of them: page_count, 0.
typedef struct heap_spot {
    size_t page, at;
} heap_spot;

// Starts zeroed. Regions and pages are sorted by address.
typedef struct heap_mirror {
    heap_region *regions; // owned
    heap_page *pages;     // owned
    size_t region_count, region_room, page_count, page_room, block_count;
    uint64_t pool_bytes, in_use_bytes, requested_bytes;
    uint64_t category_bytes[HR_CATEGORY_COUNT + 1]; // in use; the last one: unknown
    bool is_full; // the last block or region was refused because there are as many as there may be
    uint64_t largest_free_bytes; // once it is measured
    bool is_measured;
    bool joins; // regions that touch are one (async, expandable segments); else each stays what came at once
} heap_mirror;

// One event, with what it takes to undo it.
typedef struct heap_change {
    uint64_t address, requested_bytes;
    uint64_t bytes; // of the chunk or region; of an OOM: largest_free_bytes
    uint32_t tensor, instr;
    uint32_t seq;                  // its lower half
    uint8_t kind, category, phase; // hr_event_kind: ALLOC, FREE, GROW, SHRINK, OOM
    bool pending;
} heap_change;

_Static_assert(sizeof(heap_change) == 40, "a step of 16,384 changes is 640 KiB");

void heap_mirror_deinit(heap_mirror *m);
void heap_mirror_clear(heap_mirror *m);                          // keeps its room and `joins`
bool heap_mirror_copy(heap_mirror *to, const heap_mirror *from); // false: no host memory; `to` is empty then
bool heap_mirror_equal(const heap_mirror *a, const heap_mirror *b); // the same chunks in the same regions

heap_change heap_change_of(const hr_event *event);
// False: the change contradicts the heap, or host memory is short; nothing has changed. Completes a FREE with what was
// known of its block. An OOM changes nothing.
bool heap_mirror_apply(heap_mirror *m, heap_change *c);
// Takes the last change back that was applied. False: it was not that, or host memory is short.
bool heap_mirror_undo(heap_mirror *m, const heap_change *c);
// Makes room for a change that contradicts the heap, where the heap must be what is stale: blocks and regions that lie
// where it puts its own go. Cannot be undone.
void heap_mirror_yield(heap_mirror *m, const heap_change *c);
// The heap of a snapshot. False: it contradicts itself, is too large, or host memory is short; m is empty then.
bool heap_mirror_restore(heap_mirror *m, const hr_session_heap *heap);

// ---- looking at it --------------------------------------------------------------------------------------------

// A block, or the hole between two.
typedef struct heap_piece {
    uint64_t address, bytes;
    const heap_block *block; // NULL: a hole
    size_t region;
} heap_piece;

// Pieces tile the regions. Begin with a zeroed walk; false behind the last piece.
typedef struct heap_walk {
    size_t region;
    heap_spot block;
    uint64_t offset; // in the region
} heap_walk;
bool heap_mirror_next(const heap_mirror *m, heap_walk *walk, heap_piece *piece);
bool heap_mirror_at(const heap_mirror *m, uint64_t address,
                    heap_piece *piece);                  // the piece that holds the address
uint64_t heap_mirror_largest_free(const heap_mirror *m); // 0 when nothing is free
void heap_mirror_measure(heap_mirror *m); // so that it, and fragmentation, are known until the next change
double
heap_mirror_fragmentation(const heap_mirror *m); // 1 − largest_free / (pool − in_use); 0: nothing is free

#endif
