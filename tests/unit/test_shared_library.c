// SPDX-License-Identifier: Apache-2.0
// A library that is opened when it is needed: its table is filled whole or not at all, once, whoever comes first.
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>

#include "base/shared_library.h"

typedef struct calls {
    double (*cos)(double);
    double (*sin)(double);
} calls;

static const shared_call in_libm[] = {{"cos", offsetof(calls, cos)}, {"sin", offsetof(calls, sin)}};
static const shared_call not_in_libm[] = {{"cos", offsetof(calls, cos)}, {"dnnl_cos", offsetof(calls, sin)}};
static const shared_library found = {.soname = "libm.so.6",
                                     .needed_by = "a test",
                                     .hint = "apt install libc6",
                                     .calls = in_libm,
                                     .call_count = 2};

START_TEST(a_library_that_is_there_can_be_called)
{
    calls table = {0};
    hr_err err = {0};
    ck_assert_msg(shared_library_load(&found, &table, &err) == HR_OK, "%s", err.sentence);
    ck_assert_double_eq(table.cos(1.0), cos(1.0));
    ck_assert_double_eq(table.sin(1.0), sin(1.0));
}
END_TEST

static void assert_nothing_came(const shared_library *wanted, hr_status status, const char *word)
{
    calls table = {0}, before = {0};
    hr_err err = {0};
    ck_assert_int_eq(shared_library_load(wanted, &table, &err), status);
    ck_assert_int_eq(err.status, status);
    ck_assert_int_eq(memcmp(&table, &before, sizeof table), 0);
    ck_assert_msg(strstr(err.sentence, word) != NULL, "%s", err.sentence);
    ck_assert_msg(strstr(err.sentence, "a test needed") != NULL, "%s", err.sentence);
    ck_assert_str_eq(err.hint, "apt install libc6");
}

static hr_status refuse(const void *table, hr_err *err)
{
    const calls *whole = table;
    ck_assert(whole->cos != NULL && whole->sin != NULL);
    (void)HR_FAIL(err, DEPENDENCY, "a test needed 2.x, the library is 3.0");
    hr_err_try(err, "%s", found.hint);
    return HR_DEPENDENCY;
}

START_TEST(what_is_missing_or_refused_is_named_and_leaves_the_table_alone)
{
    shared_library wanted = found;
    wanted.soname = "libheadroom-has-no-such.so.7";
    assert_nothing_came(&wanted, HR_DEPENDENCY, "libheadroom-has-no-such.so.7");
    wanted = found;
    wanted.calls = not_in_libm;
    assert_nothing_came(&wanted, HR_DEPENDENCY, "dnnl_cos");
    wanted = found;
    wanted.check = refuse;
    assert_nothing_came(&wanted, HR_DEPENDENCY, "the library is 3.0");
    ck_assert_int_eq(hr_status_exit_code(HR_DEPENDENCY), 4);
}
END_TEST

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__ // they need address space of their own
// Nothing is missing: installing it again would not help.
START_TEST(no_room_for_a_library_is_no_missing_library)
{
    calls table = {0};
    hr_err err = {0};
    const struct rlimit none = {1, 1};
    shared_library wanted = found;
    wanted.soname = "libresolv.so.2"; // of every glibc, and not mapped yet
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &none), 0);
    ck_assert_int_eq(shared_library_load(&wanted, &table, &err), HR_HOST_LIMIT);
    ck_assert_str_eq(err.hint, "ulimit -v unlimited");
}
END_TEST
#endif

static calls shared_table;
static shared_state state = SHARED_STATE_INIT;

static void *need(void *result)
{
    *(hr_status *)result = shared_library_need(&found, &state, &shared_table, NULL);
    *(hr_status *)result = shared_table.sin == NULL ? HR_STATE : *(hr_status *)result;
    return NULL;
}

START_TEST(a_failure_may_be_tried_again_and_every_thread_finds_a_whole_table)
{
    enum { THREADS = 16 };
    pthread_t threads[THREADS];
    hr_status results[THREADS];
    shared_library missing = found;
    missing.soname = "libheadroom-has-no-such.so.7";
    ck_assert_int_eq(shared_library_need(&missing, &state, &shared_table, NULL), HR_DEPENDENCY);
    ck_assert(shared_table.sin == NULL);
    for (int k = 0; k < THREADS; k++) {
        ck_assert_int_eq(pthread_create(&threads[k], NULL, need, &results[k]), 0);
    }
    for (int k = 0; k < THREADS; k++) {
        pthread_join(threads[k], NULL);
        ck_assert_int_eq(results[k], HR_OK);
    }
    ck_assert_int_eq(shared_library_need(&missing, &state, &shared_table, NULL), HR_OK); // it is there
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("shared library");
    tcase_add_test(tests, a_library_that_is_there_can_be_called);
#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
    tcase_add_test(tests, no_room_for_a_library_is_no_missing_library);
#endif
    tcase_add_test(tests, what_is_missing_or_refused_is_named_and_leaves_the_table_alone);
    tcase_add_test(tests, a_failure_may_be_tried_again_and_every_thread_finds_a_whole_table);
    Suite *suite = suite_create("shared library");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
