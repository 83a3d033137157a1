// SPDX-License-Identifier: Apache-2.0
// TensorFlow's best-fit allocator with coalescing, decision for decision (xla/tsl/framework/bfc_allocator.cc, as of
// June 2024: no timestamps, no spatial partitions).
//
//   regions (one taken range each, by address)      chunks tile a region without gaps
//   ┌───────────────────────────────┐  ┌──────────────────┐
//   │ used │ free │ used │   free   │  │ used │   free    │   never two free neighbours; a region's edge is a wall
//   └───────────────────────────────┘  └──────────────────┘
//
//   round     to 256 B
//   find      the smallest free chunk that is large enough, the lowest address among equals
//   split     when the chunk has twice the bytes, or 128 MiB to spare; else the whole chunk is handed out
//   extend    by a region: 2 MiB, doubling (growth), or the whole limit at the first request; × 0.9 when refused
//   collect   wholly free regions go back when a request would fail otherwise, then extend once more
//   free      merges with the next chunk, then with the previous one
//
// A request that cannot be served fails at once: TensorFlow's ten seconds of waiting for another thread are left out.
#ifndef MEMORY_BFC_H
#define MEMORY_BFC_H

#include "memory/allocator.h"

HR_MUST_CHECK hr_status bfc_create(const allocator_config *config, backing *source, trace_bus *bus,
                                   allocator **out, hr_err *err);
#endif
