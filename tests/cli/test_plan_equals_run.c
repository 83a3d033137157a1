// SPDX-License-Identifier: Apache-2.0
// The plan is the run, to the byte: every configuration of the small models, and of ResNet-18 as many as time allows
// (every pair of mode, growth and optimizer at batch 16; tests/soak has them all).
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/preset.h"

#include "plan_equals_run.h"

enum { SMALL_CASES = EXACTNESS_CASES / EXACTNESS_MODELS * 2, RESNET = 2 };

// ResNet-18: {batch, mode, growth, optimizer}
static const exactness_case expensive[] = {
    {RESNET, 0, 0, 0, 2},
    {RESNET, 0, 1, 1, 1},
    // All pairs of mode, growth and optimizer.
    {RESNET, 1, 0, 0, 0},
    {RESNET, 1, 1, 1, 0},
    {RESNET, 1, 0, 1, 1},
    {RESNET, 1, 1, 0, 1},
    {RESNET, 1, 0, 0, 2},
    {RESNET, 1, 1, 1, 2},
    {RESNET, 2, 0, 1, 2},
    {RESNET, 2, 1, 0, 1},
    {RESNET, 3, 0, 1, 1},
};

enum { EXPENSIVE_CASES = sizeof expensive / sizeof *expensive };

static void assert_holds(const exactness_case *c)
{
    char name[96], why[256] = "";
    uint64_t peak_bytes = 0;
    ck_assert_msg(exactness_holds(c, &peak_bytes, why, sizeof why), "%s: %s",
                  exactness_name(c, name, sizeof name), why);
    ck_assert_uint_gt(peak_bytes, 0);
}

START_TEST(plan_equals_run_on_small_models)
{
    exactness_case c = exactness_case_number((unsigned)_i);
    assert_holds(&c);
}
END_TEST

START_TEST(plan_equals_run_on_resnet)
{
    assert_holds(&expensive[_i]);
}
END_TEST

static void print_coverage(void)
{
    char name[96];
    printf("covered: all %d configurations of cifar10_separable_cnn and mlp, and\n", SMALL_CASES);
    for (int k = 0; k < EXPENSIVE_CASES; k++) {
        printf("  %s\n", exactness_name(&expensive[k], name, sizeof name));
    }
}

int main(void)
{
    hr_preset_search_beside(".");
    TCase *tests = tcase_create("plan equals run");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, plan_equals_run_on_small_models, 0, SMALL_CASES);
    tcase_add_loop_test(tests, plan_equals_run_on_resnet, 0, EXPENSIVE_CASES);
    Suite *suite = suite_create("plan equals run");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    print_coverage();
    return failed != 0;
}
