// SPDX-License-Identifier: Apache-2.0
// Timestamps: what is freed stays apart until the safe frontier has passed it, or until nothing else is left.
#include "heap.h"
#include "memory/bfc.h"

static heap stamped_heap(uint64_t limit_bytes)
{
    allocator_config config = bfc_config(limit_bytes, false);
    config.timestamped = true;
    config.garbage_collection =
        false; // or a region that only waits would go back, and come again without a stamp
    return heap_open(&config);
}

// 0 when it cannot be had.
static uint64_t ask(heap *h, uint64_t bytes, uint64_t freed_before)
{
    uint64_t address = 0;
    allocator_request r = {.bytes = bytes, .freed_before = freed_before, .tensor = HR_NO_ID};
    hr_status status = allocator_serve(h->allocator, &r, &address, NULL);
    MUST(status == (address == 0 ? HR_OOM : HR_OK));
    heap_must_be_sound(h);
    return address;
}

// Four blocks of 1 KiB that fill the heap.
static heap full_heap(uint64_t address[4])
{
    heap h = stamped_heap(4 * HR_KIB);
    for (int i = 0; i < 4; i++) {
        address[i] = ask(&h, HR_KIB, 0);
    }
    return h;
}

START_TEST(what_is_freed_stays_apart_until_the_frontier_has_passed_its_stamp)
{
    uint64_t a[4];
    heap h = full_heap(a);
    heap_free(&h, a[1]); // stamp 1
    heap_free(&h, a[2]); // stamp 2
    ck_assert_uint_eq(heap_look(&h).free_chunks, 2);
    ck_assert_uint_eq(allocator_get_stats(h.allocator).in_use_bytes, 2 * HR_KIB);
    bfc_set_safe_frontier(h.allocator, 2); // passes 1, not 2
    ck_assert_uint_eq(ask(&h, 2 * HR_KIB, 1), 0);
    ck_assert_uint_eq(heap_look(&h).free_chunks, 2);
    bfc_set_safe_frontier(h.allocator, 3);
    ck_assert_uint_eq(heap_look(&h).free_chunks, 2); // merging waits for the next request
    ck_assert_uint_eq(ask(&h, 2 * HR_KIB, 1), a[1]);
    heap_close(&h);
}
END_TEST

START_TEST(a_request_may_only_have_what_was_freed_by_its_stamp)
{
    uint64_t a[4];
    heap h = full_heap(a);
    heap_free(&h, a[2]); // stamp 1
    heap_free(&h, a[0]); // stamp 2
    ck_assert_uint_eq(ask(&h, HR_KIB, 1), a[2]);
    ck_assert_uint_eq(ask(&h, HR_KIB, 1), 0);
    ck_assert_uint_eq(ask(&h, HR_KIB, 2), a[0]);
    heap_free(&h, a[3]); // stamp 3
    ck_assert_uint_eq(ask(&h, HR_KIB, 0), a[3]);
    heap_close(&h);
}
END_TEST

START_TEST(the_search_goes_on_through_the_larger_bins)
{
    heap h = stamped_heap(64 * HR_KIB);
    uint64_t small = ask(&h, HR_KIB, 0), between = ask(&h, 256, 0), large = ask(&h, 8 * HR_KIB, 0);
    (void)ask(&h, 256, 0);
    heap_free(&h, large); // stamp 1
    heap_free(&h, small); // stamp 2
    ck_assert_uint_eq(ask(&h, HR_KIB, 1), large);
    ck_assert_uint_eq(ask(&h, HR_KIB, 0), small);
    heap_free(&h, between);
    heap_close(&h);
}
END_TEST

START_TEST(rather_than_fail_what_waits_is_merged_and_keeps_the_latest_stamp)
{
    uint64_t a[4];
    heap h = full_heap(a);
    heap_free(&h, a[1]);                          // stamp 1
    heap_free(&h, a[2]);                          // stamp 2
    heap_free(&h, a[3]);                          // stamp 3
    ck_assert_uint_eq(ask(&h, 2 * HR_KIB, 3), 0); // names a stamp: is not merged for
    ck_assert_uint_eq(heap_look(&h).free_chunks, 3);
    ck_assert_uint_eq(ask(&h, 4 * HR_KIB, 0), 0); // merges all, in vain
    ck_assert_uint_eq(heap_look(&h).free_chunks, 1);
    ck_assert_uint_eq(ask(&h, 256, 2), 0);
    ck_assert_uint_eq(ask(&h, 256, 3), a[1]);
    heap_close(&h);
}
END_TEST

START_TEST(merging_by_force_ends_with_the_first_chunk_that_is_large_enough)
{
    heap h = stamped_heap(6 * HR_KIB);
    uint64_t a[6];
    for (int i = 0; i < 6; i++) {
        a[i] = ask(&h, HR_KIB, 0);
    }
    for (int i = 0; i < 6; i++) {
        if (i != 2) {
            heap_free(&h, a[i]);
        }
    }
    ck_assert_uint_eq(ask(&h, 2 * HR_KIB, 0), a[0]);
    ck_assert_uint_eq(heap_look(&h).free_chunks, 3); // the last three still wait
    ck_assert_uint_eq(ask(&h, 2 * HR_KIB, 0), a[3]);
    heap_close(&h);
}
END_TEST

START_TEST(a_rest_inherits_the_stamp)
{
    heap h = stamped_heap(64 * HR_KIB);
    uint64_t block = ask(&h, 8 * HR_KIB, 0);
    (void)ask(&h, 56 * HR_KIB, 0);
    heap_free(&h, block); // stamp 1
    heap_free(&h, ask(&h, HR_KIB, 0));
    ck_assert_uint_eq(ask(&h, 4 * HR_KIB, 1), block + HR_KIB);
    heap_close(&h);
}
END_TEST

START_TEST(one_counter_orders_the_releases_of_two_allocators)
{
    bfc_counter counter = {0};
    heap first = stamped_heap(HR_KIB), second = stamped_heap(HR_KIB);
    bfc_share_counter(first.allocator, &counter);
    bfc_share_counter(second.allocator, &counter);
    ck_assert_uint_eq(bfc_counter_next(&counter), 1); // work is queued
    heap_free(&first, ask(&first, HR_KIB, 0));        // stamp 2
    heap_free(&second, ask(&second, HR_KIB, 0));      // stamp 3
    ck_assert_uint_eq(counter.last, 3);
    ck_assert_uint_eq(ask(&second, HR_KIB, 2), 0);
    ck_assert_uint_ne(ask(&first, HR_KIB, 2), 0);
    heap_close(&first);
    heap_close(&second);
}
END_TEST

START_TEST(the_frontier_never_goes_back)
{
    uint64_t a[4];
    heap h = full_heap(a);
    heap_free(&h, a[0]);
    heap_free(&h, a[1]);
    bfc_set_safe_frontier(h.allocator, 9);
    bfc_set_safe_frontier(h.allocator, 1);
    ck_assert_uint_eq(ask(&h, 2 * HR_KIB, 1), a[0]);
    heap_close(&h);
}
END_TEST

START_TEST(a_region_of_waiting_chunks_goes_back_like_a_free_one)
{
    scripted script = {0};
    allocator_config config = bfc_config(6 * HR_MIB, true);
    config.timestamped = true;
    heap h = heap_over(&config, scripted_backing(&script, false), NULL);
    uint64_t first = ask(&h, HR_MIB, 0), second = ask(&h, HR_MIB, 0);
    heap_free(&h, first);
    heap_free(&h, second);
    uint64_t large = ask(&h, 5 * HR_MIB, 1); // names a stamp: nothing is merged, the region of 2 MiB goes
    ck_assert_uint_ne(large, 0);
    ck_assert_uint_eq(script.gives, 1);
    heap_free(&h, large);
    ck_assert_uint_eq(ask(&h, HR_MIB, 0), large); // what the queue remembers of the old region does no harm
    heap_close(&h);
    ck_assert_uint_eq(script.held_bytes, 0);
}
END_TEST

START_TEST(without_timestamps_stamps_mean_nothing)
{
    allocator_config config = bfc_config(2 * HR_KIB, false);
    heap h = heap_open(&config);
    uint64_t first = ask(&h, HR_KIB, 1), second = ask(&h, HR_KIB, 1);
    heap_free(&h, first);
    heap_free(&h, second);
    ck_assert_uint_eq(ask(&h, 2 * HR_KIB, 1), first);
    heap_close(&h);
}
END_TEST

static Suite *stamps_suite(void)
{
    Suite *suite = suite_create("bfc with timestamps");
    TCase *stamps = tcase_create("stamps");
    tcase_add_test(stamps, what_is_freed_stays_apart_until_the_frontier_has_passed_its_stamp);
    tcase_add_test(stamps, a_request_may_only_have_what_was_freed_by_its_stamp);
    tcase_add_test(stamps, the_search_goes_on_through_the_larger_bins);
    tcase_add_test(stamps, rather_than_fail_what_waits_is_merged_and_keeps_the_latest_stamp);
    tcase_add_test(stamps, merging_by_force_ends_with_the_first_chunk_that_is_large_enough);
    tcase_add_test(stamps, a_rest_inherits_the_stamp);
    tcase_add_test(stamps, one_counter_orders_the_releases_of_two_allocators);
    tcase_add_test(stamps, the_frontier_never_goes_back);
    tcase_add_test(stamps, a_region_of_waiting_chunks_goes_back_like_a_free_one);
    tcase_add_test(stamps, without_timestamps_stamps_mean_nothing);
    suite_add_tcase(suite, stamps);
    return suite;
}

TEST_MAIN(stamps_suite())
