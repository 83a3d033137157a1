// SPDX-License-Identifier: Apache-2.0
// BFC against TensorFlow: the oracles of the reference, and its numbers. Its own unit tests are in
// test_bfc_tensorflow.c, timestamps in test_bfc_stamps.c.
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

// ---- 3 counters and events ------------------------------------------------------------------------------------

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
    source.alignment_bytes = 4096;
    config.fragmentation_fraction = 1.5;
    ck_assert_int_eq(allocator_create(&config, &source, NULL, &a, NULL), HR_KNOB);
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

typedef struct said {
    const char *name;
    uint64_t value;
} said;

typedef struct hearing {
    said all[16];
    uint32_t count;
} hearing;

static void hear(void *context, const char *name, uint64_t value)
{
    hearing *h = context;
    MUST(h->count < 16);
    h->all[h->count++] = (said){.name = name, .value = value};
}

START_TEST(statistics_have_tensorflows_names_and_order)
{
    allocator_config config = bfc_config(10 * HR_MIB, true);
    heap h = heap_open(&config);
    uint64_t large = heap_alloc(&h, 5 * HR_MIB - 100);
    (void)heap_alloc(&h, 1000);
    heap_free(&h, large);
    const said expected[] = {{"num_allocs", 2},
                             {"bytes_in_use", 1024},
                             {"peak_bytes_in_use", 8 * HR_MIB + 1024},
                             {"largest_alloc_size", 8 * HR_MIB},
                             {"bytes_limit", 10 * HR_MIB},
                             {"bytes_reserved", 0},
                             {"peak_bytes_reserved", 0},
                             {"largest_free_block_bytes", 8 * HR_MIB},
                             {"pool_bytes", 10 * HR_MIB},
                             {"peak_pool_bytes", 10 * HR_MIB},
                             {"peak_allocated_bytes", 8 * HR_MIB + 1024}};
    hearing heard = {0};
    h.allocator->ops->statistics(h.allocator, hear, &heard);
    ck_assert_uint_eq(heard.count, sizeof expected / sizeof expected[0]);
    for (uint32_t i = 0; i < heard.count; i++) {
        ck_assert_str_eq(heard.all[i].name, expected[i].name);
        ck_assert_uint_eq(heard.all[i].value, expected[i].value);
    }
    heap_close(&h);
}
END_TEST

START_TEST(a_fraction_of_the_limit_is_what_may_be_left_inside_a_chunk)
{
    allocator_config config = bfc_config(1000 * HR_MIB, false);
    config.fragmentation_fraction = 0.01;
    heap h = heap_open(&config);
    uint64_t first = heap_alloc(&h, 30 * HR_MIB);
    (void)heap_alloc(&h, 256);
    heap_free(&h, first);
    uint64_t whole = heap_alloc(&h, 20 * HR_MIB + 256); // 10 MiB - 256 to spare: less than the fraction
    ck_assert_uint_eq(stats_of(&h).in_use_bytes, 30 * HR_MIB + 256);
    heap_free(&h, whole);
    (void)heap_alloc(&h, 20 * HR_MIB);
    ck_assert_uint_eq(stats_of(&h).in_use_bytes, 20 * HR_MIB + 256);
    heap_close(&h);
}
END_TEST

static Suite *bfc_suite(void)
{
    Suite *suite = suite_create("bfc");
    TCase *holes = tcase_create("chunks");
    tcase_add_test(holes, bins_hold_the_sizes_of_tensorflow);
    tcase_add_test(holes, a_chunk_is_split_when_it_has_twice_the_bytes_or_128_mib_to_spare);
    tcase_add_test(holes, the_smallest_hole_that_is_large_enough_wins_and_the_lowest_among_equals);
    tcase_add_test(holes, freed_neighbours_become_one_chunk_from_either_side);
    tcase_add_test(holes, a_fraction_of_the_limit_is_what_may_be_left_inside_a_chunk);
    suite_add_tcase(suite, holes);
    TCase *growth = tcase_create("regions");
    tcase_add_test(growth, oracle_1_growth_wastes_what_one_region_does_not);
    tcase_add_test(growth, oracle_2_a_thousand_tensors_of_4_bytes);
    tcase_add_test(growth, oracle_3_64_tensors_of_1_mib_take_a_pool_of_126);
    tcase_add_test(growth, oracle_4_pins_in_grown_regions_leave_no_room_for_12_mib);
    tcase_add_test(growth, regions_of_4_mib_requests_double_but_for_the_first);
    tcase_add_test(growth, the_first_region_is_2_mib_or_the_limit_in_whole_256_bytes);
    tcase_add_test(growth, the_whole_limit_can_be_handed_out);
    tcase_add_test(growth, a_limit_of_nothing_serves_nothing);
    tcase_add_test(growth, a_refused_region_is_tried_at_nine_tenths_in_single_precision);
    tcase_add_test(growth, the_doubling_goes_on_from_a_raise_that_the_backing_refused);
    tcase_add_test(growth, wholly_free_regions_go_back_before_a_request_fails);
    tcase_add_test(growth, no_region_goes_back_in_vain_or_with_collection_off);
    suite_add_tcase(suite, growth);
    TCase *counters = tcase_create("counters");
    tcase_add_test(counters, statistics_have_tensorflows_names_and_order);
    tcase_add_test(counters, every_decision_is_an_event_and_the_events_add_up);
    tcase_add_test(counters, out_of_memory_says_needed_free_and_largest);
    tcase_add_test(counters, an_unknown_kind_and_an_absurd_limit_are_refused);
    tcase_add_test(counters, metadata_stays_below_64_bytes_a_chunk_and_a_thousandth_of_the_pool);
    suite_add_tcase(suite, counters);
    return suite;
}

TEST_MAIN(bfc_suite())
