// SPDX-License-Identifier: Apache-2.0
// Where an allocator's regions come from: host pages, a card's driver, mapped pieces, or pure numbers.
// Not thread-safe: the engine's thread only.
#ifndef MEMORY_BACKING_H
#define MEMORY_BACKING_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

typedef struct backing_look {
    uint64_t reserved_bytes, reserved_high_bytes, used_bytes, used_high_bytes;
} backing_look;

typedef struct backing {
    void *context;
    uint64_t granularity_bytes; // of what is taken from the driver
    uint64_t alignment_bytes;   // of every address it gives
    uint64_t mapping_bytes;     // granule of map and unmap (2 MiB on NVIDIA cards); 0: cannot map
    bool coalesces;             // a new range may start at the end of an older one and be joined to it
    // A range of `bytes`; 0 when the backing refuses. Address 0 is never given out.
    uint64_t (*take)(void *context, uint64_t bytes);
    void (*give_back)(void *context, uint64_t address, uint64_t bytes);
    // Addresses apart from memory, where the backing can map: all NULL where it cannot. A reservation holds nothing
    // and counts for nothing; what is mapped into it counts as what is taken. Addresses and bytes are whole granules.
    uint64_t (*reserve)(void *context, uint64_t bytes); // 0 when refused
    void (*release)(void *context, uint64_t address,
                    uint64_t bytes); // a whole reservation, with nothing mapped
    // Of what is not mapped; false when refused, and nothing has changed.
    bool (*map)(void *context, uint64_t address, uint64_t bytes);
    void (*unmap)(void *context, uint64_t address, uint64_t bytes); // of what was mapped, in any pieces
    // optional: ranges out of the driver's own pool, which decides by itself what it holds; opened and closed with this.
    struct backing *pool;
    // optional, of such a pool: what it may go on holding when everything is done, and what it holds and has given.
    void (*keep)(void *context, uint64_t bytes);
    bool (*look)(void *context, backing_look *out);
    void (*close)(void *context);
} backing;

// Both backings below place ranges and reservations by the same rule (address_space.h: lowest gap first, never
// coalescing), so that equal requests get equal offsets. `capacity_bytes`, rounded up to the granularity, is what is
// held at once. Both map in granules of 2 MiB (a larger granularity is the granule then), at whose multiples
// reservations begin. All reservations together are at most 16 times the capacity on pages, in whole granules. Numbers
// have addresses for as many as are asked for, as a card's driver has: a trace may come from any number of streams, and
// expandable segments reserve more than the card for each.

// Pure numbers, from 1 << 40 upwards.
HR_MUST_CHECK hr_status backing_numbers_open(uint64_t capacity_bytes, uint64_t granularity_bytes,
                                             backing *out, hr_err *err);
// Host pages: address space of some 20 times the capacity is reserved at once; what is taken or mapped is readable,
// writable and zero, its pages are found at the first touch and given back to the kernel with it. Ranges are 4 KiB
// granular, addresses are real pointers. HOST_LIMIT error when the address space is not to be had.
HR_MUST_CHECK hr_status backing_pages_open(uint64_t capacity_bytes, backing *out, hr_err *err);
void backing_close(backing *b);

#endif
