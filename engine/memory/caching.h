// SPDX-License-Identifier: Apache-2.0
// PyTorch's caching allocator, decision for decision (c10/cuda/CUDACachingAllocator.cpp and its configuration, as of
// 2026). Left out: private pools (CUDA graphs, MemPool), callbacks, sharing between processes.
//
//   round     to 512 B, or to steps between powers of two (roundup_power2_divisions)
//   pools     small blocks (up to 1 MiB) and large ones, each block on the stream whose request took its segment
//   find      the smallest free block of the stream that is large enough; among equals the one whose segment was taken
//             first, and in it the lowest address (up to PyTorch 2.11 the lowest address: caching_order); not for small
//             requests from blocks of max_split_size and more
//   segment   2 MiB for small blocks, 20 MiB below 10 MiB, else the request's own size in steps of 2 MiB
//   split     small pool and expandable segments: 512 B are left; large pool: more than 1 MiB is left
//   free      merges with the previous block, then with the next one; waits for streams that were recorded
//   ladder    collect old segments (fraction limits only), driver, oversize blocks back, driver, all unsplit back, driver
//   expandable  one reservation per stream and pool grows handle by handle; empty handles go back
//
// in_use and requested count a freed block until the last recorded stream has got past its release ("active" in
// PyTorch's statistics; its "allocated" ends at the free). An expandable pool can pass its limit by less than a
// handle. A request that fails has given segments back, and may have mapped more of an expandable one.
#ifndef MEMORY_CACHING_H
#define MEMORY_CACHING_H

#include "memory/allocator.h"

// DEVICE error when the backing's addresses or mappings are too coarse for it.
HR_MUST_CHECK hr_status caching_create(const allocator_config *config, backing *source, trace_bus *bus,
                                       allocator **out, hr_err *err);

// What follows takes allocators of kind "caching" only.

// tensor.record_stream: `stream` works with the block at `address`, which will not be reused before that stream has
// got to where it is when the block is freed. Of its own stream nothing need be recorded. STATE error when no living
// block begins there; NOMEM.
HR_MUST_CHECK hr_status caching_record_stream(allocator *a, uint64_t address, uint32_t stream, hr_err *err);
// The stream has got past every release so far: blocks that waited for it alone are free again.
void caching_events_done(allocator *a, uint32_t stream);

// A sentence when expandable segments were asked for and the device cannot map memory piece by piece: segments are
// ordinary then. NULL: the configuration took effect.
const char *caching_notice(const allocator *a);

#endif
