// SPDX-License-Identifier: Apache-2.0
// A host allocation or a range refused at every point in turn: the request fails, the heap stays as it was. With
// timestamps what has become safe is merged even so.
#include "base/host_mem.h"
#include "heap.h"
#include "memory/bfc.h"

enum { BLOCKS = 120, POINTS_MAX = 400 };

// The same program of requests every time: growth, splits, merges, a collection. Requests that fail are passed over,
// as a replay does. Returns how many failed with `expected`; any other failure ends the test.
static uint32_t play(heap *h, hr_status expected)
{
    static uint64_t blocks[BLOCKS];
    uint32_t failures = 0;
    uint64_t seed = 5;
    for (uint32_t i = 0; i < BLOCKS; i++) {
        uint64_t hash = h->allocator->ops->hash(h->allocator);
        heap_counters before = allocator_get_stats(h->allocator);
        uint64_t bytes = i == BLOCKS - 1 ? 20 * HR_MIB : random_between(&seed, 1, 300 * HR_KIB);
        hr_status status = allocator_alloc(h->allocator, bytes, i, &blocks[i], NULL);
        if (status != HR_OK) {
            ck_assert_int_eq(status, expected);
            ck_assert_uint_eq(blocks[i], 0);
            ck_assert_uint_eq(allocator_get_stats(h->allocator).in_use_bytes, before.in_use_bytes);
            ck_assert(status != HR_NOMEM || h->allocator->merges_late ||
                      h->allocator->ops->hash(h->allocator) == hash);
            failures++;
        }
        heap_must_be_sound(h);
        if (i % 10 == 9 &&
            i < BLOCKS - 2) { // some go early, and their stamps are safe by the time of the next
            allocator_free(h->allocator, blocks[i]);
            bfc_set_safe_frontier(h->allocator, i / 10);
            blocks[i] = 0;
        }
        if (i == BLOCKS - 2) { // everything goes, so that the last request collects
            for (uint32_t j = 0; j < BLOCKS - 1; j++) {
                allocator_free(h->allocator, blocks[j]);
            }
        }
    }
    return failures;
}

START_TEST(a_failed_host_allocation_fails_one_request_and_changes_nothing)
{
    allocator_config config = bfc_config(24 * HR_MIB, true);
    config.timestamped = _i == 1;
    int64_t live = hr_host_mem_live();
    bool failed_once = true;
    for (uint64_t nth = 1; failed_once; nth++) {
        ck_assert_uint_lt(nth, POINTS_MAX);
        scripted script = {0};
        heap h = heap_over(&config, scripted_backing(&script, false), NULL);
        (void)hr_host_mem_fail_at(nth);
        uint32_t failures = play(&h, HR_NOMEM);
        failed_once = hr_host_mem_fail_at(0) >= nth;
        ck_assert_uint_eq(failures, failed_once ? 1 : 0);
        heap_close(&h);
        ck_assert_uint_eq(script.held_bytes, 0);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
}
END_TEST

START_TEST(a_refused_range_leads_to_a_smaller_one_or_to_out_of_memory)
{
    allocator_config config = bfc_config(24 * HR_MIB, true);
    config.timestamped = _i == 1;
    for (int always = 0; always < 2; always++) {
        bool reached = true;
        for (uint64_t nth = 1; reached; nth++) {
            ck_assert_uint_lt(nth, POINTS_MAX);
            scripted script = {.fail_at = nth, .always_refuses = always == 1};
            heap h = heap_over(&config, scripted_backing(&script, false), NULL);
            (void)play(&h, HR_OOM);
            reached = script.takes >= nth;
            heap_close(&h);
            ck_assert_uint_eq(script.held_bytes, 0);
        }
    }
}
END_TEST

START_TEST(a_failed_creation_leaves_nothing)
{
    int64_t live = hr_host_mem_live();
    scripted script = {0};
    backing source = scripted_backing(&script, false);
    allocator_config config = bfc_config(HR_MIB, true);
    allocator *a = NULL;
    (void)hr_host_mem_fail_at(1);
    ck_assert_int_eq(allocator_create(&config, &source, NULL, &a, NULL), HR_NOMEM);
    (void)hr_host_mem_fail_at(0);
    ck_assert_ptr_null(a);
    ck_assert_int_eq(hr_host_mem_live(), live);
}
END_TEST

static Suite *faults_suite(void)
{
    Suite *suite = suite_create("bfc under faults");
    TCase *faults = tcase_create("faults");
    tcase_add_loop_test(faults, a_failed_host_allocation_fails_one_request_and_changes_nothing, 0, 2);
    tcase_add_loop_test(faults, a_refused_range_leads_to_a_smaller_one_or_to_out_of_memory, 0, 2);
    tcase_add_test(faults, a_failed_creation_leaves_nothing);
    suite_add_tcase(suite, faults);
    return suite;
}

TEST_MAIN(faults_suite())
