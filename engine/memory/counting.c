// SPDX-License-Identifier: Apache-2.0
#include "memory/counting.h"

static uint64_t max_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void emit(allocator *a, hr_event_kind kind, const hr_event_memory *what)
{
    hr_event event = {.kind = (uint8_t)kind, .u.memory = *what};
    event.u.memory.in_use_bytes = a->counters.in_use_bytes;
    event.u.memory.pool_bytes = a->counters.pool_bytes;
    trace_emit(a->bus, &event);
}

void count_served(allocator *a, uint64_t address, uint64_t requested_bytes, uint64_t size_bytes,
                  uint32_t tensor, uint32_t stream)
{
    heap_counters *c = &a->counters;
    c->allocations++;
    c->requested_bytes += requested_bytes;
    c->in_use_bytes += size_bytes;
    c->peak_requested_bytes = max_of(c->peak_requested_bytes, c->requested_bytes);
    c->peak_in_use_bytes = max_of(c->peak_in_use_bytes, c->in_use_bytes);
    c->largest_allocation_bytes = max_of(c->largest_allocation_bytes, size_bytes);
    if (a->bus != NULL) {
        emit(a, HR_EVENT_ALLOC,
             &(hr_event_memory){.address = address,
                                .requested_bytes = requested_bytes,
                                .allocated_bytes = size_bytes,
                                .tensor = tensor,
                                .stream = stream});
    }
}

void count_freed(allocator *a, uint64_t address, uint64_t requested_bytes, uint64_t size_bytes,
                 uint32_t tensor, uint32_t stream)
{
    a->counters.requested_bytes -= requested_bytes;
    a->counters.in_use_bytes -= size_bytes;
    if (a->bus != NULL) {
        emit(a, HR_EVENT_FREE,
             &(hr_event_memory){.address = address,
                                .requested_bytes = requested_bytes,
                                .allocated_bytes = size_bytes,
                                .tensor = tensor,
                                .stream = stream});
    }
}

void count_grown(allocator *a, uint64_t address, uint64_t bytes)
{
    a->counters.pool_bytes += bytes;
    a->counters.peak_pool_bytes = max_of(a->counters.peak_pool_bytes, a->counters.pool_bytes);
    if (a->bus != NULL) {
        emit(a, HR_EVENT_GROW,
             &(hr_event_memory){.address = address, .allocated_bytes = bytes, .tensor = HR_NO_ID});
    }
}

void count_shrunk(allocator *a, uint64_t address, uint64_t bytes)
{
    a->counters.pool_bytes -= bytes;
    if (a->bus != NULL) {
        emit(a, HR_EVENT_SHRINK,
             &(hr_event_memory){.address = address, .allocated_bytes = bytes, .tensor = HR_NO_ID});
    }
}
