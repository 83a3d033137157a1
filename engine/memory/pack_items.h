// SPDX-License-Identifier: Apache-2.0
// Buffers as the packers see them: only those that take room, and lifetimes in numbers of births. Of two buffers
// that meet, the later birth sees both, so no other instant matters.
#ifndef MEMORY_PACK_ITEMS_H
#define MEMORY_PACK_ITEMS_H

#include <stdbool.h>

#include "memory/pack.h"

typedef struct pack_item {
    uint64_t room_bytes;  // whole alignments, above 0
    uint32_t first, last; // births, both included
    uint32_t length;      // in instants
    uint32_t id;          // index of the buffer
} pack_item;

typedef struct pack_items {
    pack_item *list;
    uint32_t count;
    uint32_t birth_count;
    uint64_t *load_bytes; // [birth_count], the rooms alive
    uint64_t most_bytes;  // of them
} pack_items;

// Items by id. Errors as of pack_offsets; deinit is due in any case.
HR_MUST_CHECK hr_status pack_items_init(pack_items *items, const pack_buffer *buffers, uint32_t count,
                                        uint64_t alignment_bytes, hr_err *err);
void pack_items_deinit(pack_items *items);

// In which order first fit takes them. Every order is whole: of equals the earlier buffer.
typedef enum pack_order {
    PACK_BY_SIZE, // the largest first, then the longer-lived
    PACK_BY_AREA, // room times length
    PACK_BY_LENGTH,
    PACK_BY_BIRTH, // the earliest first, then the longer-lived
    PACK_BY_DEATH, // the last to die first
    PACK_ORDERS
} pack_order;

void pack_items_sort(pack_items *items, pack_order order);

// First fit of the items in the order of the list: offsets[id] of each, and the end of the highest. False when host
// memory is short.
HR_MUST_CHECK bool pack_first_fit(const pack_items *items, uint64_t *offsets, uint64_t *height_bytes);

#endif
