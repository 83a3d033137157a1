// SPDX-License-Identifier: Apache-2.0
// bits.h on the processor.
#include <check.h>

#include "headroom/preset.h"

#include "bits.h"

static const char *const models[] = {"cifar10_separable_cnn_tiny",
                                     "resnet50_tiny",
                                     "mobilenet_v2_tiny",
                                     "unet_tiny",
                                     "gpt2_124m_tiny",
                                     "bert_base_tiny",
                                     "vit_b16_tiny",
                                     "lstm_lm_medium_tiny"};
enum { MODELS = sizeof models / sizeof *models, KNOB_BY_KNOB = HEADROOM_SANITIZED ? 2 : MODELS };

START_TEST(memory_is_handled_in_many_ways_and_the_weights_are_the_same)
{
    bits_check(models[_i], (const char *const[]){"device.kind=cpu", NULL}, 0, 1);
}
END_TEST

START_TEST(a_knob_that_does_no_arithmetic_changes_no_weight)
{
    bits_check_knobs(models[_i]);
}
END_TEST

int main(void)
{
    hr_preset_search_beside(".");
    Suite *suite = suite_create("bits");
    TCase *tests = tcase_create("bits");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, memory_is_handled_in_many_ways_and_the_weights_are_the_same, 0, MODELS);
    tcase_add_loop_test(tests, a_knob_that_does_no_arithmetic_changes_no_weight, 0, KNOB_BY_KNOB);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
