// SPDX-License-Identifier: Apache-2.0
// A model that labels every place of an image: its accuracy is the share of places, not of images.
#define SMALL_ENGINE_LABELS "  labels: {type: int32, classes: 10}\n"
#define SMALL_ENGINE_LAYERS "    - {kind: conv2d, filters: 10, kernel: 1, stride: 8}\n"

#include "unit/small_engine.h"

START_TEST(accuracy_is_a_share_of_all_places)
{
    const char *const pairs[] = {"batch.size=5000", "device.vram=1GiB", NULL};
    hr_engine *e = create(pairs, &(hr_engine_options){.plan_only = false});
    run_steps(e, 2); // one epoch; its evaluation belongs to the last step
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    hr_report r = report_of(e);
    ck_assert_double_ge(r.train.eval_accuracy, 0.02);
    ck_assert_double_le(r.train.eval_accuracy, 0.5);
    hr_report_deinit(&r);
    hr_engine_destroy(e);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("evaluation");
    TCase *tests = tcase_create("evaluation");
    tcase_add_checked_fixture(tests, open_preset, close_preset);
    tcase_add_test(tests, accuracy_is_a_share_of_all_places);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
