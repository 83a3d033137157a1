// SPDX-License-Identifier: Apache-2.0
// A stream-ordered pool over mapped pieces, after what CUDA documents of cudaMallocAsync (CUDA programming guide,
// "Stream-ordered memory allocator"; driver API, CUmemPool_attribute). NVIDIA's own placement is not documented, so
// this pool's is its own, and the same everywhere.
//
//   origin                                                             origin + reserved
//   ├──used──┬─free─┬──used──┬─free──┤ not mapped ├──used──┤        not mapped        │
//   └────────────region──────────────┘            └─region─┘
//
// 1. One reservation of addresses; memory is mapped into it in pieces of the backing (2 MiB). A region is a run of
//    mapped pieces. pool is what is mapped (CUDA: reserved), in_use what is handed out (CUDA: used). Requests are
//    rounded up to 256 B, and a chunk is cut to exactly that.
// 2. Memory freed on one stream is that stream's at once, and every stream's from the next synchronisation on. Free
//    neighbours of one owner are one chunk. As long as only one stream has ever asked, everything is that stream's.
// 3. A request is served by the best fit (smallest, then lowest) of its stream's chunks and the shared ones; else by the
//    shortest, then lowest run of free neighbours of both; else pieces are mapped: beside free memory that the request
//    can use, where the fewest are needed, then at the lowest address. What is left of them is its stream's.
// 4. Synchronising (allocator_synchronise: every stream has done what it was asked) makes all that is free
//    shared. If more than the release threshold is mapped then, wholly free pieces are unmapped, from the highest
//    address down, until no more than the threshold is, or none is free. A threshold of 0 is CUDA's own default; TensorFlow
//    and PyTorch keep everything (the limit).
// 5. A request for which nothing can be mapped synchronises, unmaps every free piece and tries once more: the ladder
//    to which every framework came (PyTorch #188110, RMM #1245, TensorFlow #50699). Then it is refused.
#ifndef MEMORY_ASYNC_H
#define MEMORY_ASYNC_H

#include "memory/allocator.h"

// Of `config` the limit and the release threshold. DEVICE error where the backing cannot map.
HR_MUST_CHECK hr_status async_create(const allocator_config *config, backing *source, trace_bus *bus,
                                     allocator **out, hr_err *err);

// The driver's own pool instead (backing.pool): what it places where is its affair, in_use is what was asked for in its
// granules, pool the same, and what it really holds stands in the statistics under CUDA's names. Measured, never planned:
// where the backing has no such pool, on numbers, it is the pool above, as an estimate.
HR_MUST_CHECK hr_status async_driver_create(const allocator_config *config, backing *source, trace_bus *bus,
                                            allocator **out, hr_err *err);

#endif
