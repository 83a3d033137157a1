// SPDX-License-Identifier: Apache-2.0
// Sizes of the caching allocator: what a request becomes, and what the driver is asked for.
#ifndef MEMORY_CACHING_ROUND_H
#define MEMORY_CACHING_ROUND_H

#include "memory/allocator.h"

#define CACHING_BLOCK_BYTES   UINT64_C(512)       // of which every block is a multiple
#define CACHING_SMALL_BYTES   (UINT64_C(1) << 20) // the largest block of the small pool
#define CACHING_SMALL_SEGMENT (UINT64_C(2) << 20)
#define CACHING_OWN_BYTES     (UINT64_C(10) << 20) // from here on a request gets a segment of its own size
#define CACHING_SEGMENT_STEP  (UINT64_C(2) << 20)
#define CACHING_REQUEST_END   (UINT64_C(1) << 60) // from here on refused at once: "more than 1EB memory"

// What a request of `bytes` (0 < bytes < CACHING_REQUEST_END) takes.
uint64_t caching_round(const caching_options *o, uint64_t bytes);
// What the driver is asked for to serve that.
uint64_t caching_segment_bytes(const caching_options *o, uint64_t rounded_bytes);

#endif
