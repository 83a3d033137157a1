// SPDX-License-Identifier: Apache-2.0
// The cpu device's library: the one that was built for is taken, another one is refused with what to install.
#include <check.h>
#include <string.h>

#include "device_cpu/onednn.h"

static void assert_refused(const char *soname, const char *had)
{
    void *table[64] = {0}, *const before[64] = {0};
    hr_err err = {0};
    shared_library other = onednn_library;
    other.soname = soname;
    ck_assert_uint_le(other.call_count, 64);
    ck_assert_int_eq(shared_library_load(&other, table, &err), HR_DEPENDENCY);
    ck_assert_int_eq(memcmp(table, before, sizeof table), 0);
    ck_assert_msg(strncmp(err.sentence, "device 'cpu' needed ", 20) == 0, "%s", err.sentence);
    ck_assert_msg(strstr(err.sentence, had) != NULL, "%s", err.sentence);
    ck_assert_msg(strstr(err.hint, "apt install libdnnl") != NULL, "%s", err.hint);
}

START_TEST(another_version_and_another_library_are_refused)
{
    assert_refused(ONEDNN_OTHER, "needed oneDNN 2.x, the library is 3.7");
    assert_refused("libm.so.6", "needed dnnl_version, libm.so.6 has no such function");
    assert_refused("libdnnl.so.999", "needed libdnnl.so.999, the system says");
}
END_TEST

START_TEST(the_right_one_is_opened_and_opened_again)
{
    hr_err err = {0};
    for (int k = 0; k < 2; k++) {
        ck_assert_msg(onednn_load(&err) == HR_OK, "%s", err.sentence);
        ck_assert_uint_eq(onednn_version() >> 32, 2);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("library");
    tcase_add_test(tests, another_version_and_another_library_are_refused);
    tcase_add_test(tests, the_right_one_is_opened_and_opened_again);
    Suite *suite = suite_create("library");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
