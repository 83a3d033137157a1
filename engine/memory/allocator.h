// SPDX-License-Identifier: Apache-2.0
// The one allocator interface over a backing. Allocators are bookkeeping: they never touch the memory itself.
//
//   requested ≤ in_use ≤ pool ≤ limit
//
// Deterministic: the same requests on the same backing give the same addresses. Not thread-safe.
#ifndef MEMORY_ALLOCATOR_H
#define MEMORY_ALLOCATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#include "memory/backing.h"
#include "memory/pack.h"
#include "trace/bus.h"

typedef struct allocator allocator;

typedef struct allocator_stats {
    uint64_t requested_bytes, in_use_bytes, pool_bytes, limit_bytes;
    uint64_t peak_in_use_bytes, peak_pool_bytes, peak_requested_bytes;
    uint64_t largest_allocation_bytes;
    uint64_t largest_free_bytes; // 0 when nothing is free in the pool
    uint64_t allocations;        // served since creation or the last clear
    double fragmentation;        // 1 − largest_free / (pool − in_use); 0 when nothing is free
} allocator_stats;

// One chunk of the heap, as the walk sees it.
typedef struct heap_chunk {
    uint64_t address, size_bytes, requested_bytes; // requested 0 when free
    uint64_t region_address, region_bytes;
    uint64_t allocation_id; // 1, 2, 3 …; 0 when free
    uint32_t tensor;        // tag of the allocation, HR_NO_ID when free
    bool in_use;
} heap_chunk;

typedef bool (*heap_visitor)(void *context, const heap_chunk *chunk); // false stops the walk

// Requests that are known beforehand: tensors[k] will ask for buffers[k], each tensor for one at most.
typedef struct allocator_requests {
    const pack_buffer *buffers;
    const uint32_t *tensors; // tags
    uint32_t count;
} allocator_requests;

// All that will ever be asked for: what is held for as long as the allocator lives (lifetimes do not matter), and
// steps, of which one at a time holds something.
typedef struct allocator_plan {
    allocator_requests resident;
    const allocator_requests *steps;
    uint32_t step_count;
} allocator_plan;

typedef struct allocator_ops {
    const char *name; // "bfc"
    // OOM when it cannot be served, NOMEM when the bookkeeping found no host memory, STATE or CHECK with a sentence
    // when it is not what was planned; then nothing has changed except regions that were given back. bytes > 0.
    hr_status (*alloc)(allocator *a, uint64_t bytes, uint32_t tensor, uint64_t *address, hr_err *err);
    void (*free)(allocator *a, uint64_t address);
    void (*stats)(const allocator *a, allocator_stats *out);
    void (*clear_peaks)(allocator *a);
    void (*walk)(const allocator *a, heap_visitor visit, void *context); // by region, by address
    // Of every chunk's size and use in order, and of what decides the next region: heaps of equal hash answer
    // equal requests equally, whatever addresses the backing gave.
    uint64_t (*hash)(const allocator *a);
    void (*destroy)(allocator *a); // gives every region back; leaves the backing open
    // NULL for allocators that plan nothing; both as below.
    hr_status (*plan)(allocator *a, const allocator_plan *plan, uint64_t *needed_bytes, hr_err *err);
    hr_status (*follow)(allocator *a, uint32_t step, hr_err *err);
} allocator_ops;

struct allocator {
    const allocator_ops *ops;
    backing *source; // borrowed until destroy
    trace_bus *bus;  // borrowed; NULL: nobody listens
};

typedef struct allocator_config {
    const char *kind; // "bfc" or "static", the word of allocator.kind
    uint64_t limit_bytes;
    bool growth;             // regions double from 2 MiB; off: one region of the whole limit
    bool garbage_collection; // wholly free regions go back before a request fails
} allocator_config;

// The allocator that `kind` names, over `source`, never holding more than the limit.
HR_MUST_CHECK hr_status allocator_create(const allocator_config *config, backing *source, trace_bus *bus,
                                         allocator **out, hr_err *err);
void allocator_destroy(allocator *a); // NULL is fine

// 0 bytes give *address = 0 and are not counted. OOM error with needed, free and largest hole otherwise; an
// HR_EVENT_OOM has then been emitted.
HR_MUST_CHECK hr_status allocator_alloc(allocator *a, uint64_t bytes, uint32_t tensor, uint64_t *address,
                                        hr_err *err);
void allocator_free(allocator *a, uint64_t address); // 0 is fine

// An allocator that plans wants to hear once, before the first request, of everything that will be asked for; OOM
// when it would not fit (an HR_EVENT_OOM has then been emitted), STATE the second time. *needed_bytes is the pool
// that it takes. Of resident requests, those until the first step is followed, then of those of plan.steps[step].
// STATE error while the step before it holds something. Neither call does anything where nothing is planned.
bool allocator_plans(const allocator *a);
HR_MUST_CHECK hr_status allocator_plan_ahead(allocator *a, const allocator_plan *plan, uint64_t *needed_bytes,
                                             hr_err *err);
HR_MUST_CHECK hr_status allocator_follow(allocator *a, uint32_t step, hr_err *err);
allocator_stats allocator_get_stats(const allocator *a);

// Independent checker over the walk: regions are tiled without gap or overlap, no two free neighbours in one
// region, sums equal the counters. CHECK error names the first offence.
HR_MUST_CHECK hr_status allocator_check(const allocator *a, hr_err *err);

#endif
