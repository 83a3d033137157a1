// SPDX-License-Identifier: Apache-2.0
// Promises of headroom/json.h and base/utf8.h.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/json.h"

#include "base/host_mem.h"
#include "base/text.h"
#include "base/utf8.h"

static void expect(const char *from, size_t bytes, const char *to)
{
    text said = {0};
    FILE *out = text_stream(&said);
    ck_assert_ptr_nonnull(out);
    hr_json_put(out, from, bytes);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_str_eq(said.data, to);
    text_deinit(&said);
}

START_TEST(what_json_knows_is_escaped)
{
    expect("", 0, "\"\"");
    expect("a \"b\" \\ c/d", 11, "\"a \\\"b\\\" \\\\ c/d\"");
    expect("one\ntwo\tthree\x7f\x1b[0m", 18, "\"one\\ntwo\\u0009three\\u007f\\u001b[0m\"");
    expect("a\0b", 3, "\"a\\u0000b\"");
}
END_TEST

START_TEST(characters_stay_and_stray_bytes_are_replaced)
{
    expect("é — 😀", 11, "\"é — 😀\"");
    expect("\x80", 1, "\"\\ufffd\"");
    expect("\xc0\xaf", 2, "\"\\ufffd\\ufffd\"");                         // an overlong slash
    expect("\xed\xa0\x80", 3, "\"\\ufffd\\ufffd\\ufffd\"");              // a surrogate
    expect("\xf4\x90\x80\x80x", 5, "\"\\ufffd\\ufffd\\ufffd\\ufffdx\""); // beyond U+10FFFF
}
END_TEST

// Each prefix in memory of its own, so that a sanitizer sees a byte read behind it.
START_TEST(a_cut_character_is_not_read_behind_its_end)
{
    static const char *const whole[] = {"é", "—", "😀"};
    for (size_t k = 0; k < sizeof whole / sizeof *whole; k++) {
        const size_t bytes = strlen(whole[k]);
        ck_assert_uint_eq(utf8_bytes(whole[k], bytes), bytes);
        for (size_t cut = 1; cut < bytes; cut++) {
            char *piece = hr_calloc(cut, 1);
            memcpy(piece, whole[k], cut);
            ck_assert_uint_eq(utf8_bytes(piece, cut), 0);
            expect(piece, cut,
                   cut == 1   ? "\"\\ufffd\""
                   : cut == 2 ? "\"\\ufffd\\ufffd\""
                              : "\"\\ufffd\\ufffd\\ufffd\"");
            hr_free(piece);
        }
    }
}
END_TEST

// Every code point by the formula of RFC 3629, against the table.
START_TEST(every_code_point_is_one_character)
{
    uint32_t wrong = 0;
    for (uint32_t code = 0; code < 0x120000; code++) {
        const size_t bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        static const uint32_t lead[] = {0, 0x00, 0xc0, 0xe0, 0xf0};
        char form[4] = {(char)(lead[bytes] | code >> (6 * (bytes - 1)))};
        for (size_t k = 1; k < bytes; k++) {
            form[k] = (char)(0x80 | (code >> (6 * (bytes - 1 - k)) & 0x3f));
        }
        const bool legal = (code < 0xd800 || code > 0xdfff) && code <= 0x10ffff;
        wrong += utf8_bytes(form, bytes) != (legal ? bytes : 0);
    }
    ck_assert_uint_eq(wrong, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("json");
    TCase *t = tcase_create("json");
    tcase_add_test(t, what_json_knows_is_escaped);
    tcase_add_test(t, characters_stay_and_stray_bytes_are_replaced);
    tcase_add_test(t, a_cut_character_is_not_read_behind_its_end);
    tcase_add_test(t, every_code_point_is_one_character);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
