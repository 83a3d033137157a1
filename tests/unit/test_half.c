// SPDX-License-Identifier: Apache-2.0
// Every two-byte float, and the rounding of every float between two neighbours, against plain arithmetic.
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "base/half.h"

// The value of a binary16 from its definition.
static double defined_f16(uint16_t half)
{
    const int exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;
    double value = exponent == 0    ? ldexp(fraction, -24)
                   : exponent == 31 ? (fraction == 0 ? (double)INFINITY : (double)NAN)
                                    : ldexp(1024 + fraction, exponent - 25);
    return half & 0x8000 ? -value : value;
}

START_TEST(test_every_half_is_read_and_written_back)
{
    for (uint32_t h = 0; h <= UINT16_MAX; h++) {
        const uint16_t half = (uint16_t)h;
        const double wanted = defined_f16(half);
        const float read = float_of_f16(half);
        if (isnan(wanted)) {
            ck_assert(isnan(read) && isnan(float_of_f16(f16_of_float(read))));
        } else {
            ck_assert_double_eq((double)read, wanted);
            ck_assert_uint_eq(f16_of_float(read), half);
        }
        const float brain = float_of_bf16(half);
        if (isnan(brain)) {
            ck_assert(isnan(float_of_bf16(bf16_of_float(brain))));
        } else {
            ck_assert_uint_eq(bf16_of_float(brain), half);
        }
    }
}
END_TEST

// Just below, at and just above the middle between two neighbours.
static void check_middle(uint16_t low, float (*read)(uint16_t), uint16_t (*write)(float))
{
    const uint16_t high = (uint16_t)(low + 1), even = low & 1 ? high : low;
    const float middle = (float)(((double)read(low) + (double)read(high)) / 2);
    ck_assert_uint_eq(write(middle), even);
    ck_assert_uint_eq(write(nextafterf(middle, 0.0f)), low);
    ck_assert_uint_eq(write(nextafterf(middle, INFINITY)), high);
    ck_assert_uint_eq(write(-middle), even | 0x8000);
}

START_TEST(test_the_middle_goes_to_the_even_neighbour)
{
    for (uint16_t low = 0; low < 0x7bff; low++) {
        check_middle(low, float_of_f16, f16_of_float);
    }
    for (uint16_t low = 1; low < 0x7f7f; low++) {
        check_middle(low, float_of_bf16, bf16_of_float);
    }
    ck_assert_uint_eq(f16_of_float(65519.996f), 0x7bff);
    ck_assert_uint_eq(f16_of_float(65520.0f), 0x7c00);
    ck_assert_uint_eq(f16_of_float(INFINITY), 0x7c00);
    ck_assert_uint_eq(bf16_of_float(INFINITY), 0x7f80);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("half");
    TCase *tests = tcase_create("half");
    tcase_add_test(tests, test_every_half_is_read_and_written_back);
    tcase_add_test(tests, test_the_middle_goes_to_the_even_neighbour);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
