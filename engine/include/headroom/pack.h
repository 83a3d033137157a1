// SPDX-License-Identifier: Apache-2.0
// Packing: lifetimes in, offsets in one block out.
//
//   file ─ hr_packing_open ─▶ hr_packing ─ hr_packing_search ─▶ an offset for every buffer
//
// One hr_packing belongs to one thread at a time.
#ifndef HEADROOM_PACK_H
#define HEADROOM_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/status.h"

typedef struct hr_packing hr_packing;

// Lifetimes as CSV (minimalloc: id, lower, upper, size), or the blocks of any trace that a replay reads. Buffers with an
// alignment of their own make the largest of these that of all. READ error with line and column; USAGE when an
// alignment is not a power of two.
HR_MUST_CHECK hr_status hr_packing_open(const char *path, hr_packing **out, hr_err *err);
void hr_packing_close(hr_packing *packing); // NULL is fine

size_t hr_packing_count(const hr_packing *packing);
const char *hr_packing_id(const hr_packing *packing, size_t buffer); // borrowed

typedef struct hr_packing_result {
    uint64_t height_bytes;      // of the packing in hand
    uint64_t lower_bound_bytes; // proven: none is lower
    bool optimal;               // they are equal
    uint64_t nodes;             // placements tried
    uint64_t alignment_bytes;   // of every offset, and of the room that every buffer takes
} hr_packing_result;

typedef struct hr_packing_options {
    uint64_t capacity_bytes; // the first packing that fits it ends the search; 0: as low as can be
    uint64_t seed;
    // Asked now and then; true ends the search with the best packing so far. NULL: never.
    bool (*stop)(void *context, const hr_packing_result *so_far);
    void *stop_context;
} hr_packing_options;

// Searches until the goal is reached, the height is proven to be the lowest, the capacity is proven to be too small, or
// `stop` says so. Always HR_OK with the best packing so far, checked by an independent checker. CHECK error for sizes
// beyond 63 bits, NOMEM.
HR_MUST_CHECK hr_status hr_packing_search(hr_packing *packing, const hr_packing_options *options,
                                          hr_packing_result *result, hr_err *err);
// Where the last search put a buffer; 0 before the first.
uint64_t hr_packing_offset(const hr_packing *packing, size_t buffer);

// The packing as a drawing of the block's first `height_bytes`: `height` rows of `width` cells, from the top of the block
// down and from the first instant on; cells[row * width + column] is the share of it that is taken, 0 … 1.
void hr_packing_draw(const hr_packing *packing, uint64_t height_bytes, size_t width, size_t height,
                     double *cells);

#endif
