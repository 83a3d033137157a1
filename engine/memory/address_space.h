// SPDX-License-Identifier: Apache-2.0
// Which addresses are taken: first fit over a span of addresses, in whole granules. Every backing of our own uses
// this one policy, so that a plan on numbers and a run on pages place their ranges at the same offsets.
//
//   base                                                                    base + span
//   ├──taken──┬──────gap──────┬──taken──┬──taken──┬────────────gap──────────────┤
//
// The span is ADDRESS_SPACE_SLACK times the capacity: a driver serves a range out of whatever memory is free, so a
// range must not fail for want of one contiguous gap while the capacity still has room.
#ifndef MEMORY_ADDRESS_SPACE_H
#define MEMORY_ADDRESS_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

enum { ADDRESS_SPACE_SLACK = 4 };

typedef struct address_range {
    uint64_t address, bytes; // whole granules
} address_range;

typedef struct address_space {
    uint64_t base, span_bytes;
    uint64_t capacity_bytes; // most that is held at once
    uint64_t held_bytes;
    uint64_t granularity_bytes;
    VEC(address_range) taken; // by address
} address_space;

// Rounds the capacity up to whole granules (a power of two) and fills everything but `base`. False when the span
// would not fit 63 bits.
bool address_space_init(address_space *s, uint64_t capacity_bytes, uint64_t granularity_bytes);
void address_space_deinit(address_space *s);
// The lowest gap that holds `bytes`; 0 when the capacity, the span or host memory is short. O(ranges).
uint64_t address_space_take(address_space *s, uint64_t bytes);
// The range that was taken at `address`, with its granules; asserts that there is one of these bytes.
address_range address_space_give_back(address_space *s, uint64_t address, uint64_t bytes);

#endif
