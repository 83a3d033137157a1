// SPDX-License-Identifier: Apache-2.0
// Characters: read, written, and never one that the terminal shows otherwise.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/tui/shell/requests.h"
#include "app/tui/term/glyphs.h"
#include "tests/tui/screen.h"
#include "tests/tui/suite.h"

START_TEST(ascii_stays_ascii)
{
    glyphs g = glyphs_make(GLYPHS_ASCII);
    const char *text = "b pin · ←→ turn — … Δ ±0 × ✓ ▲ 日本";
    while (*text != '\0') {
        ck_assert_int_lt(glyphs_fold(&g, utf8_next(&text)), 0x80);
    }
    for (int i = 0; i <= 8; i++) {
        ck_assert_int_lt(glyphs_bar(&g, i), 0x80);
    }
    ck_assert_int_lt(g.rule, 0x80);
    ck_assert_int_lt(g.pool, 0x80);
}
END_TEST

// Characters that are two columns wide where a terminal is set up for East Asia: category A of Unicode's
// EastAsianWidth.txt, as far as a program for measurements could come to use them.
static bool is_ambiguous(wchar_t c)
{
    static const struct {
        wchar_t first, last;
    } ranges[] = {
        {0xa1, 0xa1},     {0xa4, 0xa4},     {0xa7, 0xa8},     {0xaa, 0xaa},     {0xad, 0xae},
        {0xb0, 0xb4},     {0xb6, 0xba},     {0xbc, 0xbf},     {0xd7, 0xd8},     {0xf7, 0xfa},
        {0x391, 0x3a9},   {0x3b1, 0x3c9},   {0x2010, 0x2010}, {0x2013, 0x2016}, {0x2018, 0x2019},
        {0x201c, 0x201d}, {0x2020, 0x2022}, {0x2024, 0x2027}, {0x2030, 0x2030}, {0x2032, 0x2033},
        {0x203b, 0x203b}, {0x2190, 0x2199}, {0x21d2, 0x21d2}, {0x2200, 0x2200}, {0x2211, 0x2211},
        {0x221a, 0x221a}, {0x221e, 0x221e}, {0x2248, 0x2248}, {0x2260, 0x2261}, {0x2264, 0x2267},
        {0x2460, 0x24e9}, {0x2500, 0x254b}, {0x2550, 0x2573}, {0x2580, 0x258f}, {0x2592, 0x2595},
        {0x25a0, 0x25a1}, {0x25a3, 0x25a9}, {0x25b2, 0x25b3}, {0x25b6, 0x25b7}, {0x25bc, 0x25bd},
        {0x25c0, 0x25c1}, {0x25c6, 0x25c8}, {0x25cb, 0x25cb}, {0x25ce, 0x25d1}, {0x2605, 0x2606},
        {0x2660, 0x2661}, {0xfffd, 0xfffd},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (c >= ranges[i].first && c <= ranges[i].last) {
            return true;
        }
    }
    return false;
}

static void check_glyphs(app *a, glyph_set set, const char *name)
{
    char *text = screen_text(a);
    for (const char *at = text; *at != '\0';) {
        wchar_t c = *at == '\n' ? *at++ : utf8_next(&at);
        bool fits = set == GLYPHS_ASCII ? c < 0x80 : !is_ambiguous(c);
        if (!fits) {
            fputs(text, stderr); // longer than a message of Check may be
        }
        ck_assert_msg(fits, "%s after '%s' has U+%04x", glyphs_name(set), name, (unsigned)c);
    }
    free(text);
}

START_TEST(no_screen_has_a_character_that_its_set_has_not)
{
    static const glyph_set sets[] = {GLYPHS_ASCII, GLYPHS_BRAILLE};
    size_t count;
    const request_row *rows = request_rows(&count);
    for (size_t i = 0; i < 2; i++) {
        app *a = screen_open(&(screen_look){.rows = 36, .columns = 120, .glyphs = sets[i]});
        screen_advance(a, 60);
        for (size_t k = 0; k < count; k++) {
            if (strcmp(rows[k].name, "save-screen") != 0 && strcmp(rows[k].name, "glyphs") != 0) {
                app_key(a, rows[k].key);
                check_glyphs(a, sets[i], rows[k].name);
                app_key(a, INPUT_ESCAPE);
                a->quits = false;
            }
        }
        screen_close(a);
    }
}
END_TEST

START_TEST(braille_keeps_its_borders_where_blocks_were_shown_before)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    screen_advance(a, 10);
    while (a->looks.glyphs.set != GLYPHS_BRAILLE) {
        screen_keys(a, "g");
    }
    char *text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "── vram ──"));
    ck_assert_ptr_nonnull(strstr(text, "⣿"));
    free(text);
    screen_close(a);
}
END_TEST

START_TEST(broken_utf8_and_controls_are_marked_and_never_overrun)
{
    static const char *const broken[] = {"\xff",     "\xc3",         "\xe2\x82", "\xf0\x9f",
                                         "\xc0\xaf", "\xed\xa0\x80", "\x1b",     "\x7f"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        const char *at = broken[i], *end = at + strlen(at);
        ck_assert_int_eq(utf8_next(&at), 0xfffd);
        ck_assert(at <= end);
    }
    const char *euro = "€";
    ck_assert_int_eq(utf8_next(&euro), 0x20ac);
}
END_TEST

START_TEST(utf8_is_written_as_it_is_read)
{
    for (unsigned code = 0x20; code <= 0x10ffff; code += code < 0x3000 ? 1 : 257) {
        bool legal = code < 0x7f || (code >= 0xa0 && (code < 0xd800 || code >= 0xe000));
        char text[5] = "";
        const char *at = text;
        size_t length = utf8_put((wchar_t)code, text);
        ck_assert_int_eq(utf8_next(&at), legal ? (wchar_t)code : 0xfffd);
        ck_assert(!legal || at == text + length);
    }
}
END_TEST

SUITE_MAIN("tui glyphs", ascii_stays_ascii, braille_keeps_its_borders_where_blocks_were_shown_before,
           no_screen_has_a_character_that_its_set_has_not,
           broken_utf8_and_controls_are_marked_and_never_overrun, utf8_is_written_as_it_is_read)
