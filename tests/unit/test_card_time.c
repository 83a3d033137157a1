// SPDX-License-Identifier: Apache-2.0
// What knobs and cards do to the planned time of a whole step.
#include <check.h>
#include <stdlib.h>

#include "headroom/engine.h"

// Seconds of a step of the named preset under `pairs` (ends in NULL), as a what-if says them.
static double seconds_of(const char *name, const char *const *pairs)
{
    hr_err err = {0};
    hr_preset *preset = NULL;
    hr_planner *planner = NULL;
    hr_whatif w = {0};
    ck_assert_msg(hr_preset_open(name, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    hr_knobs knobs = *hr_preset_knobs(preset);
    for (; *pairs != NULL; pairs++) {
        ck_assert_msg(hr_knobs_set_pair(&knobs, *pairs, &err) == HR_OK, "%s", err.sentence);
    }
    ck_assert_msg(hr_planner_open(preset, &planner, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(hr_planner_plan(planner, &knobs, &w, &err) == HR_OK, "%s", err.sentence);
    hr_planner_close(planner);
    hr_preset_close(preset);
    return w.step_seconds;
}

#define SECONDS(name, ...) seconds_of(name, (const char *const[]){__VA_ARGS__, NULL})
#define A100               "device.kind=plan", "device.card=a100-80g"

START_TEST(tf32_shortens_a_float32_step_and_no_other)
{
    const double plain = SECONDS("resnet18", A100, "precision.tf32=off");
    ck_assert_double_lt(SECONDS("resnet18", A100, "precision.tf32=on"), 0.8 * plain);
    const double half = SECONDS("resnet18", A100, "precision.policy=float16", "precision.tf32=off");
    ck_assert_double_eq(SECONDS("resnet18", A100, "precision.policy=float16", "precision.tf32=on"), half);
}
END_TEST

int main(void)
{
    hr_preset_search_beside(".");
    Suite *suite = suite_create("card_time");
    TCase *all = tcase_create("promises");
    tcase_add_test(all, tf32_shortens_a_float32_step_and_no_other);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
