// SPDX-License-Identifier: Apache-2.0
// What every allocator does beside its decisions: it counts, and tells the bus.
#ifndef MEMORY_COUNTING_H
#define MEMORY_COUNTING_H

#include "memory/allocator.h"

// A chunk was handed out, is free again, a region came, a region went. Counters first, then the event.
void count_served(allocator *a, uint64_t address, uint64_t requested_bytes, uint64_t size_bytes,
                  uint32_t tensor, uint32_t stream);
void count_freed(allocator *a, uint64_t address, uint64_t requested_bytes, uint64_t size_bytes,
                 uint32_t tensor, uint32_t stream);
void count_grown(allocator *a, uint64_t address, uint64_t bytes);
void count_shrunk(allocator *a, uint64_t address, uint64_t bytes);

#endif
