// SPDX-License-Identifier: Apache-2.0
#include "tests/tui/screenshots.h"

#include <check.h>
#include <locale.h>
#include <stdlib.h>

#include "app/tui/term/terminal.h"

static const screen_look looks[SCREENSHOT_LOOKS] = {
    {.rows = 24, .columns = 80},
    {.rows = 36, .columns = 120},
    {.rows = 24, .columns = 80, .glyphs = GLYPHS_BRAILLE},
    {.rows = 24, .columns = 80, .glyphs = GLYPHS_ASCII},
    {.rows = 24, .columns = 80, .no_color = true},
    {.type = "linux", .rows = 30, .columns = 100},
    {.rows = 4, .columns = 20},
};

const char *const screenshots_themes[SCREENSHOT_THEMES] = {"dark", "light", "safe", "safe-light", "mono"};

screenshots screenshots_dump(const theme *svg)
{
    screenshots b = {0};
    FILE *out = open_memstream(&b.text, &b.count);
    ck_assert_ptr_nonnull(out);
    ck_assert(svg == NULL ? paint_dump_ansi(out) : paint_dump_svg(svg, out));
    fclose(out);
    return b;
}

app *screenshots_open_look(size_t i)
{
    app *a = screen_open(&looks[i]);
    theme_make(&a->looks.theme, screenshots_themes[i % SCREENSHOT_THEMES], terminal_colors(),
               looks[i].no_color);
    screen_advance(a, 90);
    free(screen_text(a)); // draws
    return a;
}

// ---- the page -------------------------------------------------------------------------------------------------

static const wchar_t box[] = L"─│┌┐└┘├┤┬┴┼━┃╭╮╰╯╴╶╵╷┄┈╌";
static const wchar_t words[] = L"<a & \"b'> ◂▸ 日本 é…—Δ×✓●→";

enum { PAGE_ROWS = 20, PAGE_COLUMNS = 64 };

static FILE *nowhere;

void screenshots_open_page(theme *t, const char *name)
{
    ck_assert_ptr_nonnull(setlocale(LC_ALL, "C.UTF-8"));
    nowhere = fopen("/dev/null", "r+");
    ck_assert(nowhere != NULL &&
              terminal_open_on("xterm-256color", nowhere, nowhere, PAGE_ROWS, PAGE_COLUMNS));
    ck_assert(theme_make(t, name, terminal_colors(), false));
    glyphs g = glyphs_make(GLYPHS_FULL);
    canvas c = {.theme = t, .glyphs = &g, .area = {0, 0, PAGE_ROWS, PAGE_COLUMNS}};
    paint_begin();
    for (int i = 0; i < 256; i++) {
        style s = {(int16_t)(16 + i % 200), (int16_t)(i % 3 == 0 ? 20 + i % 100 : COLOR_DEFAULT),
                   (uint8_t)(i % 5 == 0   ? STYLE_REVERSE
                             : i % 7 == 0 ? STYLE_DIM
                                          : 0)};
        paint_cell(&c, i / 64, i % 64, s, i == 0 ? L' ' : (wchar_t)(0x2800 + i));
    }
    for (int i = 0; i < 32; i++) {
        style s = {(int16_t)(i < 16 ? COLOR_DEFAULT : 80), (int16_t)(i % 2 == 0 ? COLOR_DEFAULT : 30), 0};
        paint_cell(&c, 5, 2 * i, s, (wchar_t)(0x2580 + i));
        paint_cell(&c, 5, 2 * i + 1, s, (wchar_t)(0x2580 + i)); // runs become one
    }
    for (int i = 0; box[i] != L'\0'; i++) {
        paint_cell(&c, 7, i, theme_role(t, ROLE_RULE), box[i]);
    }
    for (int i = 0, x = 0; words[i] != L'\0'; x += glyphs_columns(words[i++])) {
        paint_cell(&c, 9, x, theme_role(t, i % 2 == 0 ? ROLE_BAD : ROLE_TEXT), words[i]);
    }
    paint_text(&c, 11, 3, 60, ROLE_KEY, "one run of words, and  another");
    paint_text(&c, 12, 3, 60, ROLE_SELECT, "a selected row");
    paint_end();
}

void screenshots_close_page(void)
{
    terminal_close_on();
    fclose(nowhere);
}
