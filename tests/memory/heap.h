// SPDX-License-Identifier: Apache-2.0
// What the tests of allocators share: a heap over a backing, and a backing that refuses on demand.
#ifndef TESTS_MEMORY_HEAP_H
#define TESTS_MEMORY_HEAP_H

#include <check.h>
#include <stdint.h>
#include <stdlib.h>

#include "headroom/units.h"

#include "memory/allocator.h"

// ck_assert reports every call to the parent process; this one speaks only when it fails, for inner loops.
#define MUST(condition)                                                                                      \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            ck_abort_msg("%s", #condition);                                                                  \
        }                                                                                                    \
    } while (0)

// ---- a scripted backing ---------------------------------------------------------------------------------------

// Addresses grow from 1 << 40 and never return; ranges touch each other.
typedef struct scripted {
    uint64_t next_address;
    uint64_t takes, gives;
    uint64_t fail_at;    // the n-th take (1-based) is refused; 0: none
    bool always_refuses; // from fail_at on
    uint64_t last_bytes; // of the last take, served or not
    uint64_t held_bytes;
} scripted;

static inline uint64_t scripted_take(void *context, uint64_t bytes)
{
    scripted *s = context;
    s->takes++;
    s->last_bytes = bytes;
    if (s->fail_at != 0 && (s->takes == s->fail_at || (s->always_refuses && s->takes > s->fail_at))) {
        return 0;
    }
    uint64_t address = s->next_address;
    s->next_address += bytes;
    s->held_bytes += bytes;
    return address;
}

static inline void scripted_give_back(void *context, uint64_t address, uint64_t bytes)
{
    scripted *s = context;
    MUST(address >= UINT64_C(1) << 40 && address + bytes <= s->next_address);
    s->gives++;
    s->held_bytes -= bytes;
}

static inline backing scripted_backing(scripted *s, bool coalesces)
{
    s->next_address = UINT64_C(1) << 40;
    return (backing){.context = s,
                     .granularity_bytes = 256,
                     .alignment_bytes = 256,
                     .coalesces = coalesces,
                     .take = scripted_take,
                     .give_back = scripted_give_back};
}

// ---- a heap ---------------------------------------------------------------------------------------------------

typedef struct heap {
    allocator *allocator; // over a backing of its own
} heap;

static inline allocator_config bfc_config(uint64_t limit_bytes, bool growth)
{
    return (allocator_config){
        .kind = "bfc", .limit_bytes = limit_bytes, .growth = growth, .garbage_collection = true};
}

static inline heap heap_over(const allocator_config *config, backing source, trace_bus *bus)
{
    heap h;
    backing *kept = malloc(sizeof *kept); // the allocator borrows it for as long as it lives
    ck_assert_ptr_nonnull(kept);
    *kept = source;
    ck_assert_int_eq(allocator_create(config, kept, bus, &h.allocator, NULL), HR_OK);
    return h;
}

static inline heap heap_open(const allocator_config *config)
{
    backing source;
    ck_assert_int_eq(backing_numbers_open(config->limit_bytes, 4096, &source, NULL), HR_OK);
    return heap_over(config, source, NULL);
}

static inline void heap_close(heap *h)
{
    backing *kept = h->allocator->source;
    allocator_destroy(h->allocator);
    backing_close(kept);
    free(kept);
}

static inline uint64_t heap_alloc(heap *h, uint64_t bytes)
{
    uint64_t address = 0;
    hr_err err;
    hr_status status = allocator_alloc(h->allocator, bytes, HR_NO_ID, &address, &err);
    if (status != HR_OK) {
        ck_abort_msg("%s", err.sentence);
    }
    return address;
}

static inline bool heap_refuses(heap *h, uint64_t bytes)
{
    uint64_t address = 1;
    hr_status status = allocator_alloc(h->allocator, bytes, HR_NO_ID, &address, NULL);
    MUST(status == HR_OK || (status == HR_OOM && address == 0));
    return status == HR_OOM;
}

static inline void heap_free(heap *h, uint64_t address)
{
    allocator_free(h->allocator, address);
}

static inline void heap_must_be_sound(const heap *h)
{
    hr_err err;
    hr_status status = allocator_check(h->allocator, &err);
    if (status != HR_OK) {
        ck_abort_msg("%s", err.sentence);
    }
}

// ---- what the walk shows --------------------------------------------------------------------------------------

enum { REGIONS_MAX = 64 };

typedef struct heap_view {
    uint32_t regions, chunks, free_chunks;
    uint64_t region_bytes[REGIONS_MAX];
    uint64_t last_region;
} heap_view;

static inline bool heap_view_add(void *context, const heap_chunk *chunk)
{
    heap_view *v = context;
    if (v->chunks == 0 || chunk->region_address != v->last_region) {
        MUST(v->regions < REGIONS_MAX);
        v->region_bytes[v->regions++] = chunk->region_bytes;
        v->last_region = chunk->region_address;
    }
    v->chunks++;
    v->free_chunks += chunk->in_use ? 0 : 1;
    return true;
}

static inline heap_view heap_look(const heap *h)
{
    heap_view v = {0};
    h->allocator->ops->walk(h->allocator, heap_view_add, &v);
    return v;
}

static inline void heap_regions_must_be(const heap *h, const uint64_t *mib, uint32_t count)
{
    heap_view v = heap_look(h);
    ck_assert_uint_eq(v.regions, count);
    for (uint32_t i = 0; i < count; i++) {
        ck_assert_uint_eq(v.region_bytes[i], mib[i] * HR_MIB);
    }
}

// A splitmix64 stream: the tests' own randomness, the same on every machine.
static inline uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static inline uint64_t random_between(uint64_t *state, uint64_t low, uint64_t high)
{
    return low + next_random(state) % (high - low + 1);
}

#define TEST_MAIN(suite)                                                                                     \
    int main(void)                                                                                           \
    {                                                                                                        \
        SRunner *runner = srunner_create(suite);                                                             \
        srunner_run_all(runner, CK_NORMAL);                                                                  \
        int failed = srunner_ntests_failed(runner);                                                          \
        srunner_free(runner);                                                                                \
        return failed != 0;                                                                                  \
    }

#endif
