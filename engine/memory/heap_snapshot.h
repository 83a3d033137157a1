// SPDX-License-Identifier: Apache-2.0
// From an allocator to a snapshot of its heap (events/heap.h).
#ifndef MEMORY_HEAP_SNAPSHOT_H
#define MEMORY_HEAP_SNAPSHOT_H

#include "events/heap_room.h"
#include "memory/allocator.h"

// The heap as it is: every chunk, the counters, the next region, and the last refusal. The caller's to deinit. NOMEM
// when host memory is short: *out is empty then.
HR_MUST_CHECK hr_status heap_snapshot_of(const allocator *a, heap_snapshot *out, hr_err *err);

// Addresses of allocations, ascending.
typedef struct heap_addresses {
    const uint64_t *data;
    uint32_t count;
} heap_addresses;

// What the heap had for the request that it refused last, where `stay` could not be freed for it; `retained` are those
// of them that a step left behind. *in_the_way is the tag of the largest one that could, HR_NO_ID where there is none.
// Without `any` where host memory is short.
heap_room heap_room_at(const allocator *a, heap_addresses stay, heap_addresses retained,
                       uint32_t *in_the_way);

#endif
