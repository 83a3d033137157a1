// SPDX-License-Identifier: Apache-2.0
// The main function that every test program here shares: SUITE_MAIN("name", first_test, second_test, …).
#ifndef TESTS_TUI_SUITE_H
#define TESTS_TUI_SUITE_H

#include <check.h>
#include <stddef.h>

#define SUITE_MAIN(name, ...)                                                                                \
    int main(void)                                                                                           \
    {                                                                                                        \
        const TTest *const tests[] = {__VA_ARGS__};                                                          \
        TCase *tc = tcase_create(name);                                                                      \
        for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {                                          \
            tcase_add_test(tc, tests[i]);                                                                    \
        }                                                                                                    \
        Suite *suite = suite_create(name);                                                                   \
        suite_add_tcase(suite, tc);                                                                          \
        SRunner *runner = srunner_create(suite);                                                             \
        srunner_run_all(runner, CK_NORMAL);                                                                  \
        int failed = srunner_ntests_failed(runner);                                                          \
        srunner_free(runner);                                                                                \
        return failed != 0;                                                                                  \
    }

#endif
