// SPDX-License-Identifier: Apache-2.0
// The screen as SVG, judged by readers of XML and by a raster of its shapes against what Unicode says of them.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tui/screenshots.h"
#include "tests/tui/suite.h"

enum { CELL_W = 16, CELL_H = 32 };

// ---- SVG: what it draws ---------------------------------------------------------------------------------------

typedef struct raster {
    int rows, columns;
    int *pixels; // 0xrrggbb
    wchar_t *text;
    int *text_color;
} raster;

static int hex_of(const char *at)
{
    return (int)strtol(at, NULL, 16);
}

static void fill(raster *r, int x, int y, int w, int h, int color)
{
    int width = r->columns * CELL_W, height = r->rows * CELL_H;
    ck_assert(x >= 0 && y >= 0 && w > 0 && h > 0 && x + w <= width && y + h <= height);
    for (int i = y; i < y + h; i++) {
        for (int j = x; j < x + w; j++) {
            r->pixels[i * width + j] = color;
        }
    }
}

static void fill_path(raster *r, const char *line)
{
    int x, y, w, h, back, length, color = hex_of(strchr(line, '#') + 1);
    const char *at = strstr(line, "d=\"") + 3;
    while (sscanf(at, "M%d %dh%dv%dh%dz%n", &x, &y, &w, &h, &back, &length) == 5) {
        ck_assert_int_eq(back, -w);
        fill(r, x, y, w, h, color);
        at += length;
    }
    ck_assert_str_eq(at, "\"/>");
}

static wchar_t next_of_text(const char **at)
{
    static const struct {
        const char *entity;
        wchar_t is;
    } entities[] = {{"&amp;", L'&'}, {"&lt;", L'<'}, {"&gt;", L'>'}};
    for (size_t i = 0; i < 3; i++) {
        size_t length = strlen(entities[i].entity);
        if (strncmp(*at, entities[i].entity, length) == 0) {
            *at += length;
            return entities[i].is;
        }
    }
    return utf8_next(at);
}

static void put_text(raster *r, const char *line)
{
    int x, y, length, color;
    ck_assert_int_eq(sscanf(line, "<text x=\"%d\" y=\"%d\" textLength=\"%d\" fill=\"#%6x\"", &x, &y, &length,
                            (unsigned *)&color),
                     4);
    const char *at = strchr(line, '>') + 1;
    int cell = y / CELL_H * r->columns + x / CELL_W, end = cell + length / CELL_W;
    ck_assert(x % CELL_W == 0 && length % CELL_W == 0);
    while (*at != '<') {
        wchar_t c = next_of_text(&at);
        r->text[cell] = c;
        r->text_color[cell] = color;
        cell += glyphs_columns(c);
    }
    ck_assert_int_eq(cell, end); // a run has the length of its cells
}

// Reads our own SVG, line by line.
static raster draw_svg(const char *svg, int rows, int columns)
{
    raster r = {rows, columns, NULL, NULL, NULL};
    r.pixels = calloc((size_t)(rows * columns * CELL_W * CELL_H), sizeof *r.pixels);
    r.text = calloc((size_t)(rows * columns), sizeof *r.text);
    r.text_color = calloc((size_t)(rows * columns), sizeof *r.text_color);
    for (char *copy = strdup(svg), *rest = copy, *line;
         (line = strsep(&rest, "\n")) != NULL || (free(copy), 0);) {
        if (strncmp(line, "<rect", 5) == 0) {
            fill(&r, 0, 0, columns * CELL_W, rows * CELL_H, hex_of(strchr(line, '#') + 1));
        } else if (strncmp(line, "<path", 5) == 0) {
            fill_path(&r, line);
        } else if (strncmp(line, "<text", 5) == 0) {
            put_text(&r, line);
        }
    }
    return r;
}

static void free_raster(raster *r)
{
    free(r->pixels);
    free(r->text);
    free(r->text_color);
}

static int pixel(const raster *r, int y, int x, int dy, int dx)
{
    return r->pixels[(y * CELL_H + dy) * r->columns * CELL_W + x * CELL_W + dx];
}

// ---- SVG: what it should draw -----------------------------------------------------------------------------------

static int rgb_of(int index, const int otherwise[3])
{
    int rgb[3] = {otherwise[0], otherwise[1], otherwise[2]};
    if (index != COLOR_DEFAULT) {
        theme_rgb(index, rgb);
    }
    return rgb[0] << 16 | rgb[1] << 8 | rgb[2];
}

static void colors_of(const theme *t, const drawn *d, int *ink, int *paper)
{
    int ink_rgb[3], paper_rgb[3];
    theme_ground(t, ink_rgb, paper_rgb);
    *ink = rgb_of(d->style.foreground, ink_rgb);
    *paper = rgb_of(d->style.background, paper_rgb);
    if (d->style.attributes & STYLE_REVERSE) {
        int other = *ink;
        *ink = *paper;
        *paper = other;
    }
}

// Unicode: dots 1, 2, 3, 7 down the left column, 4, 5, 6, 8 down the right one; bit n − 1 is dot n.
static bool has_dot(wchar_t braille, int row, int column)
{
    static const int dot[4][2] = {{1, 4}, {2, 5}, {3, 6}, {7, 8}};
    return (braille >> (dot[row][column] - 1) & 1) != 0;
}

static void check_braille(const raster *r, int y, int x, wchar_t glyph, int paper)
{
    for (int i = 0; i < 8; i++) {
        int color = pixel(r, y, x, i / 2 * 8 + 4, i % 2 * 8 + 4);
        ck_assert_msg((color != paper) == has_dot(glyph, i / 2, i % 2), "U+%x dot %d", (unsigned)glyph, i);
        ck_assert_int_eq(pixel(r, y, x, i / 2 * 8, i % 2 * 8), paper); // dots do not touch
    }
}

// Whether the middle of one of 8 × 8 parts of the cell is inked, after Unicode's names.
static bool block_has(int number, int row, int column)
{
    static const char *const quadrants[] = {"0010", "0001", "1000", "1011", "1001",
                                            "1110", "1101", "0100", "0110", "0111"};
    if (number == 0 || number == 0x14) {
        return row < (number == 0 ? 4 : 1); // upper half, upper eighth
    }
    if (number <= 8) {
        return row >= 8 - number; // lower eighths
    }
    if (number < 0x10) {
        return column < 0x10 - number; // left eighths
    }
    if (number == 0x10 || number == 0x15) {
        return column >= (number == 0x10 ? 4 : 7); // right half, right eighth
    }
    return number < 0x14 || quadrants[number - 0x16][row / 4 * 2 + column / 4] == '1';
}

static void check_block(const raster *r, int y, int x, wchar_t glyph, int paper)
{
    for (int i = 0; i < 64; i++) {
        int color = pixel(r, y, x, i / 8 * 4 + 2, i % 8 * 2 + 1);
        ck_assert_msg((color != paper) == block_has((int)glyph - 0x2580, i / 8, i % 8), "U+%x part %d",
                      (unsigned)glyph, i);
    }
}

// Where lines meet the cell's sides: left, right, above, below.
static void check_line(const raster *r, int y, int x, wchar_t glyph, int paper)
{
    static const struct {
        wchar_t glyph;
        const char *sides;
    } joins[] = {
        {L'─', "1100"}, {L'│', "0011"}, {L'┌', "0101"}, {L'┐', "1001"}, {L'└', "0110"}, {L'┘', "1010"},
        {L'├', "0111"}, {L'┤', "1011"}, {L'┬', "1101"}, {L'┴', "1110"}, {L'┼', "1111"}, {L'━', "1100"},
        {L'┃', "0011"}, {L'╭', "0101"}, {L'╮', "1001"}, {L'╰', "0110"}, {L'╯', "1010"}, {L'╴', "1000"},
        {L'╶', "0100"}, {L'╵', "0010"}, {L'╷', "0001"},
    };
    static const int at[4][2] = {
        {CELL_H / 2, 0}, {CELL_H / 2, CELL_W - 1}, {0, CELL_W / 2}, {CELL_H - 1, CELL_W / 2}};
    for (size_t i = 0; i < sizeof joins / sizeof *joins; i++) {
        for (int side = 0; side < 4 && joins[i].glyph == glyph; side++) {
            bool inked = pixel(r, y, x, at[side][0], at[side][1]) != paper;
            ck_assert_msg(inked == (joins[i].sides[side] == '1'), "U+%x side %d", (unsigned)glyph, side);
        }
    }
}

// Dashes: so many runs of ink along the middle.
static void check_dashes(const raster *r, int y, int x, wchar_t glyph, int paper)
{
    int wanted = glyph == L'┄' ? 3 : glyph == L'┈' ? 4 : glyph == L'╌' ? 2 : 0, runs = 0;
    for (int i = 1; i < CELL_W; i++) {
        bool now = pixel(r, y, x, CELL_H / 2, i) != paper,
             before = pixel(r, y, x, CELL_H / 2, i - 1) != paper;
        runs += now && !before;
    }
    ck_assert(wanted == 0 || runs == wanted ||
              (runs == wanted - 1 && pixel(r, y, x, CELL_H / 2, 0) != paper));
}

static void check_cell(const theme *t, const raster *r, int y, int x, const drawn *d)
{
    int ink, paper;
    wchar_t text = r->text[y * r->columns + x];
    colors_of(t, d, &ink, &paper);
    bool is_line = d->glyph >= 0x2500 && d->glyph < 0x2580,
         is_block = d->glyph >= 0x2580 && d->glyph < 0x25a0;
    bool is_dots = d->glyph >= 0x2800 && d->glyph < 0x2900;
    if (ink == paper) {
        return; // 8 colours may have the same one for both
    }
    if (is_dots) {
        check_braille(r, y, x, d->glyph, paper);
    } else if (is_block) {
        check_block(r, y, x, d->glyph, paper);
    } else if (is_line) {
        check_line(r, y, x, d->glyph, paper);
        check_dashes(r, y, x, d->glyph, paper);
    } else {
        bool empty = true;
        for (int i = 0; i < CELL_W * CELL_H; i++) {
            empty = empty && pixel(r, y, x, i / CELL_W, i % CELL_W) == paper;
        }
        ck_assert(empty);
        ck_assert_msg(text == d->glyph || (d->glyph == L' ' && (text == 0 || text == L' ')), "%d:%d text %x",
                      y, x, (unsigned)text);
        ck_assert(d->glyph == L' ' || d->style.attributes & STYLE_DIM ||
                  r->text_color[y * r->columns + x] == ink);
        return;
    }
    ck_assert_int_eq(text, 0);
}

static void check_svg(const theme *t, const char *svg)
{
    int rows, columns;
    paint_size(&rows, &columns);
    raster r = draw_svg(svg, rows, columns);
    for (int y = 0; y < rows; y++) {
        for (int x = 0; x < columns;) {
            drawn d = paint_read(y, x);
            check_cell(t, &r, y, x, &d);
            x += d.columns;
        }
    }
    free_raster(&r);
}

// A small reader of XML: tags close in order, attributes are quoted, nothing is unescaped.
static void is_well_formed(const char *at)
{
    char open[8][16];
    int depth = 0;
    for (; *at != '\0'; at++) {
        if (*at == '&') {
            ck_assert(strncmp(at, "&amp;", 5) == 0 || strncmp(at, "&lt;", 4) == 0 ||
                      strncmp(at, "&gt;", 4) == 0);
        }
        ck_assert(*at != '>' && (*at == '\n' || (unsigned char)*at >= ' '));
        if (*at != '<') {
            continue;
        }
        if (strncmp(at, "<!--", 4) == 0) {
            at = strstr(at, "-->") + 2;
            continue;
        }
        bool closes = at[1] == '/';
        char name[16] = "";
        ck_assert_int_eq(sscanf(at + 1 + closes, "%15[a-z]", name), 1);
        for (bool quoted = false; *at != '>' || quoted; at++) {
            ck_assert(*at != '\0' && (!quoted || *at != '<'));
            quoted = *at == '"' ? !quoted : quoted;
        }
        if (closes) {
            ck_assert(depth > 0 && strcmp(open[--depth], name) == 0);
        } else if (at[-1] != '/') {
            ck_assert_int_lt(depth, 8);
            strcpy(open[depth++], name);
        }
    }
    ck_assert_int_eq(depth, 0);
}

START_TEST(svg_draws_every_character_where_it_stood)
{
    for (size_t i = 0; i < SCREENSHOT_THEMES; i++) {
        theme t;
        screenshots_open_page(&t, screenshots_themes[i]);
        screenshots svg = screenshots_dump(&t), again = screenshots_dump(&t);
        is_well_formed(svg.text);
        check_svg(&t, svg.text);
        ck_assert_str_eq(svg.text, again.text);
        free(svg.text);
        free(again.text);
        screenshots_close_page();
    }
    for (size_t i = 0; i < SCREENSHOT_LOOKS; i++) {
        app *a = screenshots_open_look(i);
        screenshots svg = screenshots_dump(&a->looks.theme);
        is_well_formed(svg.text);
        check_svg(&a->looks.theme, svg.text);
        free(svg.text);
        screen_close(a);
    }
}
END_TEST

// Another reader than our own, where there is one.
START_TEST(python_reads_the_svg)
{
    theme t;
    if (system("command -v python3 >/dev/null") != 0) {
        return;
    }
    screenshots_open_page(&t, "light");
    screenshots svg = screenshots_dump(&t);
    FILE *python =
        popen("python3 -c 'import sys, xml.etree.ElementTree as e; r = e.parse(sys.stdin).getroot(); "
              "assert r.tag.endswith(\"svg\") and len(list(r.iter())) > 50'",
              "w");
    ck_assert_ptr_nonnull(python);
    ck_assert_uint_eq(fwrite(svg.text, 1, svg.count, python), svg.count);
    ck_assert_int_eq(pclose(python), 0);
    free(svg.text);
    screenshots_close_page();
}
END_TEST

SUITE_MAIN("tui svg", svg_draws_every_character_where_it_stood, python_reads_the_svg)
