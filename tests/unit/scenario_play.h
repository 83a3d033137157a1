// SPDX-License-Identifier: Apache-2.0
// A trace on an allocator, as plainly as it can be said: the judge of what scenarios claim.
#ifndef TESTS_UNIT_SCENARIO_PLAY_H
#define TESTS_UNIT_SCENARIO_PLAY_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"
#include "formats/trace.h"
#include "memory/allocator.h"
#include "memory/heap_snapshot.h"

typedef struct played {
    heap_counters end;
    uint64_t failures, first_failure; // event
    heap_counters at_failure;         // as it was refused
    uint64_t failed_bytes;
    uint64_t waste_at_peak_bytes, free_at_peak_bytes;
    uint64_t steps_before_failure;
    uint64_t shrinks, grows;
    uint64_t retries; // caching: requests that were served only after its cache was given back
} played;

static inline void played_say(void *context, const char *name, uint64_t value)
{
    played *r = context;
    r->retries = strcmp(name, "num_alloc_retries") == 0 ? value : r->retries;
}

static inline void played_listen(void *context, const hr_event *event)
{
    played *r = context;
    r->grows += event->kind == HR_EVENT_GROW ? 1 : 0;
    r->shrinks += event->kind == HR_EVENT_SHRINK ? 1 : 0;
}

// An allocator that plans hears of the whole trace as one step: event k is tensor k.
static inline hr_status played_plan(allocator *heap, const trace *t)
{
    const uint32_t count = t->events.count;
    pack_buffer *buffers = hr_calloc(count, sizeof *buffers);
    uint32_t *tensors = hr_calloc(count, sizeof *tensors), used = 0;
    uint32_t *begun = hr_calloc(t->block_count + 1u, sizeof *begun); // 1 + index of what lives in the block
    uint64_t needed_bytes;
    for (uint32_t k = 0; k < count; k++) {
        const trace_event *e = &t->events.data[k];
        if (e->kind == TRACE_ALLOC) {
            buffers[used] = (pack_buffer){k, count, e->bytes};
            tensors[used] = k;
            begun[e->block] = ++used;
        } else if (e->kind == TRACE_FREE) {
            buffers[begun[e->block] - 1].death = k;
        }
    }
    const allocator_requests step = {buffers, tensors, used};
    const allocator_plan plan = {.steps = &step, .step_count = 1};
    hr_status status = allocator_plan_ahead(heap, &plan, &needed_bytes, NULL);
    if (status == HR_OK) {
        status = allocator_follow(heap, 0, NULL);
    }
    hr_free(buffers);
    hr_free(tensors);
    hr_free(begun);
    return status;
}

static inline void played_alloc(played *r, allocator *heap, const trace_event *e, uint32_t k, uint64_t steps,
                                uint64_t *address)
{
    const allocator_request request = {.bytes = e->bytes, .tensor = k, .stream = e->stream};
    hr_status status = allocator_serve(heap, &request, address, NULL);
    const heap_counters c = allocator_get_stats(heap);
    if (status != HR_OK && status != HR_OOM) {
        ck_abort_msg("event %u: status %d", (unsigned)k, (int)status);
    }
    if (status == HR_OOM && r->failures++ == 0) {
        r->first_failure = k;
        r->at_failure = c;
        r->failed_bytes = e->bytes;
        r->steps_before_failure = steps;
    }
    if (c.in_use_bytes == c.peak_in_use_bytes) {
        r->waste_at_peak_bytes = c.in_use_bytes - c.requested_bytes;
        r->free_at_peak_bytes = c.pool_bytes - c.in_use_bytes;
    }
}

static inline played play_trace(const trace *t, const allocator_config *config)
{
    played r = {0};
    backing numbers;
    allocator *heap;
    trace_bus bus;
    uint64_t *address = hr_calloc(t->block_count + 1u, sizeof *address), steps = 0;
    trace_bus_init(&bus);
    ck_assert(trace_attach(&bus, played_listen, &r));
    ck_assert_int_eq(backing_numbers_open(config->limit_bytes, 2 << 20, &numbers, NULL), HR_OK);
    ck_assert_int_eq(allocator_create(config, &numbers, &bus, &heap, NULL), HR_OK);
    if (allocator_plans(heap) && played_plan(heap, t) != HR_OK) {
        r.failures = 1;
    }
    for (uint32_t k = 0; k < t->events.count && !(allocator_plans(heap) && r.failures > 0); k++) {
        const trace_event *e = &t->events.data[k];
        if (e->kind == TRACE_ALLOC) {
            played_alloc(&r, heap, e, k, steps, &address[e->block]);
        } else if (e->kind == TRACE_FREE) {
            allocator_free(heap, address[e->block]);
            address[e->block] = 0;
        }
        if (e->kind == TRACE_STEP) {
            steps++;
            allocator_synchronise(heap);
        }
    }
    r.end = allocator_get_stats(heap);
    if (heap->ops->statistics != NULL) {
        heap->ops->statistics(heap, played_say, &r);
    }
    for (uint32_t k = 0; k < t->block_count; k++) {
        allocator_free(heap, address[k]);
    }
    trace_detach(&bus, played_listen, &r);
    allocator_destroy(heap);
    backing_close(&numbers);
    hr_free(address);
    return r;
}

#endif
