// SPDX-License-Identifier: Apache-2.0
// PyTorch's rules, one by one: sizes, pools, splits, the ladder, streams, and what the statistics say of them.
#include <stdio.h>
#include <string.h>

#include "memory/caching.h"
#include "memory/caching_round.h"
#include "refusing.h"

#define MIB HR_MIB

static allocator_config plain(uint64_t limit_bytes)
{
    return allocator_config_of("caching", limit_bytes);
}

static refusing source;

static heap open_heap(const allocator_config *config)
{
    source = (refusing){0};
    uint64_t bytes = config->device_bytes != 0 ? config->device_bytes : config->limit_bytes;
    return heap_over(config, refusing_open(&source, bytes, true), NULL);
}

static uint64_t alloc_on(heap *h, uint64_t bytes, uint32_t stream)
{
    uint64_t address = 0;
    hr_err err;
    allocator_request r = {.bytes = bytes, .tensor = 7, .stream = stream};
    ck_assert_msg(allocator_serve(h->allocator, &r, &address, &err) == HR_OK, "%s", err.sentence);
    heap_must_be_sound(h);
    return address;
}

static void free_it(heap *h, uint64_t address)
{
    heap_free(h, address);
    heap_must_be_sound(h);
}

typedef struct wanted {
    const char *name;
    uint64_t value;
    bool found;
} wanted;

static void look_for(void *context, const char *name, uint64_t value)
{
    wanted *w = context;
    if (strcmp(w->name, name) == 0) {
        w->value = value;
        w->found = true;
    }
}

static uint64_t stat_of(const heap *h, const char *name)
{
    wanted w = {.name = name};
    h->allocator->ops->statistics(h->allocator, look_for, &w);
    ck_assert_msg(w.found, "no statistic %s", name);
    return w.value;
}

static uint64_t pool_of(const heap *h)
{
    return allocator_get_stats(h->allocator).pool_bytes;
}

// ---- sizes ----------------------------------------------------------------------------------------------------

START_TEST(requests_are_rounded_as_pytorch_rounds_them)
{
    static const struct {
        uint64_t bytes;
        uint32_t divisions;
        uint64_t rounded;
    } rows[] = {
        {1, 0, 512},
        {511, 4, 512},
        {512, 0, 512},
        {513, 0, 1024},
        {1200, 0, 1536},
        {1200, 4, 1536}, // not above 512 · 4: allocators.md §9.1
        {2048, 4, 2048},
        {2049, 4, 2560},
        {5000, 4, 5120},
        {5000, 8, 5120},
        {5000, 2, 6144},
        {5000, 1, 5120},
        {4096, 8, 4096},
        {4097, 8, 4608},
        {20 * MIB + 1, 8, 22 * MIB},
        {33 * MIB, 4, 40 * MIB},
        {64 * MIB, 4, 64 * MIB},
        {64 * MIB + 1, 1, 64 * MIB + 512},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        caching_options o = {0};
        for (int d = 0; d < CACHING_ROUNDUP_SIZES; d++) {
            o.roundup_divisions[d] = rows[k].divisions;
        }
        ck_assert_uint_eq(caching_round(&o, rows[k].bytes), rows[k].rounded);
    }
}
END_TEST

START_TEST(divisions_belong_to_powers_of_two_from_one_mebibyte)
{
    caching_options o = {.roundup_divisions = {2, 4, [15] = 8}};
    ck_assert_uint_eq(caching_round(&o, 5000), 6144);                     // below 1 MiB: the first
    ck_assert_uint_eq(caching_round(&o, MIB + 1), MIB + MIB / 2);         // 1 … 2 MiB: the first
    ck_assert_uint_eq(caching_round(&o, 2 * MIB + 1), 2 * MIB + MIB / 2); // 2 … 4 MiB
    ck_assert_uint_eq(caching_round(&o, 4 * MIB + 1), 4 * MIB + 512);
    ck_assert_uint_eq(caching_round(&o, 32 * HR_GIB + 1), 36 * HR_GIB);
    ck_assert_uint_eq(caching_round(&o, 128 * HR_GIB + 1), 144 * HR_GIB); // above 64 GiB: the last
}
END_TEST

START_TEST(segments_have_three_sizes)
{
    caching_options o = {.large_segment_bytes = 20 * MIB};
    ck_assert_uint_eq(caching_segment_bytes(&o, 512), 2 * MIB);
    ck_assert_uint_eq(caching_segment_bytes(&o, MIB), 2 * MIB);
    ck_assert_uint_eq(caching_segment_bytes(&o, MIB + 512), 20 * MIB);
    ck_assert_uint_eq(caching_segment_bytes(&o, 10 * MIB - 512), 20 * MIB);
    ck_assert_uint_eq(caching_segment_bytes(&o, 10 * MIB), 10 * MIB);
    ck_assert_uint_eq(caching_segment_bytes(&o, 10 * MIB + 512), 12 * MIB);
    ck_assert_uint_eq(caching_segment_bytes(&o, 21 * MIB), 22 * MIB);
    o.large_segment_bytes = 32 * MIB;
    ck_assert_uint_eq(caching_segment_bytes(&o, 2 * MIB), 32 * MIB);
}
END_TEST

// ---- pools and splits -----------------------------------------------------------------------------------------

START_TEST(small_blocks_share_a_segment_and_large_ones_another)
{
    allocator_config config = plain(HR_GIB);
    heap h = open_heap(&config);
    uint64_t a = alloc_on(&h, 100, 0), b = alloc_on(&h, 1000, 0), c = alloc_on(&h, 2 * MIB, 0);
    uint64_t d = alloc_on(&h, 3 * MIB, 0);
    ck_assert_uint_eq(b, a + 512);
    ck_assert_uint_eq(c, a + 2 * MIB);
    ck_assert_uint_eq(d, c + 2 * MIB);
    ck_assert_uint_eq(pool_of(&h), 22 * MIB);
    heap_counters s = allocator_get_stats(h.allocator);
    ck_assert_uint_eq(s.requested_bytes, 1100 + 5 * MIB);
    ck_assert_uint_eq(s.in_use_bytes, 1536 + 5 * MIB);
    heap_close(&h);
}
END_TEST

START_TEST(a_large_block_is_split_when_more_than_a_mebibyte_is_left)
{
    allocator_config config = plain(HR_GIB);
    heap h = open_heap(&config);
    uint64_t a = alloc_on(&h, 12 * MIB, 0);
    free_it(&h, a);
    ck_assert_uint_eq(alloc_on(&h, 11 * MIB, 0), a); // exactly 1 MiB is left: not split
    ck_assert_uint_eq(allocator_get_stats(h.allocator).in_use_bytes, 12 * MIB);
    free_it(&h, a);
    ck_assert_uint_eq(alloc_on(&h, 11 * MIB - 512, 0), a);
    ck_assert_uint_eq(allocator_get_stats(h.allocator).in_use_bytes, 11 * MIB - 512);
    heap_close(&h);
}
END_TEST

START_TEST(a_cached_block_serves_its_own_stream_only)
{
    allocator_config config = plain(HR_GIB);
    heap h = open_heap(&config);
    uint64_t a = alloc_on(&h, 100 * MIB, 1);
    free_it(&h, a);
    uint64_t b = alloc_on(&h, 100 * MIB, 2);
    ck_assert_uint_ne(a, b);
    ck_assert_uint_eq(pool_of(&h), 200 * MIB);
    ck_assert_uint_eq(alloc_on(&h, 100 * MIB, 1), a);
    heap_close(&h);
}
END_TEST

START_TEST(freed_blocks_merge_with_both_neighbours)
{
    allocator_config config = plain(HR_GIB);
    heap h = open_heap(&config);
    uint64_t block[4];
    for (int k = 0; k < 4; k++) {
        block[k] = alloc_on(&h, 512 * HR_KIB, 0);
    }
    free_it(&h, block[0]);
    free_it(&h, block[2]);
    ck_assert_uint_eq(stat_of(&h, "inactive_split.small_pool.current"), 2);
    free_it(&h, block[1]);
    ck_assert_uint_eq(stat_of(&h, "inactive_split.all.current"), 1);
    ck_assert_uint_eq(stat_of(&h, "inactive_split_bytes.all.current"), 3 * 512 * HR_KIB);
    ck_assert_uint_eq(alloc_on(&h, MIB, 0), block[0]);
    free_it(&h, block[3]);
    free_it(&h, block[0]);
    ck_assert_uint_eq(stat_of(&h, "inactive_split.all.current"), 0);
    ck_assert_uint_eq(pool_of(&h), 2 * MIB);
    heap_close(&h);
}
END_TEST

START_TEST(zero_bytes_and_too_many_are_no_blocks)
{
    allocator_config config = plain(64 * MIB);
    heap h = open_heap(&config);
    uint64_t address = 1;
    ck_assert_int_eq(allocator_alloc(h.allocator, 0, HR_NO_ID, &address, NULL), HR_OK);
    ck_assert_uint_eq(address, 0);
    ck_assert(heap_refuses(&h, UINT64_MAX));
    ck_assert(heap_refuses(&h, CACHING_REQUEST_END));
    ck_assert(heap_refuses(&h, CACHING_REQUEST_END - 1));
    ck_assert_uint_eq(source.asked, 0);
    heap_must_be_sound(&h);
    heap_close(&h);
}
END_TEST

// ---- max_split_size -------------------------------------------------------------------------------------------

START_TEST(oversize_blocks_are_kept_for_oversize_requests)
{
    allocator_config config = plain(HR_GIB);
    config.caching.max_split_bytes = 40 * MIB;
    heap h = open_heap(&config);
    uint64_t big = alloc_on(&h, 100 * MIB, 0);
    ck_assert_uint_eq(stat_of(&h, "oversize_allocations.current"), 1);
    ck_assert_uint_eq(stat_of(&h, "oversize_segments.current"), 1);
    ck_assert_uint_eq(stat_of(&h, "max_split_size"), 40 * MIB);
    free_it(&h, big);
    ck_assert_uint_ne(alloc_on(&h, 30 * MIB, 0), big);              // not oversize
    ck_assert_uint_ne(alloc_on(&h, 80 * MIB, 0), big);              // 20 MiB too large
    ck_assert_uint_eq(alloc_on(&h, 80 * MIB + 2 * HR_KIB, 0), big); // and never split
    ck_assert_uint_eq(allocator_get_stats(h.allocator).in_use_bytes, (30 + 80 + 100) * MIB);
    heap_close(&h);
}
END_TEST

START_TEST(one_oversize_block_goes_back_or_several_the_largest_first)
{
    allocator_config config = plain(200 * MIB);
    config.caching.max_split_bytes = 40 * MIB;
    heap h = open_heap(&config);
    uint64_t a = alloc_on(&h, 50 * MIB, 0), b = alloc_on(&h, 60 * MIB, 0), c = alloc_on(&h, 70 * MIB, 0);
    free_it(&h, a);
    free_it(&h, b);
    free_it(&h, c);
    (void)alloc_on(&h, 30 * MIB, 0); // 210 MiB: the smallest that is oversize goes
    ck_assert_uint_eq(pool_of(&h), (30 + 60 + 70) * MIB);
    (void)alloc_on(&h, 110 * MIB, 0); // none is as large: both go, 70 first
    ck_assert_uint_eq(pool_of(&h), 140 * MIB);
    ck_assert_uint_eq(stat_of(&h, "num_alloc_retries"), 0);
    ck_assert_uint_eq(stat_of(&h, "num_device_free"), 3);
    heap_close(&h);
}
END_TEST

// ---- the ladder -----------------------------------------------------------------------------------------------

START_TEST(all_unsplit_blocks_go_back_before_running_out)
{
    allocator_config config = plain(100 * MIB);
    heap h = open_heap(&config);
    uint64_t a = alloc_on(&h, 40 * MIB, 0), b = alloc_on(&h, 30 * MIB, 1), c = alloc_on(&h, 1000, 2);
    uint64_t d = alloc_on(&h, 3 * MIB, 0); // splits 20 MiB
    free_it(&h, a);
    free_it(&h, b);
    free_it(&h, c);
    (void)alloc_on(&h, 60 * MIB, 3);
    ck_assert_uint_eq(pool_of(&h), 80 * MIB); // 20 is split, the other three went
    ck_assert_uint_eq(stat_of(&h, "num_alloc_retries"), 1);
    ck_assert_uint_eq(stat_of(&h, "num_sync_all_streams"), 1);
    ck_assert_uint_eq(stat_of(&h, "num_ooms"), 0);
    ck_assert(heap_refuses(&h, 21 * MIB));
    ck_assert_uint_eq(stat_of(&h, "num_ooms"), 1);
    ck_assert_uint_eq(stat_of(&h, "num_alloc_retries"), 2);
    const heap_refusal *refusal = &h.allocator->refusal;
    ck_assert(refusal->any);
    ck_assert_uint_eq(refusal->requested_bytes, 21 * MIB);
    ck_assert_uint_eq(refusal->driver_bytes, 22 * MIB);
    ck_assert(heap_refuses(&h, 21 * MIB + 1));
    ck_assert_uint_eq(refusal->rounded_bytes, 21 * MIB + 512);
    free_it(&h, d);
    heap_close(&h);
}
END_TEST

// pytorch/pytorch#189504: the pools are not looked at again once the events have been waited for.
START_TEST(what_the_wait_set_free_is_given_back_or_passed_over)
{
    allocator_config config = plain(42 * MIB);
    heap h = open_heap(&config);
    uint64_t a = alloc_on(&h, 3 * MIB, 0), b = alloc_on(&h, 9 * MIB, 0), c = alloc_on(&h, 8 * MIB, 0);
    (void)alloc_on(&h, 20 * MIB, 0);
    ck_assert_int_eq(caching_record_stream(h.allocator, b, 1, NULL), HR_OK);
    free_it(&h, b);
    ck_assert(heap_refuses(&h, 9 * MIB));
    ck_assert_uint_eq(allocator_get_stats(h.allocator).largest_free_bytes, 9 * MIB);
    ck_assert_uint_eq(alloc_on(&h, 9 * MIB, 0), b);
    free_it(&h, a);
    free_it(&h, c);
    heap_close(&h);
}
END_TEST

START_TEST(early_refusals_leave_the_cache_alone)
{
    allocator_config config = plain(100 * MIB);
    config.caching.refuses_early = true;
    heap h = open_heap(&config);
    uint64_t a = alloc_on(&h, 60 * MIB, 0);
    free_it(&h, a);
    ck_assert(heap_refuses(&h, 70 * MIB));
    ck_assert_uint_eq(stat_of(&h, "num_oom_rejections"), 1);
    ck_assert_uint_eq(stat_of(&h, "num_ooms"), 0);
    ck_assert_uint_eq(pool_of(&h), 60 * MIB);
    heap_close(&h);
    config.device_bytes = HR_GIB;
    config.limit_is_fraction = true; // PyTorch 2.15 looks at the fraction first, and climbs the whole ladder
    h = open_heap(&config);
    a = alloc_on(&h, 60 * MIB, 0);
    free_it(&h, a);
    (void)alloc_on(&h, 70 * MIB, 0);
    ck_assert_uint_eq(stat_of(&h, "num_oom_rejections"), 0);
    ck_assert_uint_eq(stat_of(&h, "num_alloc_retries"), 1);
    heap_close(&h);
}
END_TEST

// Ages count searches of the large pool while collection is on; all at or above the mean go, even more than needed.
START_TEST(old_segments_are_collected_above_the_threshold)
{
    allocator_config config = plain(200 * MIB);
    config.device_bytes = HR_GIB;
    config.limit_is_fraction = true;
    config.caching.gc_threshold = 0.5;
    heap h = open_heap(&config);
    uint64_t a = alloc_on(&h, 30 * MIB, 0), b = alloc_on(&h, 32 * MIB, 0), c = alloc_on(&h, 34 * MIB, 0);
    free_it(&h, a);                  // age 0 at search 3
    free_it(&h, b);                  // 3
    (void)alloc_on(&h, 36 * MIB, 0); // search 4: 96 MiB are below 100, 36 come
    free_it(&h, c);                  // 4
    (void)alloc_on(&h, 38 * MIB, 0); // search 5: 132 − 100 to go; ages 2, 2, 1, mean 5/3
    ck_assert_uint_eq(stat_of(&h, "num_device_free"), 2); // both old ones, 62 MiB
    ck_assert_uint_eq(pool_of(&h), (34 + 36 + 38) * MIB);
    ck_assert_uint_eq(stat_of(&h, "num_alloc_retries"), 0);
    heap_close(&h);
    config.limit_is_fraction = false;
    h = open_heap(&config);
    a = alloc_on(&h, 120 * MIB, 0);
    free_it(&h, a);
    (void)alloc_on(&h, 122 * MIB, 0); // no fraction: only the ladder gives back
    ck_assert_uint_eq(stat_of(&h, "num_alloc_retries"), 1);
    heap_close(&h);
}
END_TEST

// ---- streams --------------------------------------------------------------------------------------------------

static bool find_pending(void *context, const heap_chunk *c)
{
    uint64_t *bytes = context;
    *bytes += c->pending ? c->size_bytes : 0;
    MUST(!c->pending || (c->in_use && c->requested_bytes > 0 && c->stream == 1));
    return true;
}

static uint64_t pending_bytes(const heap *h)
{
    uint64_t bytes = 0;
    h->allocator->ops->walk(h->allocator, find_pending, &bytes);
    return bytes;
}

START_TEST(a_shared_block_waits_for_every_stream)
{
    allocator_config config = plain(HR_GIB);
    heap h = open_heap(&config);
    uint64_t a = alloc_on(&h, 1000, 1);
    for (uint32_t stream = 1; stream <= 3; stream++) { // its own needs no event
        ck_assert_int_eq(caching_record_stream(h.allocator, a, stream, NULL), HR_OK);
        ck_assert_int_eq(caching_record_stream(h.allocator, a, stream, NULL), HR_OK);
    }
    caching_events_done(h.allocator, 2); // before the release: of no use
    free_it(&h, a);
    ck_assert_uint_eq(pending_bytes(&h), 1024);
    ck_assert_uint_eq(stat_of(&h, "allocated_bytes.all.current"), 0);
    ck_assert_uint_eq(stat_of(&h, "active_bytes.all.current"), 1024);
    ck_assert_uint_eq(stat_of(&h, "requested_bytes.all.current"), 1000); // allocators.md §9.2
    ck_assert_uint_eq(allocator_get_stats(h.allocator).in_use_bytes, 1024);
    ck_assert_uint_eq(alloc_on(&h, 1000, 1), a + 1024);
    caching_events_done(h.allocator, 3);
    caching_events_done(h.allocator, 1);
    ck_assert_uint_eq(pending_bytes(&h), 1024);
    caching_events_done(h.allocator, 2);
    ck_assert_uint_eq(pending_bytes(&h), 0);
    ck_assert_uint_eq(stat_of(&h, "active.all.current"), 1);
    ck_assert_uint_eq(alloc_on(&h, 1000, 1), a);
    heap_close(&h);
}
END_TEST

START_TEST(when_all_streams_have_arrived_nothing_waits)
{
    allocator_config config = plain(HR_GIB);
    heap h = open_heap(&config);
    uint64_t a = alloc_on(&h, 1000, 1), b = alloc_on(&h, 2000, 1);
    ck_assert_int_eq(caching_record_stream(h.allocator, a, 2, NULL), HR_OK);
    ck_assert_int_eq(caching_record_stream(h.allocator, a, 3, NULL), HR_OK);
    ck_assert_int_eq(caching_record_stream(h.allocator, b, 2, NULL), HR_OK);
    free_it(&h, a);
    allocator_synchronise(h.allocator);
    heap_must_be_sound(&h);
    ck_assert_uint_eq(pending_bytes(&h), 0);
    ck_assert_uint_eq(stat_of(&h, "num_sync_all_streams"), 0); // PyTorch would have found out by itself
    free_it(&h, b);                                            // what was recorded before still counts
    ck_assert_uint_eq(pending_bytes(&h), 2048);
    heap_close(&h);
}
END_TEST

START_TEST(only_living_blocks_are_shared)
{
    allocator_config config = plain(HR_GIB);
    heap h = open_heap(&config);
    hr_err err = {0};
    ck_assert_int_eq(caching_record_stream(h.allocator, 12345, 1, &err), HR_STATE);
    uint64_t a = alloc_on(&h, 1000, 0);
    free_it(&h, a);
    ck_assert_int_eq(caching_record_stream(h.allocator, a, 1, &err), HR_STATE);
    ck_assert_str_eq(err.sentence, "caching allocator: no living block begins at 0x10000000000");
    heap_close(&h);
}
END_TEST

START_TEST(a_thousand_streams_have_queues_of_their_own)
{
    allocator_config config = plain(8 * HR_GIB);
    heap h = open_heap(&config);
    enum { STREAMS = 1000 };
    static uint64_t block[STREAMS];
    for (uint32_t k = 0; k < STREAMS; k++) {
        uint32_t stream = k * 7919 % STREAMS;
        block[stream] = heap_alloc(&h, 100);
        heap_free(&h, block[stream]);
        allocator_request r = {.bytes = 2 * MIB, .tensor = HR_NO_ID, .stream = stream + 1};
        ck_assert_int_eq(allocator_serve(h.allocator, &r, &block[stream], NULL), k < 409 ? HR_OK : HR_OOM);
    }
    heap_must_be_sound(&h);
    heap_close(&h);
}
END_TEST

// ---- what it shows --------------------------------------------------------------------------------------------

typedef struct order {
    char last[64];
    int count;
} order;

static void check_order(void *context, const char *name, uint64_t value)
{
    order *o = context;
    (void)value;
    ck_assert_msg(strcmp(o->last, name) < 0, "%s behind %s", name, o->last);
    (void)snprintf(o->last, sizeof o->last, "%s", name);
    o->count++;
}

START_TEST(statistics_are_those_of_memory_stats_in_its_order)
{
    allocator_config config = plain(HR_GIB);
    heap h = open_heap(&config);
    order o = {.last = ""};
    h.allocator->ops->statistics(h.allocator, check_order, &o);
    ck_assert_int_eq(o.count, 9 * 3 * 4 + 2 * 4 + 7);
    ck_assert_uint_eq(stat_of(&h, "max_split_size"), UINT64_MAX);
    uint64_t a = alloc_on(&h, 600, 0), b = alloc_on(&h, 12 * MIB, 0);
    free_it(&h, a);
    ck_assert_uint_eq(stat_of(&h, "allocation.all.allocated"), 2);
    ck_assert_uint_eq(stat_of(&h, "allocation.all.freed"), 1);
    ck_assert_uint_eq(stat_of(&h, "allocation.all.peak"), 2);
    ck_assert_uint_eq(stat_of(&h, "allocation.small_pool.current"), 0);
    ck_assert_uint_eq(stat_of(&h, "allocation.large_pool.current"), 1);
    ck_assert_uint_eq(stat_of(&h, "allocated_bytes.all.peak"), 12 * MIB + 1024);
    ck_assert_uint_eq(stat_of(&h, "requested_bytes.all.allocated"), 12 * MIB + 600);
    ck_assert_uint_eq(stat_of(&h, "reserved_bytes.small_pool.current"), 2 * MIB);
    ck_assert_uint_eq(stat_of(&h, "reserved_bytes.large_pool.current"), 12 * MIB);
    ck_assert_uint_eq(stat_of(&h, "segment.all.current"), 2);
    ck_assert_uint_eq(stat_of(&h, "num_device_alloc"), 2);
    free_it(&h, b);
    heap_close(&h);
}
END_TEST

static bool note_kind(void *context, const heap_chunk *c)
{
    uint32_t *kinds = context;
    *kinds |= 1u << c->region_kind;
    return true;
}

START_TEST(regions_say_what_they_are)
{
    allocator_config config = plain(HR_GIB);
    for (int expandable = 0; expandable < 2; expandable++) {
        uint32_t kinds = 0;
        config.caching.expandable_segments = expandable == 1;
        heap h = open_heap(&config);
        (void)alloc_on(&h, 100, 0);
        (void)alloc_on(&h, 5 * MIB, 0);
        h.allocator->ops->walk(h.allocator, note_kind, &kinds);
        ck_assert_uint_eq(kinds, expandable == 1 ? 1u << HEAP_REGION_EXPANDABLE
                                                 : 1u << HEAP_REGION_SMALL | 1u << HEAP_REGION_LARGE);
        heap_close(&h);
    }
}
END_TEST

START_TEST(the_bookkeeping_is_small)
{
    allocator_config config = plain(HR_GIB);
    heap h = open_heap(&config);
    enum { BLOCKS = 100000 };
    for (int k = 0; k < BLOCKS; k++) {
        (void)heap_alloc(&h, 512);
    }
    ck_assert_uint_le(h.allocator->ops->metadata(h.allocator), BLOCKS * 64 + pool_of(&h) / 1000);
    heap_close(&h);
}
END_TEST

START_TEST(a_coarse_device_is_refused)
{
    scripted script = {0};
    backing rough = scripted_backing(&script, false);
    allocator_config config = plain(HR_GIB);
    allocator *a = NULL;
    hr_err err = {0};
    ck_assert_int_eq(allocator_create(&config, &rough, NULL, &a, &err), HR_DEVICE);
    ck_assert_str_eq(err.sentence,
                     "caching: needed ranges at multiples of 512 bytes, the device aligns to 256");
    ck_assert_ptr_null(a);
}
END_TEST

// A program of requests whose addresses were looked at once: what decides must not drift.
static uint64_t play_golden(const allocator_config *config)
{
    enum { STEPS = 4000, LIVE = 64 };
    heap h = open_heap(config);
    uint64_t seed = 99, sum = 0, live[LIVE] = {0};
    for (int k = 0; k < STEPS; k++) {
        uint64_t at = random_between(&seed, 0, LIVE - 1);
        if (live[at] != 0) {
            heap_free(&h, live[at]);
            live[at] = 0;
        }
        uint64_t span = 40 * MIB >> random_between(&seed, 0, 14);
        uint64_t bytes = random_between(&seed, 1, span);
        allocator_request r = {.bytes = bytes, .tensor = HR_NO_ID, .stream = k % 7 == 0};
        hr_status status = allocator_serve(h.allocator, &r, &live[at], NULL);
        MUST(status == HR_OK || status == HR_OOM);
        sum = (sum ^ live[at]) * UINT64_C(0x100000001B3);
    }
    heap_must_be_sound(&h);
    heap_close(&h);
    return sum;
}

START_TEST(addresses_are_the_golden_ones)
{
    static const struct {
        uint64_t max_split_bytes;
        double gc_threshold;
        bool expandable;
        caching_order order;
        uint64_t sum;
    } rows[] = {
        {UINT64_MAX, 0, false, CACHING_BY_ADDRESS, UINT64_C(0x6138FC6048F62C00)},
        {24 * MIB, 0, false, CACHING_BY_ADDRESS, UINT64_C(0xB75F57A4009F4200)},
        {24 * MIB, 0.6, false, CACHING_BY_ADDRESS, UINT64_C(0x51827C40B64E6800)},
        {UINT64_MAX, 0, true, CACHING_BY_ADDRESS, UINT64_C(0xD73DCD6287A3F800)},
        {UINT64_MAX, 0, false, CACHING_BY_SEGMENT, UINT64_C(0x1EFE353B718AD600)},
        {24 * MIB, 0, false, CACHING_BY_SEGMENT, UINT64_C(0x81495DAF7FA15200)},
        {24 * MIB, 0.6, false, CACHING_BY_SEGMENT, UINT64_C(0xB60CDC3B55E9BA00)},
        {UINT64_MAX, 0, true, CACHING_BY_SEGMENT, UINT64_C(0xD73DCD6287A3F800)},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        allocator_config config = plain(300 * MIB);
        config.device_bytes = HR_GIB;
        config.limit_is_fraction = rows[k].gc_threshold > 0;
        config.caching.max_split_bytes = rows[k].max_split_bytes;
        config.caching.gc_threshold = rows[k].gc_threshold;
        config.caching.expandable_segments = rows[k].expandable;
        config.caching.order = rows[k].order;
        ck_assert_msg(play_golden(&config) == rows[k].sum, "row %zu: %#llx", k,
                      (unsigned long long)play_golden(&config));
    }
}
END_TEST

// Two free segments of 20 MiB; `turned`: the one at the lower address was taken last.
static heap two_segments(bool turned, caching_order by)
{
    allocator_config config = plain(60 * MIB);
    config.caching.order = by;
    heap h = open_heap(&config);
    uint64_t low = heap_alloc(&h, 20 * MIB), high = heap_alloc(&h, 20 * MIB);
    if (turned) {
        heap_free(&h, low);
        MUST(heap_refuses(&h, 60 * MIB)); // which gives the lower one back
        low = heap_alloc(&h, 20 * MIB);
        MUST(low < high);
    }
    heap_free(&h, low);
    heap_free(&h, high);
    return h;
}

START_TEST(the_hash_knows_which_segment_is_taken_next)
{
    static const struct {
        caching_order order;
        bool matters;
    } rows[] = {{CACHING_BY_SEGMENT, true}, {CACHING_BY_BLOCK, true}, {CACHING_BY_ADDRESS, false}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        heap plain_one = two_segments(false, rows[k].order);
        const uint64_t hash = plain_one.allocator->ops->hash(plain_one.allocator);
        const uint64_t first = heap_alloc(&plain_one, 20 * MIB);
        heap_close(&plain_one);
        heap turned_one = two_segments(true, rows[k].order);
        const bool differs = turned_one.allocator->ops->hash(turned_one.allocator) != hash;
        ck_assert(differs == rows[k].matters);
        ck_assert((heap_alloc(&turned_one, 20 * MIB) != first) == rows[k].matters);
        heap_close(&turned_one);
    }
}
END_TEST

static Suite *caching_suite(void)
{
    Suite *suite = suite_create("caching");
    TCase *sizes = tcase_create("sizes");
    tcase_add_test(sizes, requests_are_rounded_as_pytorch_rounds_them);
    tcase_add_test(sizes, divisions_belong_to_powers_of_two_from_one_mebibyte);
    tcase_add_test(sizes, segments_have_three_sizes);
    suite_add_tcase(suite, sizes);
    TCase *pools = tcase_create("pools and splits");
    tcase_add_test(pools, small_blocks_share_a_segment_and_large_ones_another);
    tcase_add_test(pools, a_large_block_is_split_when_more_than_a_mebibyte_is_left);
    tcase_add_test(pools, a_cached_block_serves_its_own_stream_only);
    tcase_add_test(pools, freed_blocks_merge_with_both_neighbours);
    tcase_add_test(pools, zero_bytes_and_too_many_are_no_blocks);
    tcase_add_test(pools, oversize_blocks_are_kept_for_oversize_requests);
    tcase_add_test(pools, one_oversize_block_goes_back_or_several_the_largest_first);
    suite_add_tcase(suite, pools);
    TCase *ladder = tcase_create("ladder");
    tcase_add_test(ladder, all_unsplit_blocks_go_back_before_running_out);
    tcase_add_test(ladder, what_the_wait_set_free_is_given_back_or_passed_over);
    tcase_add_test(ladder, early_refusals_leave_the_cache_alone);
    tcase_add_test(ladder, old_segments_are_collected_above_the_threshold);
    suite_add_tcase(suite, ladder);
    TCase *streams = tcase_create("streams");
    tcase_add_test(streams, a_shared_block_waits_for_every_stream);
    tcase_add_test(streams, when_all_streams_have_arrived_nothing_waits);
    tcase_add_test(streams, only_living_blocks_are_shared);
    tcase_add_test(streams, a_thousand_streams_have_queues_of_their_own);
    suite_add_tcase(suite, streams);
    TCase *shown = tcase_create("what it shows");
    tcase_add_test(shown, statistics_are_those_of_memory_stats_in_its_order);
    tcase_add_test(shown, regions_say_what_they_are);
    tcase_add_test(shown, the_bookkeeping_is_small);
    tcase_add_test(shown, a_coarse_device_is_refused);
    tcase_add_test(shown, addresses_are_the_golden_ones);
    tcase_add_test(shown, the_hash_knows_which_segment_is_taken_next);
    suite_add_tcase(suite, shown);
    return suite;
}

TEST_MAIN(caching_suite())
