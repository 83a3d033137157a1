// SPDX-License-Identifier: Apache-2.0
// The ledger: bytes by category, and the first instant of the largest in_use.
#include "heap.h"
#include "memory/ledger.h"

enum { EVENTS = 3000, LIVE_MAX = 200 };

START_TEST(bytes_are_booked_by_category)
{
    allocator_config config = bfc_config(16 * HR_MIB, false);
    heap h = heap_open(&config);
    ledger l;
    ledger_init(&l);
    ck_assert_uint_eq(l.peak.instr, HR_NO_ID);
    (void)heap_alloc(&h, 1000);
    ledger_alloc(&l, h.allocator, HR_CATEGORY_WEIGHTS, 1000, HR_NO_ID);
    (void)heap_alloc(&h, 300);
    ledger_alloc(&l, h.allocator, HR_CATEGORY_ACTIVATIONS, 300, 4);
    ledger_free(&l, HR_CATEGORY_ACTIVATIONS, 100);
    ck_assert_uint_eq(l.by_category[HR_CATEGORY_WEIGHTS], 1000);
    ck_assert_uint_eq(l.by_category[HR_CATEGORY_ACTIVATIONS], 200);
    ck_assert_uint_eq(l.requested_bytes, 1200);
    ck_assert_uint_eq(l.peak_requested_bytes, 1300);
    heap_close(&h);
}
END_TEST

START_TEST(the_peak_is_the_first_attainment_of_the_largest_in_use)
{
    allocator_config config = bfc_config(HR_MIB, false);
    heap h = heap_open(&config);
    ledger l;
    ledger_init(&l);
    uint64_t first = heap_alloc(&h, 1000);
    ledger_alloc(&l, h.allocator, HR_CATEGORY_WEIGHTS, 1000, 1);
    ledger_free(&l, HR_CATEGORY_WEIGHTS, 1000);
    heap_free(&h, first);
    (void)heap_alloc(&h, 1020); // the same chunk, more of it asked for
    ledger_alloc(&l, h.allocator, HR_CATEGORY_INPUT, 1020, 2);
    ck_assert_uint_eq(l.peak.instr, 1);
    ck_assert_uint_eq(l.peak.in_use_bytes, 1024);
    ck_assert_uint_eq(l.peak.requested_bytes, 1000);
    ck_assert_uint_eq(l.peak_requested_bytes, 1020);
    ck_assert_uint_eq(l.peak.by_category[HR_CATEGORY_WEIGHTS], 1000);
    ck_assert_uint_eq(l.peak.by_category[HR_CATEGORY_INPUT], 0);
    ck_assert_uint_eq(l.peak.pool_bytes, HR_MIB);
    ck_assert_uint_eq(l.peak.largest_free_bytes, HR_MIB - 1024);
    ck_assert_double_eq(l.peak.fragmentation, 0.0);
    heap_close(&h);
}
END_TEST

START_TEST(a_full_pool_is_not_fragmented)
{
    allocator_config config = bfc_config(HR_MIB, false);
    heap h = heap_open(&config);
    ledger l;
    ledger_init(&l);
    (void)heap_alloc(&h, HR_MIB);
    ledger_alloc(&l, h.allocator, HR_CATEGORY_TEMPORARIES, HR_MIB, 0);
    ck_assert_double_eq(l.peak.fragmentation, 0.0);
    ck_assert_uint_eq(l.peak.largest_free_bytes, 0);
    heap_close(&h);
}
END_TEST

START_TEST(a_reset_starts_from_the_present)
{
    allocator_config config = bfc_config(HR_MIB, false);
    heap h = heap_open(&config);
    ledger l;
    ledger_init(&l);
    (void)heap_alloc(&h, 512);
    ledger_alloc(&l, h.allocator, HR_CATEGORY_WEIGHTS, 512, HR_NO_ID);
    uint64_t transient = heap_alloc(&h, 4096);
    ledger_alloc(&l, h.allocator, HR_CATEGORY_TEMPORARIES, 4096, 0);
    ledger_free(&l, HR_CATEGORY_TEMPORARIES, 4096);
    heap_free(&h, transient);
    ledger_reset_peak(&l, h.allocator);
    ck_assert_uint_eq(l.peak.in_use_bytes, 512);
    ck_assert_uint_eq(l.peak_requested_bytes, 512);
    ck_assert_uint_eq(l.peak.by_category[HR_CATEGORY_WEIGHTS], 512);
    ck_assert_uint_eq(l.peak.instr, HR_NO_ID);
    (void)heap_alloc(&h, 256);
    ledger_alloc(&l, h.allocator, HR_CATEGORY_INPUT, 256, 9);
    ck_assert_uint_eq(l.peak.instr, 9);
    ck_assert_uint_eq(l.peak.in_use_bytes, 768);
    heap_close(&h);
}
END_TEST

// The ledger against sums made again from nothing after every event.
START_TEST(the_ledger_agrees_with_the_heap_at_random)
{
    static struct {
        uint64_t address, bytes;
        hr_category category;
    } live[LIVE_MAX];
    allocator_config config = bfc_config(64 * HR_MIB, true);
    heap h = heap_open(&config);
    ledger l;
    ledger_init(&l);
    uint64_t seed = 77, largest_in_use = 0;
    uint32_t count = 0, largest_at = HR_NO_ID;
    for (uint32_t i = 0; i < EVENTS; i++) {
        if (count < LIVE_MAX && next_random(&seed) % 2 == 0) {
            live[count].bytes = random_between(&seed, 1, 100 * HR_KIB);
            live[count].category = (hr_category)(next_random(&seed) % HR_CATEGORY_COUNT);
            live[count].address = heap_alloc(&h, live[count].bytes);
            ledger_alloc(&l, h.allocator, live[count].category, live[count].bytes, i);
            count++;
        } else if (count > 0) {
            uint64_t at = next_random(&seed) % count;
            ledger_free(&l, live[at].category, live[at].bytes);
            heap_free(&h, live[at].address);
            live[at] = live[--count];
        }
        uint64_t sums[HR_CATEGORY_COUNT] = {0};
        for (uint32_t j = 0; j < count; j++) {
            sums[live[j].category] += live[j].bytes;
        }
        for (int j = 0; j < HR_CATEGORY_COUNT; j++) {
            MUST(sums[j] == l.by_category[j]);
        }
        heap_counters s = allocator_get_stats(h.allocator);
        if (s.in_use_bytes > largest_in_use) {
            largest_in_use = s.in_use_bytes;
            largest_at = i;
        }
        MUST(l.requested_bytes == s.requested_bytes && l.peak_requested_bytes == s.peak_requested_bytes);
        MUST(l.peak.in_use_bytes == largest_in_use && l.peak.instr == largest_at);
    }
    heap_close(&h);
}
END_TEST

static Suite *ledger_suite(void)
{
    Suite *suite = suite_create("ledger");
    TCase *books = tcase_create("books");
    tcase_add_test(books, bytes_are_booked_by_category);
    tcase_add_test(books, the_peak_is_the_first_attainment_of_the_largest_in_use);
    tcase_add_test(books, a_full_pool_is_not_fragmented);
    tcase_add_test(books, a_reset_starts_from_the_present);
    tcase_add_test(books, the_ledger_agrees_with_the_heap_at_random);
    suite_add_tcase(suite, books);
    return suite;
}

TEST_MAIN(ledger_suite())
