// SPDX-License-Identifier: Apache-2.0
// From lifetimes to offsets: where in one block every buffer of a step lies, decided before the step runs.
//
//   offset
//   ▲ ┌────────┐
//   │ │   c    │┌───────┐       two buffers may share addresses only when no instant sees both alive
//   │ ├────────┴┤   d   │
//   │ │    a    ├───────┤       height: the end of the highest buffer
//   │ └─────────┘───b───┘
//   └──────────────────────▶ instants of the program; a lifetime is [birth, death)
//
// Plain numbers in, plain numbers out: nothing here knows a tensor, a program or an allocator. Deterministic, and
// any thread may call it. Offsets, and the room that a buffer takes, are whole multiples of the alignment.
#ifndef MEMORY_PACK_H
#define MEMORY_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

struct pack_result;

typedef struct pack_buffer {
    uint32_t birth, death; // half-open, birth < death
    uint64_t bytes;        // 0 takes no room and lies at 0
} pack_buffer;

// offsets[k] is where buffers[k] lies, for all `count`; *height_bytes is what the block must hold. Never more than
// the sum of all rooms, never less than pack_lower_bound. `alignment_bytes` is a power of two. CHECK error for a
// lifetime that ends before it began or for rooms beyond 63 bits, NOMEM when host memory is short.
//
// As far as pack_search comes with 1,000 placements, the same on every machine: the first fit by size in any case, for
// a thousand buffers and more nothing else, for a hundred most often the optimum. 20,000 buffers of a program take
// about 0.1 s.
HR_MUST_CHECK hr_status pack_offsets(const pack_buffer *buffers, uint32_t count, uint64_t alignment_bytes,
                                     uint64_t *offsets, uint64_t *height_bytes, hr_err *err);

// The largest sum of rooms alive at one instant: no packing is lower. Errors as above.
HR_MUST_CHECK hr_status pack_lower_bound(const pack_buffer *buffers, uint32_t count, uint64_t alignment_bytes,
                                         uint64_t *bytes, hr_err *err);

// What a search is after, and when it ends.
typedef struct pack_goal {
    uint64_t capacity_bytes; // the first packing this low ends the search; 0: as low as possible
    uint64_t seed;           // of everything that is drawn
    uint64_t node_limit;     // ends the search after about so many placements; 0: none
    // Asked now and then, at least once for some thousand placements, with what is known so far: true ends the
    // search. NULL: never. Only this may look at a clock; what it says decides when the search ends, and nothing else.
    bool (*stop)(void *context, const struct pack_result *so_far);
    void *stop_context;
} pack_goal;

typedef struct pack_result {
    uint64_t height_bytes;      // of the packing in hand
    uint64_t lower_bound_bytes; // proven: no packing is lower. Above the capacity: nothing fits it
    bool optimal;               // height_bytes == lower_bound_bytes
    uint64_t nodes;             // placements made so far
} pack_result;

// Anytime. At once first fit by size: the largest buffer first, of equals the longer-lived, then the earlier one; each
// at the lowest offset that is free during its whole life (Pisarchyk and Lee, "Efficient memory management for deep
// neural net inference", 2020, "greedy by size"). Then first fit in other orders, then exact search from ever new
// beginnings, until a packing fits the capacity, the height is proven to be the lowest, the capacity is proven to be
// too small, or the goal says that it is enough. Where the way back of the exact search would fill more than 192 MiB
// (a step of some 5,000 buffers that live long), the orders are all that is tried.
//
// HR_OK with the best packing so far in `offsets`, whether it fits or not; heights only fall and bounds only rise on
// the way. The same buffers, capacity, seed and node limit give the same packing on every machine, unless `stop` ended
// it. Errors as of pack_offsets; `offsets` are then undefined and *result is zero.
HR_MUST_CHECK hr_status pack_search(const pack_buffer *buffers, uint32_t count, uint64_t alignment_bytes,
                                    const pack_goal *goal, uint64_t *offsets, pack_result *result,
                                    hr_err *err);

// Independent checker of a packing, from whatever source: every offset aligned, nothing beyond the height and
// something that reaches it, no two buffers on one byte at one instant. CHECK error names the first offence, in the
// order of buffers and then of instants; NOMEM when host memory is short. O(n log n) and the moves of a sorted array.
HR_MUST_CHECK hr_status pack_check(const pack_buffer *buffers, uint32_t count, uint64_t alignment_bytes,
                                   const uint64_t *offsets, uint64_t height_bytes, hr_err *err);

#endif
