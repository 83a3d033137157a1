// SPDX-License-Identifier: Apache-2.0
// The one allocator interface over a backing. Allocators are bookkeeping: they never touch the memory itself.
//
//   requested ≤ in_use ≤ pool ≤ limit
//
// Deterministic: the same requests on the same backing give the same addresses. Not thread-safe.
#ifndef MEMORY_ALLOCATOR_H
#define MEMORY_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/status.h"

#include "events/bus.h"
#include "events/heap.h"
#include "memory/backing.h"
#include "memory/pack.h"

typedef struct allocator allocator;

// stream: whose work will use the memory; 0 is the one that computes. freed_before: only memory that was freed
// before this stamp will do (bfc with timestamps); 0: any.
typedef struct allocator_request {
    uint64_t bytes; // > 0
    uint64_t freed_before;
    uint32_t tensor; // tag of the caller, HR_NO_ID: none
    uint32_t stream;
} allocator_request;

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

// The framework's own counters under its own names, in its order.
typedef void (*allocator_say)(void *context, const char *name, uint64_t value);

typedef struct allocator_ops {
    const char *name; // "bfc"
    // OOM when it cannot be served, NOMEM when the bookkeeping found no host memory, STATE or CHECK with a sentence
    // when it is not what was planned; then nothing has changed except regions that were given back (caching.h: or
    // mapped).
    // On OOM allocator.refusal has rounded_bytes and driver_bytes.
    hr_status (*alloc)(allocator *a, const allocator_request *r, uint64_t *address, hr_err *err);
    void (*free)(allocator *a, uint64_t address);
    uint64_t (*largest_free)(const allocator *a);                        // 0 when nothing is free
    void (*walk)(const allocator *a, heap_visitor visit, void *context); // by region, by address
    // Of every chunk's size and use in order, and of what decides the next region: heaps of equal hash answer
    // equal requests equally, whatever addresses the backing gave.
    uint64_t (*hash)(const allocator *a);
    void (*destroy)(allocator *a); // gives every region back; leaves the backing open
    // What follows is NULL where there is no such thing.
    hr_status (*plan)(allocator *a, const allocator_plan *plan, uint64_t *needed_bytes, hr_err *err);
    hr_status (*follow)(allocator *a, uint32_t step, hr_err *err);
    void (*synchronise)(allocator *a);
    void (*statistics)(const allocator *a, allocator_say say, void *context);
    uint64_t (*next_region)(const allocator *a); // bytes that it would ask the driver for next
    size_t (*metadata)(const allocator *a);      // host bytes of the bookkeeping
} allocator_ops;

// What every allocator keeps; counted by the functions of memory/counting.h alone.
struct allocator {
    const allocator_ops *ops;
    backing *source;         // borrowed until destroy
    trace_bus *bus;          // borrowed; NULL: no events
    heap_counters counters;  // all but largest_free and fragmentation
    uint64_t allocation_ids; // given out so far
    bool merges_late;        // free neighbours may stand side by side (bfc with timestamps)
    heap_refusal refusal;    // the last request that could not be served
};

enum { CACHING_ROUNDUP_SIZES = 16 }; // 1 MiB, 2 MiB, … 64 GiB

// Which of several free blocks of one size a request gets.
typedef enum caching_order {
    CACHING_BY_SEGMENT, // of the segment that was taken first, and in it the lowest
    CACHING_BY_BLOCK, // the one that has been a block for longest: what is cut off for a request is a new one
    CACHING_BY_ADDRESS, // the lowest
} caching_order;

// PyTorch's configuration (PYTORCH_ALLOC_CONF), in its words.
typedef struct caching_options {
    uint64_t max_split_bytes;                          // max_split_size_mb; UINT64_MAX: no limit
    uint64_t max_non_split_rounding_bytes;             // 20 MiB
    uint64_t large_segment_bytes;                      // 20 MiB
    double gc_threshold;                               // garbage_collection_threshold; 0: off
    uint32_t roundup_divisions[CACHING_ROUNDUP_SIZES]; // roundup_power2_divisions; 0 and 1: multiples of 512
    caching_order order;
    bool expandable_segments;
    bool refuses_early; // throw_on_cudamalloc_oom: beyond the card refused at once, unless a fraction is set
} caching_options;

typedef struct allocator_config {
    const char *kind; // the word of allocator.kind
    uint64_t limit_bytes;
    uint64_t device_bytes;         // what the whole card has, for what is reckoned from it; 0: the limit
    bool limit_is_fraction;        // the limit is a share of the card that was asked for, not the card's end
    bool growth;                   // bfc: regions double from 2 MiB; off: one region of the whole limit
    bool garbage_collection;       // bfc: wholly free regions go back before a request fails
    bool timestamped;              // bfc: what is freed waits for its stamp (bfc.h)
    double fragmentation_fraction; // bfc: of the limit, the rest that is always split off; 0: 128 MiB
    caching_options caching;
    uint64_t release_threshold_bytes; // async: what stays mapped when a step ends
} allocator_config;

// As each framework has it by default: bfc without growth, with garbage collection; caching with nothing set.
allocator_config allocator_config_of(const char *kind, uint64_t limit_bytes);

// What others need to know of a kind; all false for a word that is none.
typedef struct allocator_traits {
    bool is_drivers; // the driver decides where its memory lies: no replay can
    bool
        expands; // with expandable segments its backing may be larger than a limit that is a fraction of the card
} allocator_traits;

allocator_traits allocator_traits_of(const char *kind);

// The allocator that `kind` names, over `source`, never holding more than the limit.
HR_MUST_CHECK hr_status allocator_create(const allocator_config *config, backing *source, trace_bus *bus,
                                         allocator **out, hr_err *err);
void allocator_destroy(allocator *a); // NULL is fine

// 0 bytes give *address = 0 and are not counted. OOM error with needed, free and largest hole otherwise; an
// HR_EVENT_OOM has then been emitted.
HR_MUST_CHECK hr_status allocator_alloc(allocator *a, uint64_t bytes, uint32_t tensor, uint64_t *address,
                                        hr_err *err);
HR_MUST_CHECK hr_status allocator_serve(allocator *a, const allocator_request *r, uint64_t *address,
                                        hr_err *err);
void allocator_free(allocator *a, uint64_t address); // 0 is fine
// Every stream has done what it was asked: what was freed on any is free for all, and a pool may give memory back.
// The executor says so at the end of every step. Nothing happens where no allocation depends on a stream.
void allocator_synchronise(allocator *a);

// An allocator that plans wants to hear once, before the first request, of everything that will be asked for; OOM
// when it would not fit (an HR_EVENT_OOM has then been emitted), STATE the second time. *needed_bytes is the pool
// that it takes. Of resident requests, those until the first step is followed, then of those of plan.steps[step].
// STATE error while the step before it holds something. Neither call does anything where nothing is planned.
bool allocator_plans(const allocator *a);
HR_MUST_CHECK hr_status allocator_plan_ahead(allocator *a, const allocator_plan *plan, uint64_t *needed_bytes,
                                             hr_err *err);
HR_MUST_CHECK hr_status allocator_follow(allocator *a, uint32_t step, hr_err *err);
heap_counters allocator_get_stats(const allocator *a);
// Peaks and counts begin anew from the present state.
void allocator_clear_peaks(allocator *a);

// Independent checker over the walk: regions are tiled without gap or overlap, no two free neighbours in one
// region (unless they are merged late), sums equal the counters. CHECK error names the first offence.
HR_MUST_CHECK hr_status allocator_check(const allocator *a, hr_err *err);

#endif
