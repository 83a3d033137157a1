// SPDX-License-Identifier: Apache-2.0
// BFC against TensorFlow: the oracles of the reference, its own unit tests mirrored, and its numbers.
//   1 rounding, splitting, coalescing   2 growth, backpedal, collection of regions   3 counters and events
#include <string.h>

#include "heap.h"
#include "memory/bfc.h"
#include "memory/bins.h"

enum { BLOCKS_MAX = 4096 };

static uint64_t blocks[BLOCKS_MAX];

static heap_counters stats_of(const heap *h)
{
    return allocator_get_stats(h->allocator);
}

// ---- 1 rounding, splitting, coalescing ------------------------------------------------------------------------

START_TEST(bins_hold_the_sizes_of_tensorflow)
{
    ck_assert_uint_eq(bins_of(1), 0);
    ck_assert_uint_eq(bins_of(256), 0);
    ck_assert_uint_eq(bins_of(511), 0);
    ck_assert_uint_eq(bins_of(512), 1);
    ck_assert_uint_eq(bins_of(HR_MIB), 12);
    ck_assert_uint_eq(bins_of(4 * HR_MIB), 14);
    ck_assert_uint_eq(bins_of(256 * HR_MIB - 1), 19);
    ck_assert_uint_eq(bins_of(256 * HR_MIB), 20);
    ck_assert_uint_eq(bins_of(8 * HR_GIB), 20);
}
END_TEST

START_TEST(a_request_takes_whole_256_bytes)
{
    allocator_config config = bfc_config(HR_GIB, true);
    heap h = heap_open(&config);
    uint64_t address = heap_alloc(&h, 4);
    ck_assert_uint_eq(address % 256, 0);
    ck_assert_uint_eq(stats_of(&h).requested_bytes, 4);
    ck_assert_uint_eq(stats_of(&h).in_use_bytes, 256);
    heap_close(&h);
}
END_TEST

START_TEST(zero_bytes_are_nowhere_and_not_counted)
{
    allocator_config config = bfc_config(HR_GIB, true);
    heap h = heap_open(&config);
    ck_assert_uint_eq(heap_alloc(&h, 0), 0);
    heap_free(&h, 0);
    ck_assert_uint_eq(stats_of(&h).allocations, 0);
    ck_assert_uint_eq(stats_of(&h).pool_bytes, 0);
    heap_close(&h);
}
END_TEST

// Leaves one free chunk of `free_bytes` between two pins, then asks; what of the chunk was handed out.
static uint64_t handed_out(uint64_t free_bytes, uint64_t request_bytes)
{
    allocator_config config = bfc_config(HR_GIB, false);
    heap h = heap_open(&config);
    uint64_t hole = heap_alloc(&h, free_bytes);
    (void)heap_alloc(&h, 256);
    heap_free(&h, hole);
    uint64_t before_bytes = stats_of(&h).in_use_bytes;
    ck_assert_uint_eq(heap_alloc(&h, request_bytes), hole);
    uint64_t served_bytes = stats_of(&h).in_use_bytes - before_bytes;
    heap_must_be_sound(&h);
    heap_close(&h);
    return served_bytes;
}

START_TEST(a_chunk_is_split_when_it_has_twice_the_bytes_or_128_mib_to_spare)
{
    ck_assert_uint_eq(handed_out(1024, 512), 512);
    ck_assert_uint_eq(handed_out(1024, 768), 1024);
    ck_assert_uint_eq(handed_out(400 * HR_MIB, 300 * HR_MIB), 400 * HR_MIB);
    ck_assert_uint_eq(handed_out(430 * HR_MIB, 300 * HR_MIB), 300 * HR_MIB);
    ck_assert_uint_eq(handed_out(428 * HR_MIB, 300 * HR_MIB), 300 * HR_MIB);
    ck_assert_uint_eq(handed_out(428 * HR_MIB - 256, 300 * HR_MIB), 428 * HR_MIB - 256);
}
END_TEST

START_TEST(the_smallest_hole_that_is_large_enough_wins_and_the_lowest_among_equals)
{
    allocator_config config = bfc_config(64 * HR_MIB, false);
    heap h = heap_open(&config);
    const uint64_t sizes[] = {1536, 1280, 1024, 1280, 512};
    uint64_t holes[5];
    for (int i = 0; i < 5; i++) {
        holes[i] = heap_alloc(&h, sizes[i]);
        (void)heap_alloc(&h, 256);
    }
    for (int i = 4; i >= 0; i--) {
        heap_free(&h, holes[i]);
    }
    ck_assert_uint_eq(heap_alloc(&h, 1200), holes[1]);
    ck_assert_uint_eq(heap_alloc(&h, 1200), holes[3]);
    ck_assert_uint_eq(heap_alloc(&h, 1200), holes[0]);
    heap_close(&h);
}
END_TEST

START_TEST(freed_neighbours_become_one_chunk_from_either_side)
{
    allocator_config config = bfc_config(HR_MIB, false);
    heap h = heap_open(&config);
    uint64_t first = heap_alloc(&h, 1024), middle = heap_alloc(&h, 1024), last = heap_alloc(&h, 1024);
    heap_free(&h, first);
    heap_free(&h, last);
    ck_assert_uint_eq(heap_look(&h).chunks, 3);
    heap_free(&h, middle);
    ck_assert_uint_eq(heap_look(&h).chunks, 1);
    ck_assert_uint_eq(stats_of(&h).largest_free_bytes, HR_MIB);
    heap_close(&h);
}
END_TEST

START_TEST(no_duplicates)
{
    allocator_config config = bfc_config(HR_GIB, true);
    heap h = heap_open(&config);
    for (uint32_t i = 0; i < 1023; i++) {
        blocks[i] = heap_alloc(&h, i + 1);
    }
    heap_must_be_sound(&h); // tiling: all are distinct
    heap_counters s = stats_of(&h);
    ck_assert_uint_eq(s.allocations, 1023);
    ck_assert_uint_eq(s.in_use_bytes, 654336);
    ck_assert_uint_eq(s.peak_in_use_bytes, 654336);
    ck_assert_uint_eq(s.largest_allocation_bytes, 1024);
    for (uint32_t i = 0; i < 1023; i++) {
        heap_free(&h, blocks[i]);
    }
    ck_assert_uint_eq(stats_of(&h).in_use_bytes, 0);
    ck_assert_uint_eq(stats_of(&h).peak_in_use_bytes, 654336);
    heap_close(&h);
}
END_TEST

START_TEST(allocations_and_deallocations)
{
    allocator_config config = bfc_config(HR_GIB, true);
    heap h = heap_open(&config);
    uint64_t seed = 17;
    for (uint32_t i = 0; i < 255; i++) {
        blocks[i] = heap_alloc(&h, random_between(&seed, 100, HR_MIB));
    }
    for (uint32_t i = 1; i < 255; i += 2) {
        heap_free(&h, blocks[i]);
    }
    ck_assert(heap_refuses(&h, HR_GIB + 1));
    for (uint32_t i = 0; i < 255; i++) {
        (void)heap_alloc(&h, random_between(&seed, 100, HR_MIB));
    }
    heap_must_be_sound(&h);
    heap_close(&h);
}
END_TEST

START_TEST(exercise_coalescing)
{
    static const uint64_t sizes[] = {4 * HR_KIB, 8 * HR_MIB, 16 * HR_KIB, 40 * HR_MIB};
    allocator_config config = bfc_config(64 * HR_GIB, false);
    heap h = heap_open(&config);
    uint64_t first = heap_alloc(&h, 4 * HR_KIB);
    heap_free(&h, first);
    uint64_t sum_bytes = 0;
    for (uint32_t i = 0; i < 1024; i++) {
        for (uint32_t j = 0; j < 4; j++) {
            blocks[4 * i + j] = heap_alloc(&h, sizes[j]);
            sum_bytes += sizes[j];
        }
    }
    for (uint32_t i = 0; i < 4096; i++) {
        heap_free(&h, blocks[i]);
    }
    heap_counters s = stats_of(&h);
    ck_assert_uint_eq(s.allocations, 4097);
    ck_assert_uint_eq(s.in_use_bytes, 0);
    ck_assert_uint_eq(s.peak_in_use_bytes, sum_bytes);
    ck_assert_uint_eq(s.largest_allocation_bytes, 41943040);
    ck_assert_uint_eq(heap_alloc(&h, 4 * HR_KIB), first);
    heap_close(&h);
}
END_TEST

START_TEST(bin_debug_info)
{
    allocator_config config = bfc_config(HR_GIB, false);
    heap h = heap_open(&config);
    for (uint32_t i = 0; i < 5; i++) {
        blocks[2 * i] = heap_alloc(&h, UINT64_C(256) << i);
        blocks[2 * i + 1] = heap_alloc(&h, UINT64_C(256) << i);
    }
    heap_view v = heap_look(&h);
    ck_assert_uint_eq(v.chunks, 11);
    ck_assert_uint_eq(v.free_chunks, 1);
    for (uint32_t i = 0; i < 5; i++) {
        heap_free(&h, blocks[2 * i]);
    }
    v = heap_look(&h);
    ck_assert_uint_eq(v.chunks - v.free_chunks, 5);
    ck_assert_uint_eq(v.free_chunks, 6);
    heap_close(&h);
}
END_TEST

START_TEST(stress_alloc_free_never_fails_within_the_pool)
{
    allocator_config config = bfc_config(16 * HR_MIB, false);
    heap h = heap_open(&config);
    uint64_t seed = 42;
    for (uint32_t round = 0; round < 20; round++) {
        for (uint32_t i = 0; i < 350; i++) {
            blocks[i] = heap_alloc(&h, random_between(&seed, 1, 16 * HR_KIB));
        }
        heap_must_be_sound(&h);
        for (uint32_t i = 350; i > 0; i--) {
            uint64_t at = random_between(&seed, 0, i - 1), freed = blocks[at];
            blocks[at] = blocks[i - 1];
            heap_free(&h, freed);
        }
        ck_assert_uint_eq(heap_look(&h).chunks, 1);
    }
    heap_close(&h);
}
END_TEST

// ---- 2 growth, backpedal, collection of regions ---------------------------------------------------------------

START_TEST(oracle_1_growth_wastes_what_one_region_does_not)
{
    static const uint64_t requests_mib[] = {1, 3, 9, 40};
    allocator_config config = bfc_config(HR_GIB, true);
    heap grown = heap_open(&config);
    config.growth = false;
    heap whole = heap_open(&config);
    for (uint32_t i = 0; i < 4; i++) {
        (void)heap_alloc(&grown, requests_mib[i] * HR_MIB);
        (void)heap_alloc(&whole, requests_mib[i] * HR_MIB);
    }
    heap_regions_must_be(&grown, (const uint64_t[]){2, 4, 16, 64}, 4);
    ck_assert_uint_eq(stats_of(&grown).pool_bytes, 86 * HR_MIB);
    ck_assert_uint_eq(stats_of(&grown).in_use_bytes, 85 * HR_MIB);
    ck_assert_uint_eq(stats_of(&grown).requested_bytes, 53 * HR_MIB);
    ck_assert_uint_eq(stats_of(&whole).in_use_bytes, 53 * HR_MIB);
    ck_assert_uint_eq(stats_of(&whole).pool_bytes, HR_GIB);
    heap_close(&grown);
    heap_close(&whole);
}
END_TEST

START_TEST(oracle_2_a_thousand_tensors_of_4_bytes)
{
    allocator_config config = bfc_config(HR_GIB, true);
    heap h = heap_open(&config);
    for (uint32_t i = 0; i < 1000; i++) {
        (void)heap_alloc(&h, 4);
    }
    ck_assert_uint_eq(stats_of(&h).requested_bytes, 4000);
    ck_assert_uint_eq(stats_of(&h).in_use_bytes, 256000);
    heap_close(&h);
}
END_TEST

START_TEST(oracle_3_64_tensors_of_1_mib_take_a_pool_of_126)
{
    allocator_config config = bfc_config(HR_GIB, true);
    heap h = heap_open(&config);
    for (uint32_t i = 0; i < 64; i++) {
        (void)heap_alloc(&h, HR_MIB);
    }
    heap_regions_must_be(&h, (const uint64_t[]){2, 4, 8, 16, 32, 64}, 6);
    ck_assert_uint_eq(stats_of(&h).pool_bytes, 126 * HR_MIB);
    heap_close(&h);
}
END_TEST

static heap with_six_pins(bool growth)
{
    allocator_config config = bfc_config(32 * HR_MIB, growth);
    heap h = heap_open(&config);
    for (uint32_t i = 0; i < 6; i++) {
        blocks[i] = heap_alloc(&h, 3 * HR_MIB);
        (void)heap_alloc(&h, 256);
    }
    for (uint32_t i = 0; i < 6; i++) {
        heap_free(&h, blocks[i]);
    }
    return h;
}

START_TEST(oracle_4_pins_in_grown_regions_leave_no_room_for_12_mib)
{
    heap grown = with_six_pins(true);
    ck_assert(heap_refuses(&grown, 12 * HR_MIB));
    heap_counters s = stats_of(&grown);
    double free_mib = (double)(s.limit_bytes - s.in_use_bytes) / (double)HR_MIB;
    double largest_mib = (double)s.largest_free_bytes / (double)HR_MIB;
    ck_assert_double_eq_tol(free_mib, 31.9985, 5e-5);
    ck_assert_double_eq_tol(largest_mib, 9.9993, 5e-5);
    ck_assert_double_eq_tol(s.fragmentation, 0.6875, 5e-5);
    heap_must_be_sound(&grown);
    heap_close(&grown);
    heap whole = with_six_pins(false);
    ck_assert(!heap_refuses(&whole, 12 * HR_MIB));
    heap_close(&whole);
}
END_TEST

START_TEST(regions_of_4_mib_requests_double_but_for_the_first)
{
    allocator_config config = bfc_config(512 * HR_MIB, true);
    heap h = heap_open(&config);
    for (uint32_t i = 0; i < 127; i++) {
        (void)heap_alloc(&h, 4 * HR_MIB);
    }
    heap_regions_must_be(&h, (const uint64_t[]){4, 4, 8, 16, 32, 64, 128, 256}, 8);
    heap_close(&h);
}
END_TEST

START_TEST(the_first_region_is_2_mib_or_the_limit_in_whole_256_bytes)
{
    struct {
        uint64_t limit_bytes;
        bool growth;
        uint64_t region_bytes;
    } cases[] = {
        {2 * HR_GIB, true, 2 * HR_MIB},
        {2 * HR_GIB, false, 2 * HR_GIB},
        {HR_MIB + 255, true, HR_MIB},
        {HR_MIB + 255, false, HR_MIB},
        {10000, true, 9984},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        allocator_config config = bfc_config(cases[i].limit_bytes, cases[i].growth);
        heap h = heap_open(&config);
        ck_assert_uint_eq(stats_of(&h).pool_bytes, 0); // nothing is taken before the first request
        (void)heap_alloc(&h, 1);
        ck_assert_uint_eq(stats_of(&h).pool_bytes, cases[i].region_bytes);
        heap_close(&h);
    }
}
END_TEST

START_TEST(a_custom_limit_is_a_wall)
{
    allocator_config config = bfc_config(2 * HR_MIB, true);
    heap h = heap_open(&config);
    (void)heap_alloc(&h, 256);
    ck_assert(heap_refuses(&h, 8 * HR_MIB));
    ck_assert(heap_refuses(&h, UINT64_MAX));
    heap_must_be_sound(&h);
    heap_close(&h);
}
END_TEST

START_TEST(the_whole_limit_can_be_handed_out)
{
    allocator_config config = bfc_config(32 * HR_MIB, false);
    heap h = heap_open(&config);
    (void)heap_alloc(&h, 32 * HR_MIB);
    ck_assert_double_eq(stats_of(&h).fragmentation, 0.0);
    ck_assert_uint_eq(stats_of(&h).largest_free_bytes, 0);
    ck_assert(heap_refuses(&h, 1));
    heap_must_be_sound(&h);
    heap_close(&h);
}
END_TEST

START_TEST(a_limit_of_nothing_serves_nothing)
{
    scripted script = {0};
    allocator_config config = bfc_config(0, true);
    heap h = heap_over(&config, scripted_backing(&script, false), NULL);
    ck_assert(heap_refuses(&h, 1));
    ck_assert_uint_eq(script.takes, 0);
    heap_close(&h);
}
END_TEST

START_TEST(growth_keeps_apart_what_it_serves)
{
    allocator_config config = bfc_config(2 * HR_GIB, true);
    heap h = heap_open(&config);
    uint64_t seed = 3;
    for (uint32_t i = 0; i < 9; i++) {
        blocks[i] = heap_alloc(&h, random_between(&seed, 1, 128 * HR_MIB));
    }
    for (uint32_t i = 1; i < 9; i += 2) {
        heap_free(&h, blocks[i]);
    }
    for (uint32_t i = 0; i < 9; i++) {
        (void)heap_alloc(&h, random_between(&seed, 1, 64 * HR_MIB));
    }
    heap_must_be_sound(&h);
    heap_close(&h);
}
END_TEST

START_TEST(a_refused_region_is_tried_at_nine_tenths_in_single_precision)
{
    scripted script = {.fail_at = 1};
    allocator_config config = bfc_config(13949 * HR_MIB, false);
    heap h = heap_over(&config, scripted_backing(&script, false), NULL);
    (void)heap_alloc(&h, 1);
    ck_assert_uint_eq(script.takes, 2);
    ck_assert_uint_eq(script.last_bytes, UINT64_C(13163927552));
    heap_close(&h);
}
END_TEST

START_TEST(extending_ends_when_the_backing_always_refuses)
{
    scripted script = {.fail_at = 1, .always_refuses = true};
    allocator_config config = bfc_config(2048, false);
    heap h = heap_over(&config, scripted_backing(&script, false), NULL);
    ck_assert(heap_refuses(&h, 1));
    ck_assert_uint_le(script.takes, 1000);
    ck_assert_uint_eq(script.last_bytes, 256);
    heap_must_be_sound(&h);
    heap_close(&h);
}
END_TEST

START_TEST(the_doubling_goes_on_from_a_raise_that_the_backing_refused)
{
    scripted script = {.fail_at = 1, .always_refuses = true};
    allocator_config config = bfc_config(64 * HR_MIB, true);
    heap h = heap_over(&config, scripted_backing(&script, false), NULL);
    ck_assert(heap_refuses(&h, 8 * HR_MIB));
    script.fail_at = 0;
    (void)heap_alloc(&h, 256);
    heap_regions_must_be(&h, (const uint64_t[]){8}, 1);
    heap_close(&h);
}
END_TEST

static heap with_128_blocks(uint64_t limit_bytes, scripted *script, bool coalesces)
{
    allocator_config config = bfc_config(limit_bytes, true);
    heap h = heap_over(&config, scripted_backing(script, coalesces), NULL);
    for (uint32_t i = 0; i < 128; i++) {
        blocks[i] = heap_alloc(&h, 4 * HR_MIB);
    }
    for (uint32_t i = 0; i < 127; i++) {
        heap_free(&h, blocks[i]);
    }
    return h;
}

START_TEST(region_edges_are_walls_unless_the_backing_coalesces)
{
    scripted physical = {0}, virtual = {0};
    heap walls = with_128_blocks(512 * HR_MIB, &physical, false);
    ck_assert(heap_refuses(&walls, 508 * HR_MIB));
    heap_close(&walls);
    heap joined = with_128_blocks(512 * HR_MIB, &virtual, true);
    ck_assert(!heap_refuses(&joined, 508 * HR_MIB));
    heap_must_be_sound(&joined);
    ck_assert_uint_eq(heap_look(&joined).regions, 1);
    heap_close(&joined);
    ck_assert_uint_eq(virtual.held_bytes, 0);
}
END_TEST

START_TEST(wholly_free_regions_go_back_before_a_request_fails)
{
    scripted script = {0};
    heap h = with_128_blocks(512 * HR_MIB, &script, false);
    ck_assert_uint_gt(heap_look(&h).regions, 1);
    uint64_t before_bytes = stats_of(&h).pool_bytes;
    ck_assert_uint_eq(before_bytes, 512 * HR_MIB);
    ck_assert(!heap_refuses(&h, 255 * HR_MIB)); // into the last region
    heap_close(&h);

    script = (scripted){0};
    h = with_128_blocks(512 * HR_MIB, &script, false);
    (void)heap_alloc(&h, 252 * HR_MIB); // the rest of the last region, whole
    heap_free(&h, blocks[127]);
    ck_assert(!heap_refuses(&h, 200 * HR_MIB)); // 256 MiB in seven pieces go back and come again as one
    ck_assert_uint_eq(script.gives, 7);
    ck_assert_uint_eq(stats_of(&h).pool_bytes, 512 * HR_MIB);
    ck_assert_uint_eq(heap_look(&h).regions, 2);
    heap_must_be_sound(&h);
    heap_close(&h);
}
END_TEST

START_TEST(no_region_goes_back_in_vain_or_with_collection_off)
{
    scripted script = {0};
    heap h = with_128_blocks(512 * HR_MIB, &script, false);
    ck_assert(heap_refuses(&h, 508 * HR_MIB));
    ck_assert_uint_eq(script.gives, 0);
    heap_close(&h);

    script = (scripted){0};
    allocator_config config = bfc_config(6 * HR_MIB, true);
    config.garbage_collection = false;
    h = heap_over(&config, scripted_backing(&script, false), NULL);
    heap_free(&h, heap_alloc(&h, HR_MIB));
    ck_assert(heap_refuses(&h, 5 * HR_MIB));
    ck_assert_uint_eq(script.gives, 0);
    heap_close(&h);
}
END_TEST

START_TEST(a_coalesced_region_is_never_wholly_free_while_one_block_lives)
{
    scripted script = {0};
    heap h = with_128_blocks(2 * HR_GIB, &script, true);
    ck_assert_uint_eq(heap_look(&h).regions, 1);
    ck_assert(heap_refuses(&h, 2 * HR_GIB));
    ck_assert_uint_eq(script.gives, 0);
    heap_close(&h);
}
END_TEST

// ---- 3 counters and events ------------------------------------------------------------------------------------

START_TEST(counters_follow_and_clear)
{
    allocator_config config = bfc_config(HR_MIB, false);
    heap h = heap_open(&config);
    uint64_t first = heap_alloc(&h, 1024);
    ck_assert_uint_eq(stats_of(&h).in_use_bytes, 1024);
    ck_assert_uint_eq(stats_of(&h).peak_in_use_bytes, 1024);
    (void)heap_alloc(&h, 2048);
    ck_assert_uint_eq(stats_of(&h).in_use_bytes, 3072);
    ck_assert_uint_eq(stats_of(&h).peak_in_use_bytes, 3072);
    heap_free(&h, first);
    heap_free(&h, heap_alloc(&h, 1024));
    ck_assert_uint_eq(stats_of(&h).in_use_bytes, 2048);
    ck_assert_uint_eq(stats_of(&h).peak_in_use_bytes, 3072);
    allocator_clear_peaks(h.allocator);
    ck_assert_uint_eq(stats_of(&h).peak_in_use_bytes, 2048);
    ck_assert_uint_eq(stats_of(&h).allocations, 0);
    ck_assert_uint_eq(stats_of(&h).largest_allocation_bytes, 0);
    heap_close(&h);
}
END_TEST

typedef struct tally {
    uint32_t of[HR_EVENT_COUNT];
    uint64_t in_use_bytes, pool_bytes; // as the events add up
    hr_event last;
} tally;

static void tally_sink(void *context, const hr_event *event)
{
    tally *t = context;
    t->of[event->kind]++;
    t->last = *event;
    const hr_event_memory *m = &event->u.memory;
    t->in_use_bytes += event->kind == HR_EVENT_ALLOC ? m->allocated_bytes : 0;
    t->in_use_bytes -= event->kind == HR_EVENT_FREE ? m->allocated_bytes : 0;
    t->pool_bytes += event->kind == HR_EVENT_GROW ? m->allocated_bytes : 0;
    t->pool_bytes -= event->kind == HR_EVENT_SHRINK ? m->allocated_bytes : 0;
    ck_assert_uint_eq(t->in_use_bytes, m->in_use_bytes);
    ck_assert_uint_eq(t->pool_bytes, m->pool_bytes);
}

START_TEST(every_decision_is_an_event_and_the_events_add_up)
{
    trace_bus bus;
    trace_bus_init(&bus);
    tally t = {0};
    ck_assert(trace_attach(&bus, tally_sink, &t));
    scripted script = {0};
    allocator_config config = bfc_config(6 * HR_MIB, true);
    heap h = heap_over(&config, scripted_backing(&script, false), &bus);
    uint64_t address;
    bus.category = HR_CATEGORY_ACTIVATIONS;
    ck_assert_int_eq(allocator_alloc(h.allocator, 1000, 7, &address, NULL), HR_OK);
    ck_assert_uint_eq(t.last.kind, HR_EVENT_ALLOC);
    ck_assert_uint_eq(t.last.category, HR_CATEGORY_ACTIVATIONS);
    ck_assert_uint_eq(t.last.u.memory.address, address);
    ck_assert_uint_eq(t.last.u.memory.requested_bytes, 1000);
    ck_assert_uint_eq(t.last.u.memory.allocated_bytes, 1024);
    ck_assert_uint_eq(t.last.u.memory.tensor, 7);
    heap_free(&h, address);
    ck_assert_uint_eq(t.last.u.memory.tensor, 7);
    ck_assert_uint_eq(t.last.u.memory.requested_bytes, 1000);
    (void)heap_alloc(&h, 5 * HR_MIB); // the 2 MiB region goes back, one of 6 MiB comes
    ck_assert(heap_refuses(&h, HR_MIB));
    ck_assert_uint_eq(t.last.kind, HR_EVENT_OOM);
    ck_assert_uint_eq(t.last.u.memory.requested_bytes, HR_MIB);
    heap_close(&h); // with a block alive
    ck_assert_uint_eq(t.of[HR_EVENT_ALLOC], 2);
    ck_assert_uint_eq(t.of[HR_EVENT_FREE], 2);
    ck_assert_uint_eq(t.of[HR_EVENT_GROW], 2);
    ck_assert_uint_eq(t.of[HR_EVENT_SHRINK], 2);
    ck_assert_uint_eq(t.of[HR_EVENT_OOM], 1);
    ck_assert_uint_eq(t.in_use_bytes + t.pool_bytes, 0);
}
END_TEST

START_TEST(out_of_memory_says_needed_free_and_largest)
{
    heap h = with_six_pins(true);
    hr_err err = {0};
    uint64_t address = 1;
    ck_assert_int_eq(allocator_alloc(h.allocator, 12 * HR_MIB, HR_NO_ID, &address, &err), HR_OOM);
    ck_assert_uint_eq(address, 0);
    ck_assert_str_eq(err.sentence,
                     "bfc allocator: needed 12.00 MiB in one piece, had 32.00 MiB free in a pool of "
                     "32.00 MiB, the largest piece 10.00 MiB, and 0 B left to grow under the limit "
                     "of 32.00 MiB");
    heap_close(&h);
}
END_TEST

START_TEST(an_unknown_kind_and_an_absurd_limit_are_refused)
{
    backing source;
    ck_assert_int_eq(backing_numbers_open(HR_MIB, 4096, &source, NULL), HR_OK);
    allocator *a = NULL;
    allocator_config config = bfc_config(HR_MIB, true);
    config.kind = "slab";
    ck_assert_int_eq(allocator_create(&config, &source, NULL, &a, NULL), HR_KNOB);
    config = bfc_config(UINT64_MAX, true);
    ck_assert_int_eq(allocator_create(&config, &source, NULL, &a, NULL), HR_KNOB);
    config = bfc_config(HR_MIB, true);
    source.alignment_bytes = 64;
    ck_assert_int_eq(allocator_create(&config, &source, NULL, &a, NULL), HR_DEVICE);
    ck_assert_ptr_null(a);
    allocator_destroy(NULL);
    backing_close(&source);
}
END_TEST

START_TEST(metadata_stays_below_64_bytes_a_chunk_and_a_thousandth_of_the_pool)
{
    allocator_config config = bfc_config(HR_GIB, true);
    heap h = heap_open(&config);
    for (uint32_t i = 1; i <= 300000; i++) {
        (void)heap_alloc(&h, 256);
        if (i % 997 == 0) {
            uint64_t allowed_bytes = 64 * (uint64_t)heap_look(&h).chunks + stats_of(&h).pool_bytes / 1000;
            ck_assert_uint_le(h.allocator->ops->metadata(h.allocator), allowed_bytes);
            i += i / 8 / 997 * 997; // the checks thin out as the heap grows
        }
    }
    heap_close(&h);
}
END_TEST

static Suite *bfc_suite(void)
{
    Suite *suite = suite_create("bfc");
    TCase *holes = tcase_create("chunks");
    tcase_add_test(holes, bins_hold_the_sizes_of_tensorflow);
    tcase_add_test(holes, a_request_takes_whole_256_bytes);
    tcase_add_test(holes, zero_bytes_are_nowhere_and_not_counted);
    tcase_add_test(holes, a_chunk_is_split_when_it_has_twice_the_bytes_or_128_mib_to_spare);
    tcase_add_test(holes, the_smallest_hole_that_is_large_enough_wins_and_the_lowest_among_equals);
    tcase_add_test(holes, freed_neighbours_become_one_chunk_from_either_side);
    tcase_add_test(holes, no_duplicates);
    tcase_add_test(holes, allocations_and_deallocations);
    tcase_add_test(holes, exercise_coalescing);
    tcase_add_test(holes, bin_debug_info);
    tcase_add_test(holes, stress_alloc_free_never_fails_within_the_pool);
    suite_add_tcase(suite, holes);
    TCase *growth = tcase_create("regions");
    tcase_add_test(growth, oracle_1_growth_wastes_what_one_region_does_not);
    tcase_add_test(growth, oracle_2_a_thousand_tensors_of_4_bytes);
    tcase_add_test(growth, oracle_3_64_tensors_of_1_mib_take_a_pool_of_126);
    tcase_add_test(growth, oracle_4_pins_in_grown_regions_leave_no_room_for_12_mib);
    tcase_add_test(growth, regions_of_4_mib_requests_double_but_for_the_first);
    tcase_add_test(growth, the_first_region_is_2_mib_or_the_limit_in_whole_256_bytes);
    tcase_add_test(growth, a_custom_limit_is_a_wall);
    tcase_add_test(growth, the_whole_limit_can_be_handed_out);
    tcase_add_test(growth, a_limit_of_nothing_serves_nothing);
    tcase_add_test(growth, growth_keeps_apart_what_it_serves);
    tcase_add_test(growth, a_refused_region_is_tried_at_nine_tenths_in_single_precision);
    tcase_add_test(growth, extending_ends_when_the_backing_always_refuses);
    tcase_add_test(growth, the_doubling_goes_on_from_a_raise_that_the_backing_refused);
    tcase_add_test(growth, region_edges_are_walls_unless_the_backing_coalesces);
    tcase_add_test(growth, wholly_free_regions_go_back_before_a_request_fails);
    tcase_add_test(growth, no_region_goes_back_in_vain_or_with_collection_off);
    tcase_add_test(growth, a_coalesced_region_is_never_wholly_free_while_one_block_lives);
    suite_add_tcase(suite, growth);
    TCase *counters = tcase_create("counters");
    tcase_add_test(counters, counters_follow_and_clear);
    tcase_add_test(counters, every_decision_is_an_event_and_the_events_add_up);
    tcase_add_test(counters, out_of_memory_says_needed_free_and_largest);
    tcase_add_test(counters, an_unknown_kind_and_an_absurd_limit_are_refused);
    tcase_add_test(counters, metadata_stays_below_64_bytes_a_chunk_and_a_thousandth_of_the_pool);
    suite_add_tcase(suite, counters);
    return suite;
}

TEST_MAIN(bfc_suite())
