// SPDX-License-Identifier: Apache-2.0
// Promises of headroom/units.h.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "base/philox.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

// As it is printed, with two digits, so it can be typed.
START_TEST(what_is_printed_can_be_typed)
{
    for (uint64_t bytes = 1; bytes < UINT64_C(1) << 44; bytes = bytes * 13 / 7 + 1) {
        char once[HR_BYTES_TEXT_MAX], again[HR_BYTES_TEXT_MAX];
        uint64_t read = 0;
        ck_assert_msg(hr_bytes_parse(hr_bytes_human(bytes, once), &read), "%s", once);
        ck_assert_str_eq(hr_bytes_human(read, again), once);
    }
}
END_TEST

START_TEST(parses_what_people_type)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {
        {"0", 0},
        {"4096", 4096},
        {"4096B", 4096},
        {"4096 B", 4096},
        {"64KiB", 64 * HR_KIB},
        {"512MiB", 512 * HR_MIB},
        {"3 GiB", 3 * HR_GIB},
        {"1.5GiB", 3 * HR_GIB / 2},
        {"0.5KiB", 512},
        {"2.50 MiB", 5 * HR_MIB / 2},
        {"1TiB", 1024 * HR_GIB},
        {"8gib", 8 * HR_GIB},
        {"64 mIb", 64 * HR_MIB},
        {"7mb", 7000000},
        {"1.6GiB", UINT64_C(1717986918)}, // and 0.4 of a byte
        {"67.16MiB", 70422364},
        {"0.1KiB", 102},
        {"0.3 KiB", 307},
        {"0.3333333333333333333TiB", UINT64_C(366503875925)},
        {"10MB", UINT64_C(10000000)},
        {"1.2GB", UINT64_C(1200000000)},
        {"7kB", 7000},
        {"007", 7},
        {"18446744073709551615", UINT64_MAX},
        {"0.0009765625KiB", 1},
        {"1.000000000000000000000000KiB", 1024},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t bytes = 1;
        ck_assert_msg(hr_bytes_parse(cases[i].text, &bytes), "%s", cases[i].text);
        ck_assert_uint_eq(bytes, cases[i].bytes);
    }
}
END_TEST

START_TEST(refuses_everything_else_and_changes_nothing)
{
    static const char *const cases[] = {
        "",
        " ",
        "-1",
        "+1",
        "MiB",
        "1 ",
        "1  MiB",
        " 1MiB",
        "1MiB ",
        "1 M",
        "0x10",
        "1e3",
        "1.",
        ".5GiB",
        "1.5",
        "1.5B",
        "0.0001KiB", // not nothing, and no byte
        "0.0004kB",
        "nan",
        "inf",
        "1,5GiB",
        "1.5.5",
        "1GiBGiB",
        "1 KiBx",
        "--",
        "1\nKiB",
        "١",
        "1..5KiB",
        "18446744073709551616",
        "16777216TiB",
        "17179869184GiB",
        "0.00000000000000000001KiB",
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        uint64_t bytes = 77;
        ck_assert_msg(!hr_bytes_parse(cases[i], &bytes), "'%s' was taken for %lu", cases[i],
                      (unsigned long)bytes);
        ck_assert_uint_eq(bytes, 77);
    }
}
END_TEST

START_TEST(exact_form_is_short)
{
    char text[HR_BYTES_TEXT_MAX];
    ck_assert_str_eq(hr_bytes_exact(0, text), "0B");
    ck_assert_str_eq(hr_bytes_exact(64 * HR_MIB, text), "64MiB");
    ck_assert_str_eq(hr_bytes_exact(100 * HR_KIB, text), "100KiB");
    ck_assert_str_eq(hr_bytes_exact(12345, text), "12345B");
    ck_assert_str_eq(hr_bytes_exact(3 * HR_GIB / 2, text), "1536MiB");
    ck_assert_str_eq(hr_bytes_exact(UINT64_MAX, text), "18446744073709551615B");
}
END_TEST

START_TEST(exact_form_reads_back)
{
    uint32_t random[4];
    char text[HR_BYTES_TEXT_MAX];
    for (uint64_t i = 0; i < 2000; i++) {
        philox((philox_key){{1, (uint32_t)_i}}, i, 0, random);
        uint64_t bytes = ((uint64_t)random[0] << 32 | random[1]) >> random[2] % 64 << random[3] % 64;
        uint64_t back = ~bytes;
        ck_assert(hr_bytes_parse(hr_bytes_exact(bytes, text), &back));
        ck_assert_uint_eq(back, bytes);
    }
}
END_TEST

START_TEST(human_form_has_three_or_four_digits)
{
    char text[HR_BYTES_TEXT_MAX];
    ck_assert_str_eq(hr_bytes_human(0, text), "0 B");
    ck_assert_str_eq(hr_bytes_human(980, text), "980 B");
    ck_assert_str_eq(hr_bytes_human(1024, text), "1.00 KiB");
    ck_assert_str_eq(hr_bytes_human(115200, text), "112.5 KiB");
    ck_assert_str_eq(hr_bytes_human(3876208148, text), "3.61 GiB");
    ck_assert_str_eq(hr_bytes_human(64 * HR_MIB, text), "64.00 MiB");
    ck_assert_str_eq(hr_bytes_human(HR_MIB - 1, text), "1.00 MiB");
    ck_assert_str_eq(hr_bytes_human(UINT64_MAX, text), "16.00 EiB");
}
END_TEST

START_TEST(human_form_is_at_most_ten_characters)
{
    char text[HR_BYTES_TEXT_MAX];
    for (unsigned shift = 0; shift < 64; shift++) {
        for (unsigned part = 1; part <= 1024; part++) {
            uint64_t bytes = (UINT64_C(1) << shift) / 1024 * part;
            ck_assert_uint_le(strlen(hr_bytes_human(bytes, text)), 10);
            ck_assert_uint_le(strlen(hr_bytes_human(bytes - 1, text)), 10);
        }
    }
}
END_TEST

START_TEST(ranges_of_seconds_have_two_digits_and_one_unit)
{
    char text[HR_SECONDS_RANGE_MAX];
    ck_assert_str_eq(hr_seconds_range(0.0953, 0.1204, text), "95-120 ms");
    ck_assert_str_eq(hr_seconds_range(0.00087, 0.00132, text), "0.87-1.3 ms");
    ck_assert_str_eq(hr_seconds_range(0.94, 1.07, text), "0.94-1.1 s");
    ck_assert_str_eq(hr_seconds_range(12.3e-6, 98e-6, text), "12-98 us");
    ck_assert_str_eq(hr_seconds_range(1234.5, 2345.6, text), "1200-2300 s");
    ck_assert_str_eq(hr_seconds_range(0, 0, text), "0-0 us");
}
END_TEST

START_TEST(products_and_sums_never_wrap)
{
    uint64_t out = 0;
    ck_assert(hr_mul_bytes(UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1, &out));
    ck_assert_uint_eq(out, UINT64_C(0xFFFFFFFF00000000));
    ck_assert(!hr_mul_bytes(UINT64_C(1) << 32, UINT64_C(1) << 32, &out));
    ck_assert_uint_eq(out, UINT64_MAX);
    ck_assert(hr_add_bytes(UINT64_MAX - 1, 1, &out));
    ck_assert_uint_eq(out, UINT64_MAX);
    ck_assert(!hr_add_bytes(UINT64_MAX, 1, &out));
    ck_assert_uint_eq(out, UINT64_MAX);
    out = 5;
    ck_assert(hr_mul_bytes(out, out, &out)); // the result may be an operand
    ck_assert_uint_eq(out, 25);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("units");
    tcase_add_test(tests, parses_what_people_type);
    tcase_add_test(tests, what_is_printed_can_be_typed);
    tcase_add_test(tests, refuses_everything_else_and_changes_nothing);
    tcase_add_test(tests, exact_form_is_short);
    tcase_add_loop_test(tests, exact_form_reads_back, 0, 4);
    tcase_add_test(tests, human_form_has_three_or_four_digits);
    tcase_add_test(tests, human_form_is_at_most_ten_characters);
    tcase_add_test(tests, ranges_of_seconds_have_two_digits_and_one_unit);
    tcase_add_test(tests, products_and_sums_never_wrap);
    Suite *suite = suite_create("units");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
