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
enum { MODELS = sizeof models / sizeof *models };

START_TEST(memory_is_handled_in_many_ways_and_the_weights_are_the_same)
{
    bits_check(models[_i], (const char *const[]){"device.kind=cpu", NULL}, 0, 1);
}
END_TEST

int main(void)
{
    hr_preset_search_beside(".");
    Suite *suite = suite_create("bits");
    TCase *tests = tcase_create("bits");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, memory_is_handled_in_many_ways_and_the_weights_are_the_same, 0, MODELS);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
