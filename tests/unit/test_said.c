// SPDX-License-Identifier: Apache-2.0
// What a guest has said: lines that are kept, read on from where one was, and sent; and the pieces of what it is told.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "session/loop_guest.h"
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

// Random bytes, and characters across the end of a line: what is held is UTF-8, and no line is too long.
START_TEST(whatever_bytes_come_whole_characters_are_kept)
{
    static char text[8 * SAID_LINE_MAX];
    srand(2);
    for (size_t k = 0; k < 200; k++) {
        for (size_t at = 0; at < sizeof text; at++) {
            const int whole = "x\xe2\x82\xac\xf0\x9f\x98\x80"[(at + k) % 8];
            text[at] = (char)(k == 0 ? 0x80 : k % 2 == 0 ? rand() : whole);
        }
        uint64_t cursor = said.total;
        said_add(&said, HR_GUEST_PRINTED, text, sizeof text);
        for (size_t left = said_read(&said, &cursor, out, sizeof out), at = 0; left > 0;) {
            const char *end = memchr(out + at, '\n', left);
            ck_assert_ptr_nonnull(end);
            const size_t line = (size_t)(end - (out + at)) + 1;
            ck_assert_uint_le(line, SAID_LINE_MAX + 2);
            for (size_t c = 0; c < line; c += utf8_bytes(out + at + c, line - c)) {
                ck_assert_uint_gt(utf8_bytes(out + at + c, line - c), 0);
                ck_assert_int_ne(out[at + c], '\0');
            }
            at += line;
            left -= line;
        }
        ck_assert_uint_eq(cursor, said.total);
    }
    said_add(&said, HR_GUEST_PRINTED, "a\x80z", 3);
    ck_assert(memcmp(said.text + said.held - 7, "oa" UTF8_REPLACEMENT "z\n", 7) == 0);
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

// ---- pieces -----------------------------------------------------------------------------------------------------

static unsigned taken;
static char refusals[512], order_text[HR_GUEST_TEXT_MAX];

static hr_status open_nothing(const hr_guest_host *host, void **guest, hr_err *err)
{
    (void)host;
    (void)err;
    *guest = &taken;
    return HR_OK;
}

static void close_nothing(void *guest)
{
    (void)guest;
}

static void keep_order(void *guest, hr_guest_order kind, const char *text)
{
    (void)guest;
    (void)kind;
    taken++;
    (void)snprintf(order_text, sizeof order_text, "%s", text);
}

static void keep_refusal(void *context, hr_guest_line kind, const char *text, size_t length)
{
    (void)context;
    (void)kind;
    (void)snprintf(refusals + strlen(refusals), sizeof refusals - strlen(refusals), "%.*s;", (int)length,
                   text);
}

static void give(loop_guest *g, hr_guest_order kind, const char *text, bool more)
{
    hr_command c = {.kind = HR_COMMAND_GUEST, .knob = (uint32_t)kind, .count = more};
    (void)snprintf(c.text, sizeof c.text, "%s", text);
    if (loop_guest_collect(g, &c)) {
        loop_guest_take(g);
    }
}

// No rest of an order is done as if it were a whole one.
START_TEST(an_order_in_pieces_is_done_whole_or_refused)
{
    static const hr_guest_ops ops = {.open = open_nothing, .close = close_nothing, .take = keep_order};
    static loop_guest g;
    char piece[64];
    const hr_guest_host host = {.say = keep_refusal};
    taken = 0;
    refusals[0] = '\0';
    loop_guest_begin(&g, &ops, &host);
    give(&g, HR_GUEST_CHUNK, "print(1) ", true);
    give(&g, HR_GUEST_CHUNK, "print(2)", false);
    ck_assert_uint_eq(taken, 1);
    ck_assert_str_eq(order_text, "print(1) print(2)");
    g.works = true; // its end has come before that of the order
    give(&g, HR_GUEST_CHUNK, "if false then ", true);
    g.works = false;
    give(&g, HR_GUEST_CHUNK, "delete()", false);
    ck_assert_uint_eq(taken, 1);
    ck_assert_str_eq(refusals, "a recipe is at work: ^C stops it;");
    memset(piece, 'x', sizeof piece - 1);
    piece[sizeof piece - 1] = '\0';
    for (int k = 0; k < HR_GUEST_TEXT_MAX / 32; k++) {
        give(&g, HR_GUEST_CHUNK, piece, true);
    }
    give(&g, HR_GUEST_CHUNK, "delete()", false);
    give(&g, HR_GUEST_CHUNK, "whole", true);
    give(&g, HR_GUEST_FILE, "delete.lua", false);
    ck_assert_uint_eq(taken, 1);
    ck_assert_ptr_nonnull(strstr(refusals, "too long;an order to the recipe was cut;"));
    give(&g, HR_GUEST_CHUNK, "4", false);
    ck_assert_uint_eq(taken, 2);
    ck_assert_str_eq(order_text, "4");
    loop_guest_end(&g);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("said");
    TCase *c = tcase_create("said");
    tcase_add_checked_fixture(c, begin, NULL);
    tcase_add_test(c, lines_are_read_once_and_whole);
    tcase_add_test(c, whatever_bytes_come_whole_characters_are_kept);
    tcase_add_test(c, the_newest_lines_stay_and_what_is_gone_is_passed_over);
    tcase_add_test(c, it_comes_as_it_was_sent_and_nothing_else_does);
    tcase_add_test(c, an_order_in_pieces_is_done_whole_or_refused);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
