// SPDX-License-Identifier: Apache-2.0
// The byte codes of block-wise quantisation: 256 ascending values with zero and one among them, negatives mirrored,
// and the nearest one found for every number.
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "base/code8.h"

START_TEST(codes_ascend_from_the_smallest_decade_to_one)
{
    float values[CODE8_VALUES];
    code8_table((code8_kind)_i, values);
    for (int k = 0; k + 1 < CODE8_VALUES; k++) {
        ck_assert(values[k] < values[k + 1]);
    }
    const int zero = _i == CODE8_SIGNED ? 127 : 0, cells = _i == CODE8_SIGNED ? 64 : 128;
    ck_assert(values[255] == 1.0f && values[zero] == 0.0f);
    // The middle of the lowest decade's first cell, and of the highest decade's last.
    ck_assert_double_eq_tol((double)values[zero + 1], _i == CODE8_SIGNED ? 0.55e-6 : 0.325e-6, 1e-12);
    ck_assert_double_eq_tol((double)values[254], 1.0 - 0.45 / cells, 1e-7);
    for (int k = 1; zero > 0 && k <= zero; k++) {
        ck_assert(values[zero - k] == -values[zero + k]);
    }
}
END_TEST

START_TEST(the_nearest_code_is_found)
{
    float values[CODE8_VALUES];
    code8_table((code8_kind)_i, values);
    for (int n = 0; n <= 20000; n++) {
        const double x = (_i == CODE8_SIGNED ? -1.0 : 0.0) + (double)n * (_i == CODE8_SIGNED ? 1e-4 : 5e-5);
        const double reached = fabs((double)values[code8_nearest(values, x)] - x);
        for (int k = 0; k < CODE8_VALUES; k++) {
            if (fabs((double)values[k] - x) < reached) {
                ck_abort_msg("%g has a nearer value than its code's", x);
            }
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("code8");
    TCase *all = tcase_create("codes");
    tcase_add_loop_test(all, codes_ascend_from_the_smallest_decade_to_one, 0, 2);
    tcase_add_loop_test(all, the_nearest_code_is_found, 0, 2);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
