// SPDX-License-Identifier: Apache-2.0
// bits.h on the processor.
#include <check.h>

#include "headroom/preset.h"

#include "bits.h"

START_TEST(memory_is_handled_in_many_ways_and_the_weights_are_the_same)
{
    bits_check(bits_models[_i], (const char *const[]){"device.kind=cpu", NULL}, _i,
               HEADROOM_SANITIZED ? 4 : 1);
}
END_TEST

START_TEST(blocks_that_are_given_something_are_made_again_to_the_bit)
{
    static const char *const models[] = {"t5_base_tiny", "whisper_small_tiny"};
    bits_check_blocks(models[_i], (const char *const[]){"device.kind=cpu", "model.depth=4", NULL});
}
END_TEST

int main(void)
{
    hr_preset_search_beside(".");
    Suite *suite = suite_create("bits");
    TCase *tests = tcase_create("bits");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, memory_is_handled_in_many_ways_and_the_weights_are_the_same, 0, BITS_MODELS);
    tcase_add_loop_test(tests, blocks_that_are_given_something_are_made_again_to_the_bit, 0, 2);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
