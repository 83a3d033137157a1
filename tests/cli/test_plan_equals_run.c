// SPDX-License-Identifier: Apache-2.0
// The plan is the run, to the byte: every configuration of the small models, and of ResNet-18 as many as time allows
// (every pair of mode, growth and optimizer at batch 16; tests/soak has them all). Under a sanitizer only batch 1.
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/preset.h"

#include "plan_equals_run.h"

enum { RESNET = 2, BATCHES = HEADROOM_SANITIZED ? 1 : EXACTNESS_BATCHES };

// ResNet-18: {batch, mode, growth, optimizer, static}
static const exactness_case expensive[] = {
    {RESNET, 0, 0, 0, 2, false},
    {RESNET, 0, 1, 1, 1, false},
    // All pairs of mode, growth and optimizer.
    {RESNET, 1, 0, 0, 0, false},
    {RESNET, 1, 1, 1, 0, false},
    {RESNET, 1, 0, 1, 1, false},
    {RESNET, 1, 1, 0, 1, false},
    {RESNET, 1, 0, 0, 2, false},
    {RESNET, 1, 1, 1, 2, false},
    {RESNET, 2, 0, 1, 2, false},
    {RESNET, 2, 1, 0, 1, false},
    {RESNET, 3, 0, 1, 1, false},
    {RESNET, 0, 1, 1, 2, true},
    {RESNET, 1, 1, 1, 2, true},
};

static exactness_case covered[2 * EXACTNESS_CASES];
static int covered_count;

static void choose(void)
{
    for (unsigned number = 0; number < EXACTNESS_CASES; number++) {
        exactness_case c = exactness_case_number(number);
        if (c.model != RESNET && c.batch < BATCHES) {
            covered[covered_count++] = c;
            if (exactness_can_be_static(&c)) {
                c.is_static = true;
                covered[covered_count++] = c;
            }
        }
    }
    for (size_t k = 0; k < sizeof expensive / sizeof *expensive; k++) {
        if (expensive[k].batch < BATCHES) {
            covered[covered_count++] = expensive[k];
        }
    }
}

START_TEST(the_plan_is_the_run)
{
    char name[96], why[256] = "";
    uint64_t peak_bytes = 0;
    ck_assert_msg(exactness_holds(&covered[_i], &peak_bytes, why, sizeof why), "%s: %s",
                  exactness_name(&covered[_i], name, sizeof name), why);
    ck_assert_uint_gt(peak_bytes, 0);
}
END_TEST

static void print_coverage(void)
{
    char name[96];
    int small = 0;
    while (small < covered_count && covered[small].model != RESNET) {
        small++;
    }
    printf("covered: %d configurations of cifar10_separable_cnn and mlp, and\n", small);
    for (int k = small; k < covered_count; k++) {
        printf("  %s\n", exactness_name(&covered[k], name, sizeof name));
    }
}

int main(void)
{
    hr_preset_search_beside(".");
    choose();
    TCase *tests = tcase_create("plan equals run");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, the_plan_is_the_run, 0, covered_count);
    Suite *suite = suite_create("plan equals run");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    print_coverage();
    return failed != 0;
}
