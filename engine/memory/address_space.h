// SPDX-License-Identifier: Apache-2.0
// Which addresses are taken: first fit over a span of addresses, in whole granules. Every backing of our own uses
// this one policy, so that a plan on numbers and a run on pages place their ranges at the same offsets.
//
//   base                                 base + span                                              base + all
//   ├──taken──┬──gap──┬──taken──┬──gap───┼──reservation──┬──gap──┬──reservation──┬──────gap───────┤
//                                          └mapped┘ └mapped┘
//
// The span is ADDRESS_SPACE_SLACK times the capacity: a driver serves a range out of whatever memory is free, so a
// range must not fail for want of one contiguous gap while the capacity still has room. Behind it lie addresses
// without memory, some times the capacity. What is taken and what is mapped are held.
#ifndef MEMORY_ADDRESS_SPACE_H
#define MEMORY_ADDRESS_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/range_tree.h"

enum { ADDRESS_SPACE_SLACK = 4 };

typedef struct address_space {
    uint64_t base, span_bytes;
    uint64_t reservable_bytes; // behind the span
    uint64_t capacity_bytes;   // most that is held at once
    uint64_t held_bytes;
    uint64_t granularity_bytes; // of what is taken
    uint64_t mapping_bytes;     // of what is reserved and mapped
    range_tree taken, reserved;
} address_space;

// Rounds the capacity up to whole granules (powers of two). `reservable` times the capacity can be reserved, or what 63
// bits have left for it. False when what can be taken does not fit them.
bool address_space_init(address_space *s, uint64_t capacity_bytes, uint64_t granularity_bytes,
                        uint64_t reservable);
// Where the addresses begin, a multiple of the mapping granule: before anything is taken.
void address_space_place(address_space *s, uint64_t base);
void address_space_deinit(address_space *s);
uint64_t address_space_bytes(const address_space *s); // from base to the end of what can be reserved

// The lowest gap that holds `bytes`; 0 when the capacity, the span or host memory is short. O(log ranges).
uint64_t address_space_take(address_space *s, uint64_t bytes);
// The range that was taken at `address`, with its granules; asserts that there is one of these bytes.
range_node address_space_give_back(address_space *s, uint64_t address, uint64_t bytes);

// As take and give_back, without holding anything; asserts that nothing is mapped at the end.
uint64_t address_space_reserve(address_space *s, uint64_t bytes);
range_node address_space_release(address_space *s, uint64_t address, uint64_t bytes);
// Whole granules of one reservation (asserted). False when the capacity is short. The caller does not map twice.
bool address_space_map(address_space *s, uint64_t address, uint64_t bytes);
void address_space_unmap(address_space *s, uint64_t address, uint64_t bytes);

#endif
