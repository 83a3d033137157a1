// SPDX-License-Identifier: Apache-2.0
// `run --times FILE`: a line for every instruction that costs something, on every device that computes; another's file is
// left alone, and what cannot be timed is told.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "insight/times.h"
#include "program.h"

#define RUN "run mlp_tiny -s device.kind=reference -s batch.size=4 --json --steps 4 --times "

static outcome run(const char *words, const char *path, int exit_code)
{
    char whole[512];
    (void)snprintf(whole, sizeof whole, "%s%s", words, path);
    outcome o = program_run(whole);
    assert_exit(&o, whole, exit_code);
    return o;
}

START_TEST(a_table_is_written_and_replaced_and_nothing_else_is)
{
    char path[128], line[1024];
    unsigned rows = 0;
    (void)snprintf(path, sizeof path, "%s/times.csv", program_home());
    for (int k = 0; k < 2; k++) {
        outcome o = run(RUN, path, 0);
        outcome_deinit(&o);
    }
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(line, sizeof line, file));
    ck_assert_str_eq(line, TIMES_HEADINGS);
    for (; fgets(line, sizeof line, file) != NULL; rows++) {
        ck_assert_ptr_nonnull(strstr(line, ",3,")); // steps behind the first
        ck_assert_ptr_null(strstr(line, ",3,0,"));
    }
    ck_assert_uint_gt(rows, 10);
    (void)fclose(file);

    file = fopen(path, "w");
    ck_assert_int_ge(fputs("somebody's table\n", file), 0);
    (void)fclose(file);
    outcome o = run(RUN, path, 5);
    ck_assert_ptr_nonnull(strstr(o.out, "it stays as it is"));
    outcome_deinit(&o);
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(fgets(line, sizeof line, file));
    ck_assert_str_eq(line, "somebody's table\n");
    (void)fclose(file);
    (void)remove(path);
}
END_TEST

START_TEST(what_has_no_times_says_so_before_or_after)
{
    outcome o = run(RUN, "/nowhere/times.csv", 5);
    ck_assert_ptr_nonnull(strstr(o.out, "/nowhere/times.csv"));
    outcome_deinit(&o);
    char path[128];
    (void)snprintf(path, sizeof path, "%s/times.csv", program_home());
    o = run("run mlp_tiny -s device.kind=plan --steps 4 --times ", path, 1);
    ck_assert_ptr_nonnull(strstr(o.err, "no instruction was timed"));
    ck_assert_ptr_null(fopen(path, "r"));
    outcome_deinit(&o);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("times");
    TCase *tests = tcase_create("times");
    suite_add_tcase(suite, tests);
    tcase_set_timeout(tests, 60);
    tcase_add_unchecked_fixture(tests, NULL, program_remove_home);
    tcase_add_test(tests, a_table_is_written_and_replaced_and_nothing_else_is);
    tcase_add_test(tests, what_has_no_times_says_so_before_or_after);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
