// SPDX-License-Identifier: Apache-2.0
// What Fit answers under a limit fits and runs to the byte; `tests/soak/run fit_answers` has every tiny preset.
#include <check.h>

#include "headroom/preset.h"

#include "fit_answers.h"

enum { POINTS = HEADROOM_SANITIZED ? 3 : 8 };

static const char *const models[] = {"mlp_tiny", "cifar10_separable_cnn_tiny", "gpt2_124m_tiny"};

START_TEST(what_is_answered_fits_and_runs_to_the_byte)
{
    uint64_t limits[FIT_ANSWERS_LIMITS];
    char why[512] = "";
    hr_preset *preset = NULL;
    fit_answers found;
    ck_assert_int_eq(hr_preset_open(models[_i], false, &preset, NULL, NULL), HR_OK);
    hr_knobs knobs = *hr_preset_knobs(preset);
    ck_assert_int_eq(hr_knobs_set_pairs(&knobs, "device.kind=cpu threads.count=1", NULL), HR_OK);
    ck_assert_msg(fit_answers_limits(preset, &knobs, limits, why, sizeof why), "%s", why);
    ck_assert_msg(fit_answers_hold(preset, &knobs, limits[1], POINTS, &found), "%s under %lu bytes: %s: %s",
                  models[_i], (unsigned long)limits[1], found.knobs, found.why);
    ck_assert_uint_ge(found.ran, 1);
    ck_assert_uint_gt(found.ways, found.fitting);
    hr_preset_close(preset);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fit_answers");
    TCase *all = tcase_create("promises");
    hr_preset_search_beside(".");
    tcase_add_loop_test(all, what_is_answered_fits_and_runs_to_the_byte, 0,
                        (int)(sizeof models / sizeof *models));
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
