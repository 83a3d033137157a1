// SPDX-License-Identifier: Apache-2.0
// Expandable segments: one reservation for each stream and pool, grown and emptied by whole handles.
#include <string.h>

#include "memory/caching.h"
#include "refusing.h"

#define MIB HR_MIB

static refusing source;

static allocator_config expandable(uint64_t limit_bytes)
{
    allocator_config c = allocator_config_of("caching", limit_bytes);
    c.caching.expandable_segments = true;
    return c;
}

static heap open_heap(const allocator_config *config)
{
    source = (refusing){0};
    uint64_t bytes = config->device_bytes != 0 ? config->device_bytes : config->limit_bytes;
    return heap_over(config, refusing_open(&source, bytes, true), NULL);
}

static uint64_t alloc_it(heap *h, uint64_t bytes)
{
    uint64_t address = heap_alloc(h, bytes);
    heap_must_be_sound(h);
    return address;
}

static void free_it(heap *h, uint64_t address)
{
    heap_free(h, address);
    heap_must_be_sound(h);
}

static uint64_t pool_of(const heap *h)
{
    return allocator_get_stats(h->allocator).pool_bytes;
}

START_TEST(a_segment_grows_where_it_is)
{
    allocator_config config = expandable(HR_GIB);
    heap h = open_heap(&config);
    uint64_t a = alloc_it(&h, 30 * MIB), b = alloc_it(&h, 30 * MIB), c = alloc_it(&h, 50 * MIB);
    ck_assert_uint_eq(b, a + 30 * MIB);
    ck_assert_uint_eq(c, a + 60 * MIB);
    ck_assert_uint_eq(pool_of(&h), 120 * MIB); // six handles
    ck_assert_uint_eq(source.reserved_bytes, (HR_GIB + HR_GIB / 8 + 20 * MIB - 1) / (20 * MIB) * (20 * MIB));
    free_it(&h, b);
    free_it(&h, c);
    ck_assert_uint_eq(alloc_it(&h, 81 * MIB), b); // 80 free ones became 81
    ck_assert_uint_eq(pool_of(&h), 120 * MIB);
    heap_close(&h);
    ck_assert_uint_eq(source.held_bytes, 0);
    ck_assert_uint_eq(source.reserved_bytes, 0);
}
END_TEST

START_TEST(pools_and_streams_have_segments_of_their_own)
{
    allocator_config config = expandable(HR_GIB);
    heap h = open_heap(&config);
    uint64_t span = HR_GIB + HR_GIB / 8, address;
    (void)alloc_it(&h, 512);
    ck_assert_uint_eq(source.reserved_bytes, span);
    ck_assert_uint_eq(pool_of(&h), 2 * MIB);
    (void)alloc_it(&h, 2 * MIB);
    ck_assert_uint_gt(source.reserved_bytes, 2 * span);
    allocator_request r = {.bytes = 512, .tensor = HR_NO_ID, .stream = 5};
    ck_assert_int_eq(allocator_serve(h.allocator, &r, &address, NULL), HR_OK);
    ck_assert_uint_gt(source.reserved_bytes, 3 * span);
    ck_assert_uint_eq(pool_of(&h), 24 * MIB);
    heap_close(&h);
}
END_TEST

// Two reservations of nine eighths each: addresses are no memory, and a trace may have any number of streams.
START_TEST(twelve_streams_find_addresses)
{
    enum { STREAMS = 12 };
    allocator_config config = expandable(HR_GIB);
    heap h = open_heap(&config);
    for (uint32_t stream = 0; stream < STREAMS; stream++) {
        uint64_t address = 0;
        allocator_request small = {.bytes = 512, .tensor = HR_NO_ID, .stream = stream};
        allocator_request large = {.bytes = 20 * MIB, .tensor = HR_NO_ID, .stream = stream};
        ck_assert_int_eq(allocator_serve(h.allocator, &small, &address, NULL), HR_OK);
        ck_assert_int_eq(allocator_serve(h.allocator, &large, &address, NULL), HR_OK);
    }
    ck_assert_uint_eq(pool_of(&h), STREAMS * 22 * MIB);
    heap_must_be_sound(&h);
    heap_close(&h);
}
END_TEST

// allocators.md §9.6: a block before unmapped space counts as large as it could become.
START_TEST(a_block_that_can_grow_is_the_last_choice)
{
    allocator_config config = expandable(HR_GIB);
    heap h = open_heap(&config);
    uint64_t a = alloc_it(&h, 40 * MIB),
             b = alloc_it(&h, 39 * MIB); // 1 MiB is left before the unmapped space
    free_it(&h, a);
    free_it(&h, b); // 80 MiB in one
    a = alloc_it(&h, 10 * MIB);
    uint64_t hole = alloc_it(&h, 30 * MIB), c = alloc_it(&h, 12 * MIB);
    free_it(&h, hole);
    // free: 30 MiB at `hole`, and 28 MiB behind c, which can grow: the smaller one is passed over
    ck_assert_uint_eq(alloc_it(&h, 20 * MIB), hole);
    ck_assert_uint_eq(c, hole + 30 * MIB);
    ck_assert_uint_gt(a, 0);
    heap_close(&h);
}
END_TEST

// §9.7: the limit is looked at with the segment's size, then whole handles are mapped.
START_TEST(a_fraction_can_be_passed_by_less_than_a_handle)
{
    allocator_config config = expandable(30 * MIB + 512 * HR_KIB);
    config.device_bytes = HR_GIB;
    config.limit_is_fraction = true;
    heap h = open_heap(&config);
    (void)alloc_it(&h, 24 * MIB);
    ck_assert_uint_eq(pool_of(&h), 40 * MIB);
    ck_assert(heap_refuses(&h, 17 * MIB));
    heap_must_be_sound(&h);
    heap_close(&h);
}
END_TEST

START_TEST(without_a_fraction_whole_handles_stay_below_the_limit)
{
    allocator_config config = expandable(50 * MIB);
    heap h = open_heap(&config);
    uint64_t a = alloc_it(&h, 40 * MIB);
    ck_assert(heap_refuses(&h, 2 * MIB)); // the third handle would end at 60 MiB
    (void)alloc_it(&h, 512);              // one of 2 MiB still fits
    ck_assert_uint_eq(pool_of(&h), 42 * MIB);
    free_it(&h, a);
    heap_close(&h);
}
END_TEST

START_TEST(empty_handles_go_back_and_part_filled_ones_stay)
{
    allocator_config config = expandable(200 * MIB);
    heap h = open_heap(&config);
    uint64_t a = alloc_it(&h, 30 * MIB), b = alloc_it(&h, 30 * MIB), c = alloc_it(&h, 90 * MIB);
    (void)alloc_it(&h, 10 * MIB);
    ck_assert_uint_eq(pool_of(&h), 160 * MIB);
    free_it(&h, a);
    free_it(&h, c);
    allocator_request r = {.bytes = 60 * MIB, .tensor = HR_NO_ID, .stream = 1};
    uint64_t other;
    ck_assert_int_eq(allocator_serve(h.allocator, &r, &other, NULL), HR_OK);
    heap_must_be_sound(&h);
    // Of a the first handle, of c (60 … 150) those from 60 to 140; then 60 for the other stream.
    ck_assert_uint_eq(pool_of(&h), 60 * MIB + 60 * MIB);
    ck_assert_uint_eq(alloc_it(&h, 30 * MIB), a); // mapped again at the lowest addresses
    ck_assert_uint_eq(pool_of(&h), 140 * MIB);
    free_it(&h, b);
    heap_close(&h);
}
END_TEST

START_TEST(an_empty_reservation_goes_back_with_its_last_handle)
{
    allocator_config config = expandable(100 * MIB);
    heap h = open_heap(&config);
    uint64_t a = alloc_it(&h, 60 * MIB), reserved_bytes = source.reserved_bytes;
    free_it(&h, a);
    allocator_request r = {.bytes = 80 * MIB, .tensor = HR_NO_ID, .stream = 1};
    ck_assert_int_eq(allocator_serve(h.allocator, &r, &a, NULL), HR_OK);
    ck_assert_uint_eq(source.reserved_bytes, reserved_bytes); // one came, one went
    ck_assert_uint_eq(pool_of(&h), 80 * MIB);
    heap_must_be_sound(&h);
    heap_close(&h);
}
END_TEST

START_TEST(where_nothing_maps_segments_are_ordinary_and_it_says_so)
{
    allocator_config config = expandable(HR_GIB);
    source = (refusing){0};
    heap h = heap_over(&config, refusing_open(&source, HR_GIB, false), NULL);
    uint64_t a = alloc_it(&h, 30 * MIB), b = alloc_it(&h, 3 * MIB);
    ck_assert_uint_eq(b, a + 30 * MIB);
    ck_assert_uint_eq(pool_of(&h), 50 * MIB);
    ck_assert_ptr_nonnull(strstr(caching_notice(h.allocator), "cannot map memory piece by piece"));
    heap_close(&h);
    h = open_heap(&config);
    ck_assert_ptr_null(caching_notice(h.allocator));
    heap_close(&h);
}
END_TEST

START_TEST(handles_are_multiples_of_what_the_device_maps)
{
    allocator_config config = expandable(HR_GIB);
    config.caching.large_segment_bytes = 21 * MIB;
    source = (refusing){0};
    backing b = refusing_open(&source, HR_GIB, true);
    allocator *a = NULL;
    hr_err err = {0};
    ck_assert_int_eq(allocator_create(&config, &b, NULL, &a, &err), HR_DEVICE);
    ck_assert_ptr_nonnull(strstr(err.sentence, "in multiples of the 2097152 bytes"));
    backing_close(&b);
}
END_TEST

static Suite *expandable_suite(void)
{
    Suite *suite = suite_create("caching with expandable segments");
    TCase *segments = tcase_create("segments");
    tcase_add_test(segments, a_segment_grows_where_it_is);
    tcase_add_test(segments, pools_and_streams_have_segments_of_their_own);
    tcase_add_test(segments, twelve_streams_find_addresses);
    tcase_add_test(segments, a_block_that_can_grow_is_the_last_choice);
    tcase_add_test(segments, a_fraction_can_be_passed_by_less_than_a_handle);
    tcase_add_test(segments, without_a_fraction_whole_handles_stay_below_the_limit);
    tcase_add_test(segments, empty_handles_go_back_and_part_filled_ones_stay);
    tcase_add_test(segments, an_empty_reservation_goes_back_with_its_last_handle);
    tcase_add_test(segments, where_nothing_maps_segments_are_ordinary_and_it_says_so);
    tcase_add_test(segments, handles_are_multiples_of_what_the_device_maps);
    suite_add_tcase(suite, segments);
    return suite;
}

TEST_MAIN(expandable_suite())
