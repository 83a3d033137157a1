// SPDX-License-Identifier: Apache-2.0
// TensorFlow's best-fit allocator with coalescing, decision for decision (xla/tsl/framework/bfc_allocator.cc, as of
// June 2024: without the spatial partitions of 2026).
//
//   regions (one taken range each, by address)      chunks tile a region without gaps
//   ┌───────────────────────────────┐  ┌──────────────────┐
//   │ used │ free │ used │   free   │  │ used │   free    │   never two free neighbours; a region's edge is a wall
//   └───────────────────────────────┘  └──────────────────┘
//
//   round     to 256 B
//   find      the smallest free chunk that is large enough, the lowest address among equals
//   split     when the chunk has twice the bytes, or 128 MiB to spare (fragmentation_fraction: a share of the limit);
//             else the whole chunk is handed out
//   extend    by a region: 2 MiB, doubling (growth), or the whole limit at the first request; × 0.9 when refused
//   force     timestamps only: what waits is merged until something large enough comes of it
//   collect   wholly free regions go back when a request would fail otherwise, then extend once more
//   free      merges with the next chunk, then with the previous one
//
// A request that cannot be served fails at once; TensorFlow's ten seconds of waiting for another thread are a wrapper
// that is optional (memory/retry.h).
//
// With allocator_config.timestamped, what is freed gets a stamp from a counter and stays apart from its neighbours:
// code that queues work on a device may free a block before the device is through with it. A stamped chunk serves
// requests that name no stamp, and those whose freed_before is its stamp or a later one. Once the safe frontier is
// beyond a stamp, the next request merges the chunk as any other; merged chunks take the later stamp. That merging
// happens at the beginning of a request, also of one that then fails. Such a heap knows no ages: `since` is 0. Its
// queue takes 4 to 8 bytes a living block beside the 64 that every chunk may take.
#ifndef MEMORY_BFC_H
#define MEMORY_BFC_H

#include "memory/allocator.h"

HR_MUST_CHECK hr_status bfc_create(const allocator_config *config, backing *source, trace_bus *bus,
                                   allocator **out, hr_err *err);

// ---- with timestamps ------------------------------------------------------------------------------------------

// One counter may serve several allocators and queues of work beside them: its numbers order both.
typedef struct bfc_counter {
    uint64_t last; // starts at 0
} bfc_counter;

uint64_t bfc_counter_next(bfc_counter *counter); // 1, 2, 3 …

// Takes stamps from `counter`, borrowed until destroy, instead of one of its own. Before the first release.
void bfc_share_counter(allocator *a, bfc_counter *counter);
// What was freed before `stamp` is safe for everyone from now on. An earlier stamp than before changes nothing.
void bfc_set_safe_frontier(allocator *a, uint64_t stamp);

#endif
