// SPDX-License-Identifier: Apache-2.0
// The screen as a file, judged by others: ANSI by libvterm, SVG by an XML reader and a raster of its shapes. And text on
// its way to the clipboard.
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/tui/paint.h"
#include "app/tui/terminal.h"
#include "tests/tui/screen.h"
#include "tests/tui/suite.h"
#include "tests/tui/vterm.h"

enum { CELL_W = 16, CELL_H = 32 };

static const screen_look looks[] = {
    {.rows = 24, .columns = 80},
    {.rows = 50, .columns = 160},
    {.rows = 24, .columns = 80, .glyphs = GLYPHS_BRAILLE},
    {.rows = 24, .columns = 80, .glyphs = GLYPHS_ASCII},
    {.rows = 24, .columns = 80, .no_color = true},
    {.type = "linux", .rows = 30, .columns = 100},
    {.rows = 4, .columns = 20},
};
enum { LOOK_COUNT = sizeof looks / sizeof *looks };

static const char *const themes[] = {"dark", "light", "safe", "safe-light", "mono"};
enum { THEMES = sizeof themes / sizeof *themes };

typedef struct bytes {
    char *text;
    size_t count;
} bytes;

static bytes dump(const theme *svg)
{
    bytes b = {0};
    FILE *out = open_memstream(&b.text, &b.count);
    ck_assert_ptr_nonnull(out);
    ck_assert(svg == NULL ? paint_dump_ansi(out) : paint_dump_svg(svg, out));
    fclose(out);
    return b;
}

static app *open_look(size_t i)
{
    app *a = screen_open(&looks[i]);
    theme_make(&a->theme, themes[i % THEMES], terminal_colors(), looks[i].no_color);
    screen_advance(a, 90);
    free(screen_text(a)); // draws
    return a;
}

// ---- ANSI -----------------------------------------------------------------------------------------------------

// As the terminal driver does between a program and its terminal.
static bytes with_returns(bytes from)
{
    bytes b = {.text = malloc(2 * from.count + 1)};
    for (size_t i = 0; i < from.count; i++) {
        if (from.text[i] == '\n') {
            b.text[b.count++] = '\r';
        }
        b.text[b.count++] = from.text[i];
    }
    free(from.text);
    return b;
}

static void same_cell(const drawn *d, const vt_cell *c, int y, int x)
{
    unsigned attributes = (c->bold ? STYLE_BOLD : 0u) | (c->underline ? STYLE_UNDERLINE : 0u) |
                          (c->reverse ? STYLE_REVERSE : 0u);
    bool blank = d->glyph == L' ';
    ck_assert_msg((wchar_t)c->character == d->glyph || (blank && c->character == 0), "%d:%d %x %x", y, x,
                  (unsigned)c->character, (unsigned)d->glyph);
    ck_assert_msg(c->background == d->style.background, "%d:%d background", y, x);
    if (!blank) {
        ck_assert_msg(c->foreground == d->style.foreground, "%d:%d foreground %d %d", y, x, c->foreground,
                      d->style.foreground);
        ck_assert_uint_eq(attributes, d->style.attributes & ~(unsigned)STYLE_DIM); // libvterm has no dim
    } else if (d->style.attributes & STYLE_REVERSE) {
        ck_assert(c->reverse);
    }
}

START_TEST(a_terminal_shows_the_saved_ansi_as_it_was)
{
    for (size_t i = 0; i < LOOK_COUNT; i++) {
        app *a = open_look(i);
        bytes b = with_returns(dump(NULL));
        vt_cell *cells = vt_cells_of(b.text, b.count, a->rows + 1, a->columns);
        for (int y = 0; y < a->rows; y++) {
            for (int x = 0; x < a->columns;) {
                drawn d = paint_read(y, x);
                same_cell(&d, &cells[y * a->columns + x], y, x);
                x += d.columns;
            }
        }
        free(cells);
        free(b.text);
        screen_close(a);
    }
}
END_TEST

// ---- a page with every character that is drawn ------------------------------------------------------------------

static const wchar_t box[] = L"─│┌┐└┘├┤┬┴┼━┃╭╮╰╯╴╶╵╷┄┈╌";
static const wchar_t words[] = L"<a & \"b'> ◂▸ 日本 é…—Δ×✓●→";

enum { PAGE_ROWS = 20, PAGE_COLUMNS = 64 };

static FILE *nowhere;

static void open_page(theme *t, const char *name)
{
    ck_assert_ptr_nonnull(setlocale(LC_ALL, "C.UTF-8"));
    nowhere = fopen("/dev/null", "r+");
    ck_assert(nowhere != NULL &&
              terminal_open_on("xterm-256color", nowhere, nowhere, PAGE_ROWS, PAGE_COLUMNS));
    ck_assert(theme_make(t, name, terminal_colors(), false));
    glyphs g = glyphs_make(GLYPHS_FULL);
    canvas c = {t, &g, {0, 0, PAGE_ROWS, PAGE_COLUMNS}};
    paint_begin();
    for (int i = 0; i < 256; i++) {
        style s = {(int16_t)(16 + i % 200), i % 3 == 0 ? (int16_t)(20 + i % 100) : COLOR_DEFAULT,
                   (uint8_t)(i % 5 == 0   ? STYLE_REVERSE
                             : i % 7 == 0 ? STYLE_DIM
                                          : 0)};
        paint_cell(&c, i / 64, i % 64, s, i == 0 ? L' ' : (wchar_t)(0x2800 + i));
    }
    for (int i = 0; i < 32; i++) {
        style s = {(int16_t)(i < 16 ? COLOR_DEFAULT : 80), i % 2 == 0 ? COLOR_DEFAULT : 30, 0};
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

static void close_page(void)
{
    terminal_close_on();
    fclose(nowhere);
}

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
    for (size_t i = 0; i < THEMES; i++) {
        theme t;
        open_page(&t, themes[i]);
        bytes svg = dump(&t), again = dump(&t);
        is_well_formed(svg.text);
        check_svg(&t, svg.text);
        ck_assert_str_eq(svg.text, again.text);
        free(svg.text);
        free(again.text);
        close_page();
    }
    for (size_t i = 0; i < LOOK_COUNT; i++) {
        app *a = open_look(i);
        bytes svg = dump(&a->theme);
        is_well_formed(svg.text);
        check_svg(&a->theme, svg.text);
        free(svg.text);
        screen_close(a);
    }
}
END_TEST

// ---- files ----------------------------------------------------------------------------------------------------

static char folder[64];

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static char *read_all(const char *name)
{
    FILE *in = fopen(path_of(name), "r");
    char *text = calloc(1, 1 << 20);
    ck_assert_ptr_nonnull(in);
    size_t got = fread(text, 1, (1 << 20) - 1, in);
    ck_assert(got < (1 << 20) - 1);
    fclose(in);
    return text;
}

static void write_all(const char *name, const char *text)
{
    FILE *out = fopen(path_of(name), "w");
    ck_assert(out != NULL && fputs(text, out) >= 0 && fclose(out) == 0);
}

static void refused(const theme *t, const char *name, hr_status status, const char *said)
{
    hr_err err = {0};
    ck_assert_int_eq(paint_save(t, path_of(name), &err), status);
    ck_assert_msg(strstr(err.sentence, said) != NULL, "%s", err.sentence);
}

static int count_files(void)
{
    char command[128];
    int count = -1;
    snprintf(command, sizeof command, "ls -A %s | wc -l", folder);
    FILE *in = popen(command, "r");
    ck_assert(in != NULL && fscanf(in, "%d", &count) == 1);
    pclose(in);
    return count;
}

static void open_folder(void)
{
    strcpy(folder, "/tmp/headroom-saved-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(saving_replaces_its_own_kind_and_nothing_else)
{
    theme t;
    hr_err err;
    open_folder();
    open_page(&t, "dark");
    static const char *const names[] = {"a.svg", "a.ans", "a.txt"};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(paint_save(&t, path_of(names[i]), &err), HR_OK);
    }
    ck_assert_int_eq(paint_save(&t, path_of("a.svg"), &err), HR_OK);
    ck_assert_int_eq(paint_save(&t, path_of("a.ans"), &err), HR_OK);
    refused(&t, "a.txt", HR_WRITE, "is there already"); // a text cannot say what it is
    write_all("mine.svg", "<svg>my drawing</svg>");
    write_all("mine.ans", "\033[31mmine\033[0m");
    write_all("empty.svg", "");
    refused(&t, "mine.svg", HR_WRITE, "is not a screen saved as .svg");
    refused(&t, "mine.ans", HR_WRITE, "is not a screen saved as .ans");
    refused(&t, "empty.svg", HR_WRITE, "is there already");
    char *mine = read_all("mine.svg");
    ck_assert_str_eq(mine, "<svg>my drawing</svg>");
    free(mine);
    ck_assert_int_eq(mkdir(path_of("folder.svg"), 0700), 0);
    refused(&t, "folder.svg", HR_WRITE, "is there already");
    char target[128];
    strcpy(target, path_of("a.svg"));
    ck_assert_int_eq(symlink(target, path_of("link.svg")), 0);
    refused(&t, "link.svg", HR_WRITE, "is there already");
    refused(&t, "none/a.svg", HR_WRITE, "No such file");
    refused(&t, "a.png", HR_USAGE, "ends in none of .txt, .ans and .svg");
    refused(&t, ".svg", HR_USAGE, "ends in none of");
    refused(&t, "", HR_USAGE, "ends in none of");
    ck_assert_int_eq(count_files(), 8); // and no temporary ones
    close_page();
    remove_folder();
}
END_TEST

// Another reader than our own, where there is one.
START_TEST(python_reads_the_svg)
{
    theme t;
    hr_err err;
    char command[512];
    if (system("command -v python3 >/dev/null") != 0) {
        return;
    }
    open_folder();
    open_page(&t, "light");
    ck_assert_int_eq(paint_save(&t, path_of("a.svg"), &err), HR_OK);
    snprintf(command, sizeof command,
             "python3 -c 'import sys, xml.etree.ElementTree as e; r = e.parse(sys.argv[1]).getroot(); "
             "assert r.tag.endswith(\"svg\") and len(list(r.iter())) > 50' %s",
             path_of("a.svg"));
    ck_assert_int_eq(system(command), 0);
    close_page();
    remove_folder();
}
END_TEST

// ---- clipboard ------------------------------------------------------------------------------------------------

// What terminal_copy writes on a terminal of that type.
static hr_status copied(const char *type, const char *text, bytes *wrote, hr_err *err)
{
    FILE *out = tmpfile();
    ck_assert(out != NULL && terminal_open_on(type, out, out, 24, 80));
    fflush(out);
    off_t from = lseek(fileno(out), 0, SEEK_END);
    hr_status status = terminal_copy(text, err);
    off_t to = lseek(fileno(out), 0, SEEK_END);
    wrote->count = (size_t)(to - from);
    wrote->text = calloc(1, wrote->count + 1);
    ck_assert_int_eq(pread(fileno(out), wrote->text, wrote->count, from), (ssize_t)wrote->count);
    terminal_close_on();
    fclose(out);
    return status;
}

// RFC 4648 §4, read back digit by digit.
static char *decoded(const char *base64, size_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = calloc(1, count + 1);
    size_t used = 0;
    unsigned held = 0, bits = 0;
    ck_assert_uint_eq(count % 4, 0);
    for (size_t i = 0; i < count && base64[i] != '='; i++) {
        const char *digit = strchr(digits, base64[i]);
        ck_assert_ptr_nonnull(digit);
        held = (held << 6 | (unsigned)(digit - digits)) & 0xffff;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            text[used++] = (char)(held >> bits & 0xff);
        }
    }
    return text;
}

static void holds(const char *sequence, size_t count, const char *begin, const char *end, const char *text)
{
    size_t head = strlen(begin), tail = strlen(end);
    ck_assert_uint_gt(count, head + tail);
    ck_assert_mem_eq(sequence, begin, head);
    ck_assert_mem_eq(sequence + count - tail, end, tail);
    char *back = decoded(sequence + head, count - head - tail);
    ck_assert_str_eq(back, text);
    free(back);
}

START_TEST(what_is_copied_comes_back_from_the_clipboard)
{
    static const char *const texts[] = {"a", "ab", "abc", "512 MiB — für „dense/weights“\n2", "\x01\x7f~"};
    unsetenv("TMUX");
    unsetenv("STY");
    for (size_t i = 0; i < 5; i++) {
        bytes b;
        ck_assert_int_eq(copied("xterm-256color", texts[i], &b, NULL), HR_OK);
        holds(b.text, b.count, "\033]52;c;", "\a", texts[i]);
        free(b.text);
        setenv("TMUX", "/tmp/tmux,1,0", 1);
        ck_assert_int_eq(copied("tmux-256color", texts[i], &b, NULL), HR_OK);
        const char *wrapped = strstr(b.text, "\033Ptmux;");
        ck_assert_ptr_nonnull(wrapped);
        holds(b.text, (size_t)(wrapped - b.text), "\033]52;c;", "\a", texts[i]);
        holds(wrapped, b.count - (size_t)(wrapped - b.text), "\033Ptmux;\033\033]52;c;", "\a\033\\",
              texts[i]);
        free(b.text);
        unsetenv("TMUX");
    }
}
END_TEST

START_TEST(screen_gets_pieces_that_it_hands_on)
{
    char text[3001] = "";
    bytes b;
    for (int i = 0; i < 3000; i++) {
        text[i] = (char)('a' + i % 26);
    }
    unsetenv("TMUX");
    setenv("STY", "1.pts", 1);
    ck_assert_int_eq(copied("screen", text, &b, NULL), HR_OK);
    char *joined = calloc(1, b.count + 1);
    size_t used = 0;
    for (const char *at = b.text; *at != '\0';) { // as screen takes it apart
        const char *end = strstr(at, "\033\\");
        ck_assert(strncmp(at, "\033P", 2) == 0 && end != NULL && end - at <= 768);
        memcpy(joined + used, at + 2, (size_t)(end - at - 2));
        used += (size_t)(end - at - 2);
        at = end + 2;
    }
    holds(joined, used, "\033]52;c;", "\a", text);
    free(joined);
    free(b.text);
    unsetenv("STY");
}
END_TEST

START_TEST(what_cannot_be_copied_says_why)
{
    static char long_text[TERMINAL_COPY_MAX + 2];
    static const char *const consoles[] = {"linux", "vt100", "ansi"};
    hr_err err;
    bytes b;
    memset(long_text, 'x', TERMINAL_COPY_MAX + 1);
    ck_assert_int_eq(copied("xterm", long_text, &b, &err), HR_TERMINAL);
    ck_assert_msg(strstr(err.sentence, "takes 74994 bytes, had 74995") != NULL, "%s", err.sentence);
    ck_assert_uint_eq(b.count, 0);
    free(b.text);
    long_text[TERMINAL_COPY_MAX] = '\0';
    ck_assert_int_eq(copied("xterm", long_text, &b, &err), HR_OK);
    ck_assert_uint_eq(b.count, 100000);
    free(b.text);
    ck_assert_int_eq(copied("xterm", "", &b, &err), HR_TERMINAL);
    free(b.text);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(copied(consoles[i], "text", &b, &err), HR_TERMINAL);
        ck_assert_msg(strstr(err.sentence, "has no clipboard") != NULL, "%s", err.sentence);
        ck_assert_uint_eq(b.count, 0);
        free(b.text);
    }
}
END_TEST

SUITE_MAIN("tui saved", a_terminal_shows_the_saved_ansi_as_it_was, svg_draws_every_character_where_it_stood,
           saving_replaces_its_own_kind_and_nothing_else, python_reads_the_svg,
           what_is_copied_comes_back_from_the_clipboard, screen_gets_pieces_that_it_hands_on,
           what_cannot_be_copied_says_why)
