// SPDX-License-Identifier: Apache-2.0
// What a process maps: oneDNN and the runtimes behind it only where a cpu device computes, libarchive only where a packed
// data set is read. The loader says so itself (LD_DEBUG, ld.so(8)).
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

static const char *const heavy[] = {"libdnnl.so", "libgomp.so", "libstdc++.so", "libOpenCL.so",
                                    "libarchive", "libxml2.so", "libicudata"};
enum { HEAVY = sizeof heavy / sizeof *heavy };

static const char *const light[] = {"--version", "knobs", "presets", "plan demo -s device.kind=plan",
                                    "run demo --steps 1 -s device.kind=reference -s batch.size=1"};

START_TEST(who_does_not_compute_maps_no_library_for_it)
{
    outcome o = program_run_with("LD_DEBUG=files", light[_i]);
    assert_exit(&o, light[_i], 0);
    ck_assert_msg(strstr(o.err, "libc.so") != NULL, "the loader did not speak:\n%s", o.err);
    for (int k = 0; k < HEAVY; k++) {
        ck_assert_msg(strstr(o.err, heavy[k]) == NULL, "headroom %s loads %s", light[_i], heavy[k]);
    }
    outcome_deinit(&o);
}
END_TEST

#if HEADROOM_HAVE_ONEDNN
START_TEST(a_run_on_the_cpu_maps_onednn_and_its_threads_wait_passively)
{
    outcome o = program_run_with("LD_DEBUG=files", "run demo --steps 1");
    assert_exit(&o, "run demo --steps 1", 0);
    ck_assert_ptr_nonnull(strstr(o.err, "libdnnl.so"));
    ck_assert_ptr_null(strstr(o.err, "libarchive"));
    outcome_deinit(&o);
    o = program_run_with("OMP_DISPLAY_ENV=true", "run demo --steps 1"); // OpenMP prints what it read
    assert_exit(&o, "run demo --steps 1", 0);
    ck_assert_msg(strstr(o.err, "OMP_WAIT_POLICY = 'PASSIVE'") != NULL, "%s", o.err);
    outcome_deinit(&o);
}
END_TEST
#endif

int main(void)
{
    TCase *tests = tcase_create("libraries");
    tcase_add_unchecked_fixture(tests, NULL, program_remove_home);
    tcase_add_loop_test(tests, who_does_not_compute_maps_no_library_for_it, 0, sizeof light / sizeof *light);
#if HEADROOM_HAVE_ONEDNN
    tcase_add_test(tests, a_run_on_the_cpu_maps_onednn_and_its_threads_wait_passively);
#endif
    Suite *suite = suite_create("libraries");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
