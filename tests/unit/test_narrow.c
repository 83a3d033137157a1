// SPDX-License-Identifier: Apache-2.0
// Floats narrowed many at once have the bits of one at a time, whatever their number and kind.
#include <check.h>
#include <stdlib.h>

#include "base/half.h"
#include "base/narrow.h"

enum { MOST = 4096 + 61, STRIDE = 1048573 }; // a prime: patterns of every exponent

static float from[MOST];
static uint16_t f16[MOST + 1], bf16[MOST + 1];

static void check_all(uint64_t count)
{
    f16[count] = bf16[count] = 0x5aa5;
    narrow_to_f16(f16, from, count);
    narrow_to_bf16(bf16, from, count);
    for (uint64_t k = 0; k < count; k++) {
        ck_assert_uint_eq(f16[k], f16_of_float(from[k]));
        ck_assert_uint_eq(bf16[k], bf16_of_float(from[k]));
    }
    ck_assert_uint_eq(f16[count], 0x5aa5);
    ck_assert_uint_eq(bf16[count], 0x5aa5);
}

START_TEST(patterns_of_every_kind_have_their_bits)
{
    for (uint32_t k = 0; k < MOST; k++) {
        from[k] = float_of_bits(k * STRIDE);
    }
    check_all(MOST);
    static const uint32_t edges[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001,
                                     0x477fefff, 0x477ff000, 0x38800000, 0x387fffff, 0x33000000, 0x33000001,
                                     0x7f7fffff, 0x3f808000, 0x3f818000, 1};
    for (uint32_t k = 0; k < MOST; k++) {
        from[k] = float_of_bits(edges[k % (sizeof edges / sizeof *edges)] + k / 512);
    }
    check_all(MOST);
}
END_TEST

START_TEST(any_number_of_them)
{
    for (uint32_t k = 0; k < MOST; k++) {
        from[k] = (float)k / 255.0f;
    }
    for (uint64_t count = 0; count < 70; count++) {
        check_all(count);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("narrow");
    TCase *cases = tcase_create("narrow");
    tcase_add_test(cases, patterns_of_every_kind_have_their_bits);
    tcase_add_test(cases, any_number_of_them);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
