// SPDX-License-Identifier: Apache-2.0
// Knobs that do no arithmetic, one by one, on the processor: bits.h. Under a sanitizer two models.
#include <check.h>

#include "headroom/preset.h"

#include "bits.h"

enum { KNOB_BY_KNOB = HEADROOM_SANITIZED ? 2 : BITS_MODELS };

START_TEST(a_knob_that_does_no_arithmetic_changes_no_weight)
{
    bits_check_knobs(bits_models[_i]);
}
END_TEST

int main(void)
{
    hr_preset_search_beside(".");
    Suite *suite = suite_create("bits knobs");
    TCase *tests = tcase_create("bits knobs");
    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, a_knob_that_does_no_arithmetic_changes_no_weight, 0, KNOB_BY_KNOB);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
