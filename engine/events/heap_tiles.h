// SPDX-License-Identifier: Apache-2.0
// From chunks as a file lists them to a snapshot whose chunks tile their regions.
//
//   said:   region 1, 4096 bytes: [0,256) [256,1024) … [2048,4096)          a line is missing
//   made:   region at 0, 1024 bytes; region at 2048, 2048 bytes; one damaged region, 1024 bytes missing
#ifndef EVENTS_HEAP_TILES_H
#define EVENTS_HEAP_TILES_H

#include "headroom/status.h"

#include "events/heap.h"

// A region as the file says it.
typedef struct heap_said {
    uint64_t bytes;
    uint64_t covered_bytes; // by chunks; filled here
    uint32_t runs;          // without a gap; filled here
} heap_said;

// On entry, chunks in any order, with what the file says of them; region_address is 1 + the number of the region in
// `said`, or 0 where the file knows no regions: then chunks that touch make one, except two free ones, which an allocator
// that coalesces would have merged. Chunks that come twice, all alike, are taken once.
// On return they are sorted, tile their regions, and the counters are recounted. READ error when two overlap.
HR_MUST_CHECK hr_status heap_tile(heap_snapshot *p, heap_said *said, uint32_t said_count, const char *file,
                                  hr_err *err);

#endif
