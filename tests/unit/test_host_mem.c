// SPDX-License-Identifier: Apache-2.0
// Promises of base/host_mem.h and base/clock.h.
#include <check.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/host_mem.h"

START_TEST(memory_comes_zeroed_and_is_counted)
{
    int64_t live = hr_host_mem_live();
    unsigned char *memory = hr_calloc(1000, 3);
    for (size_t i = 0; i < 3000; i++) {
        ck_assert_uint_eq(memory[i], 0);
    }
    char *copy = hr_strdup("word");
    ck_assert_str_eq(copy, "word");
    ck_assert_int_eq(hr_host_mem_live(), live + 2);
    memory = hr_realloc(memory, 5000, 2);
    ck_assert_int_eq(hr_host_mem_live(), live + 2);
    hr_free(memory);
    hr_free(copy);
    hr_free(NULL);
    ck_assert_int_eq(hr_host_mem_live(), live);
}
END_TEST

START_TEST(overflow_and_nothing_give_null)
{
    char *kept = hr_strdup("kept");
    ck_assert_ptr_null(hr_calloc(SIZE_MAX / 2, 3));
    ck_assert_ptr_null(hr_realloc(kept, SIZE_MAX / 2, 3));
    ck_assert_ptr_null(hr_calloc(0, 8));
    ck_assert_ptr_null(hr_calloc(8, 0));
    ck_assert_ptr_null(hr_realloc(kept, 0, 8));
    ck_assert_str_eq(kept, "kept");
    arena a = {0};
    ck_assert_ptr_null(arena_take(&a, SIZE_MAX / 2, 3));
    ck_assert_ptr_null(arena_take(&a, SIZE_MAX, 1));
    ck_assert_ptr_null(a.head);
    hr_free(kept);
}
END_TEST

START_TEST(nth_request_fails_once)
{
    hr_host_mem_fail_at(2);
    char *first = hr_strdup("a");
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_null(hr_realloc(first, 100, 1));
    ck_assert_str_eq(first, "a");
    first = hr_realloc(first, 100, 1);
    ck_assert_ptr_nonnull(first);
    ck_assert_uint_eq(hr_host_mem_fail_at(0), 3);
    hr_free(first);
}
END_TEST

// The loop that every test of a failing allocation uses.
START_TEST(loop_passes_the_last_request)
{
    unsigned failures = 0;
    for (uint64_t nth = 1;; nth++) {
        hr_host_mem_fail_at(nth);
        char *words[3];
        unsigned missing = 0;
        for (int i = 0; i < 3; i++) {
            words[i] = hr_strdup("word");
            missing += words[i] == NULL;
        }
        uint64_t seen = hr_host_mem_fail_at(0);
        for (int i = 0; i < 3; i++) {
            hr_free(words[i]);
        }
        failures += missing;
        if (seen < nth) {
            ck_assert_uint_eq(missing, 0);
            break;
        }
        ck_assert_uint_eq(missing, 1);
    }
    ck_assert_uint_eq(failures, 3);
}
END_TEST

START_TEST(arena_gives_aligned_zeroed_separate_pieces)
{
    int64_t live = hr_host_mem_live();
    arena a = {0};
    unsigned char *pieces[300];
    for (size_t i = 0; i < 300; i++) {
        size_t bytes = i % 50 == 49 ? 100000 : i * 7;
        pieces[i] = arena_take(&a, 1, bytes);
        ck_assert_ptr_nonnull(pieces[i]);
        ck_assert_uint_eq((uintptr_t)pieces[i] % 16, 0);
        for (size_t j = 0; j < bytes; j++) {
            ck_assert_uint_eq(pieces[i][j], 0);
        }
        memset(pieces[i], 255, bytes);
    }
    ck_assert_ptr_nonnull(arena_take(&a, 0, 8)); // nothing is a piece too: NULL always means failure
    ck_assert_str_eq(arena_print(&a, "conv%d/%s", 1, "weights"), "conv1/weights");
    arena_deinit(&a);
    ck_assert_ptr_null(a.head);
    ck_assert_int_eq(hr_host_mem_live(), live);
    arena_deinit(&a);
}
END_TEST

START_TEST(arena_survives_a_failed_block)
{
    arena a = {0};
    hr_host_mem_fail_at(1);
    ck_assert_ptr_null(arena_take(&a, 1, 100));
    ck_assert_ptr_nonnull(arena_take(&a, 1, 100));
    hr_host_mem_fail_at(1);
    ck_assert_ptr_null(arena_print(&a, "%0*d", 100000, 1));
    ck_assert_str_eq(arena_print(&a, "%d", 1), "1");
    hr_host_mem_fail_at(0);
    arena_deinit(&a);
}
END_TEST

static void *allocate_and_free(void *unused)
{
    for (int i = 0; i < 20000; i++) {
        hr_free(hr_calloc(1, 16));
    }
    return unused;
}

START_TEST(counts_hold_across_threads)
{
    int64_t live = hr_host_mem_live();
    hr_host_mem_fail_at(0);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, allocate_and_free, NULL), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    ck_assert_int_eq(hr_host_mem_live(), live);
    ck_assert_uint_eq(hr_host_mem_fail_at(0), 80000);
}
END_TEST

START_TEST(clock_never_runs_backwards)
{
    uint64_t last = clock_now_ns();
    for (int i = 0; i < 1000; i++) {
        uint64_t now = clock_now_ns();
        ck_assert_uint_ge(now, last);
        last = now;
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("host_mem");
    tcase_add_test(tests, memory_comes_zeroed_and_is_counted);
    tcase_add_test(tests, overflow_and_nothing_give_null);
    tcase_add_test(tests, nth_request_fails_once);
    tcase_add_test(tests, loop_passes_the_last_request);
    tcase_add_test(tests, arena_gives_aligned_zeroed_separate_pieces);
    tcase_add_test(tests, arena_survives_a_failed_block);
    tcase_add_test(tests, counts_hold_across_threads);
    tcase_add_test(tests, clock_never_runs_backwards);
    Suite *suite = suite_create("host_mem");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
