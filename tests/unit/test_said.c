// SPDX-License-Identifier: Apache-2.0
// What a guest has said: lines that are kept, read on from where one was, and sent.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "session/messages.h"

static said_log said;
static char out[SAID_BYTES + 1];

START_TEST(lines_are_read_once_and_whole)
{
    uint64_t cursor = 0;
    said_add(&said, HR_GUEST_PRINTED, "one\ntwo", 7);
    said_add(&said, HR_GUEST_NOTE, "three\n", 6);
    said_add(&said, HR_GUEST_NOTE, "", 0);
    ck_assert_uint_eq(said_read(&said, &cursor, out, 8), 5); // no room for the second
    ck_assert_str_eq(out, "oone\n");
    ck_assert_uint_eq(said_read(&said, &cursor, out, sizeof out), 12);
    ck_assert_str_eq(out, "otwo\nnthree\n");
    ck_assert_uint_eq(said_read(&said, &cursor, out, sizeof out), 0);
    cursor = UINT64_MAX; // of another session
    ck_assert_uint_eq(said_read(&said, &cursor, out, sizeof out), 17);
}
END_TEST

// Against a text that keeps everything.
START_TEST(the_newest_lines_stay_and_what_is_gone_is_passed_over)
{
    static char all[8 << 20];
    size_t length = 0;
    uint64_t cursor = 0, late = 0;
    srand(1);
    for (int k = 0; k < 3000; k++) {
        char line[3 * SAID_LINE_MAX];
        const size_t size = (size_t)rand() % (k % 50 == 0 ? sizeof line : 60);
        memset(line, 'a' + k % 26, size);
        said_add(&said, HR_GUEST_ERROR, line, size);
        for (size_t at = 0; at < size; at += SAID_LINE_MAX) {
            const size_t piece = size - at < SAID_LINE_MAX ? size - at : SAID_LINE_MAX;
            all[length++] = 'e';
            memset(all + length, 'a' + k % 26, piece);
            length += piece;
            all[length++] = '\n';
        }
        ck_assert_uint_eq(said.total, length);
        ck_assert(memcmp(said.text, all + length - said.held, said.held) == 0);
        const uint64_t before = cursor;
        const size_t bytes = said_read(&said, &cursor, out, sizeof out);
        ck_assert_uint_eq(before + bytes, length); // who reads in time misses nothing
    }
    const size_t bytes = said_read(&said, &late, out, sizeof out);
    ck_assert_uint_eq(bytes, said.held);
    ck_assert(bytes <= SAID_BYTES && out[0] == 'e' && late == length);
}
END_TEST

START_TEST(it_comes_as_it_was_sent_and_nothing_else_does)
{
    static said_log got;
    wire_out body = {0};
    said_add(&said, HR_GUEST_PLOT, "a\nb", 3);
    put_said(&body, &said);
    wire_message m = {.kind = MESSAGE_SAID, .bytes = (uint32_t)body.bytes, .body = body.data, .fd = -1};
    ck_assert(get_said(&m, &got));
    ck_assert_uint_eq(got.total, said.total);
    ck_assert_uint_eq(got.held, said.held);
    ck_assert(memcmp(got.text, said.text, said.held) == 0);
    m.bytes--; // its last line does not end
    ck_assert(!get_said(&m, &got));
    m.bytes = 4;
    ck_assert(!get_said(&m, &got));
    m.bytes = (uint32_t)body.bytes;
    memset(body.data, 0, sizeof(uint64_t)); // more than was ever said
    ck_assert(!get_said(&m, &got));
    ck_assert_uint_eq(got.total, said.total); // what was known stays
    wire_out_deinit(&body);
}
END_TEST

static void begin(void)
{
    memset(&said, 0, sizeof said);
}

int main(void)
{
    Suite *s = suite_create("said");
    TCase *c = tcase_create("said");
    tcase_add_checked_fixture(c, begin, NULL);
    tcase_add_test(c, lines_are_read_once_and_whole);
    tcase_add_test(c, the_newest_lines_stay_and_what_is_gone_is_passed_over);
    tcase_add_test(c, it_comes_as_it_was_sent_and_nothing_else_does);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
