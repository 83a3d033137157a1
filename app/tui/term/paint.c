// SPDX-License-Identifier: Apache-2.0
#include "app/tui/term/paint.h"

#include <ncurses.h>
#include <stdarg.h>
#include <string.h>
#include <wchar.h>

#include "app/tui/term/terminal.h"

// ---- colour pairs, made when first needed ---------------------------------------------------------------------

enum { PAIR_CACHE = 512 };

// Pairs belong to the terminal, and there is one.
static struct {
    int16_t foreground, background;
} pairs[PAIR_CACHE];
static int pair_count, pair_last;
static unsigned pairs_terminal; // whose they are

// Themes that were looked at leave their pairs behind. A frame draws every cell anew, so that between two frames all can
// be forgotten.
static void forget_pairs(void)
{
    int room = COLOR_PAIRS - 1 < PAIR_CACHE ? COLOR_PAIRS - 1 : PAIR_CACHE;
    if (pairs_terminal != terminal_serial() || pair_count > room / 2) {
        pair_count = pair_last = 0;
        pairs_terminal = terminal_serial();
    }
}

static int pair_find(style s)
{
    for (int i = 0; i < pair_count; i++) {
        if (pairs[i].foreground == s.foreground && pairs[i].background == s.background) {
            return i + 1;
        }
    }
    if (pair_count == PAIR_CACHE || pair_count + 1 >= COLOR_PAIRS ||
        init_extended_pair(pair_count + 1, s.foreground, s.background) == ERR) {
        return 0;
    }
    pairs[pair_count].foreground = s.foreground;
    pairs[pair_count].background = s.background;
    return ++pair_count;
}

static int pair_of(style s)
{
    if (s.foreground == COLOR_DEFAULT && s.background == COLOR_DEFAULT) {
        return 0;
    }
    if (pair_last == 0 || pairs[pair_last - 1].foreground != s.foreground ||
        pairs[pair_last - 1].background != s.background) {
        pair_last = pair_find(s);
    }
    return pair_last;
}

static attr_t attributes_of(style s)
{
    return (s.attributes & STYLE_BOLD ? WA_BOLD : WA_NORMAL) |
           (s.attributes & STYLE_DIM ? WA_DIM : WA_NORMAL) |
           (s.attributes & STYLE_REVERSE ? WA_REVERSE : WA_NORMAL) |
           (s.attributes & STYLE_UNDERLINE ? WA_UNDERLINE : WA_NORMAL);
}

// ---- canvas ---------------------------------------------------------------------------------------------------

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

canvas canvas_sub(const canvas *c, int y, int x, int h, int w)
{
    canvas sub = *c;
    int top = smaller(larger(y, 0), c->area.h), left = smaller(larger(x, 0), c->area.w);
    sub.area.y += top;
    sub.area.x += left;
    sub.area.h = larger(0, smaller(y + h, c->area.h) - top);
    sub.area.w = larger(0, smaller(x + w, c->area.w) - left);
    return sub;
}

canvas canvas_of(const canvas *screen, rect area)
{
    return canvas_sub(screen, area.y, area.x, area.h, area.w);
}

void paint_begin(void)
{
    forget_pairs();
    werase(stdscr);
}

void paint_end(void)
{
    wnoutrefresh(stdscr);
    bool changes = is_wintouched(newscr); // nothing is written when nothing changed
    if (changes) {
        terminal_hold_output(true);
    }
    doupdate();
    if (changes) {
        terminal_hold_output(false);
    }
}

void paint_size(int *rows, int *columns)
{
    getmaxyx(stdscr, *rows, *columns);
}

// ---- what was cut ---------------------------------------------------------------------------------------------

static struct {
    paint_cut_seen seen;
    void *context;
} watcher;

void paint_watch_cuts(paint_cut_seen seen, void *context)
{
    watcher.seen = seen;
    watcher.context = context;
}

static void tell_cut(const canvas *c, int y, int x, const char *text)
{
    if (watcher.seen != NULL && !c->said_later) {
        watcher.seen(watcher.context, c->area.y + y, c->area.x + x, text);
    }
}

// ---- text -----------------------------------------------------------------------------------------------------

void paint_cell(const canvas *c, int y, int x, style s, wchar_t glyph)
{
    if (y < 0 || x < 0 || y >= c->area.h || x + glyphs_columns(glyph) > c->area.w) {
        return;
    }
    wchar_t text[2] = {glyph, L'\0'};
    int pair = pair_of(s);
    cchar_t cell;
    if (setcchar(&cell, text, attributes_of(s), (short)pair, &pair) == OK) {
        mvwadd_wch(stdscr, c->area.y + y, c->area.x + x, &cell);
    }
}

void paint_blank(const canvas *c, int y, int x, int width, style s)
{
    for (int i = 0; i < width; i++) {
        paint_cell(c, y, x + i, s, L' ');
    }
}

static int paint_styled(const canvas *c, int y, int x, int width, style s, const char *text)
{
    int room = smaller(width, c->area.w - x), used = 0;
    bool cut = glyphs_width(c->glyphs, text) > room;
    if (cut && y < c->area.h) {
        tell_cut(c, y, x, text);
    }
    while (*text != '\0' && used < room) {
        wchar_t glyph = glyphs_fold(c->glyphs, utf8_next(&text));
        int columns = glyphs_columns(glyph);
        if (cut && used + columns > room - 1) {
            paint_cell(c, y, x + used, s, glyphs_fold(c->glyphs, L'…'));
            return used + 1;
        }
        paint_cell(c, y, x + used, s, wcwidth(glyph) > 0 || glyph == L' ' ? glyph : L'?');
        used += columns;
    }
    return used;
}

int paint_text(const canvas *c, int y, int x, int width, role r, const char *text)
{
    return paint_styled(c, y, x, width, theme_role(c->theme, r), text);
}

int paint_format(const canvas *c, int y, int x, int width, role r, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return paint_text(c, y, x, width, r, text);
}

// Skips characters until what is left takes at most `width` columns.
static const char *tail_of(const glyphs *g, const char *text, int width)
{
    while (glyphs_width(g, text) > width) {
        utf8_next(&text);
    }
    return text;
}

int paint_middle(const canvas *c, int y, int x, int width, role r, const char *text)
{
    int room = smaller(width, c->area.w - x);
    if (glyphs_width(c->glyphs, text) <= room) {
        return paint_text(c, y, x, width, r, text);
    }
    const char *tail = tail_of(c->glyphs, text, larger(0, room / 2));
    int columns = glyphs_width(c->glyphs, tail);
    int used = paint_text(c, y, x, room - columns, r, text); // ends with the mark
    return used + paint_text(c, y, x + used, columns, r, tail);
}

int paint_tail(const canvas *c, int y, int x, int width, role r, const char *text)
{
    int room = smaller(width, c->area.w - x);
    if (glyphs_width(c->glyphs, text) <= room || room < 1) {
        return paint_text(c, y, x, width, r, text);
    }
    tell_cut(c, y, x, text);
    paint_cell(c, y, x, theme_role(c->theme, r), glyphs_fold(c->glyphs, L'…'));
    return 1 + paint_text(c, y, x + 1, room - 1, r, tail_of(c->glyphs, text, room - 1));
}

// Bytes of as many whole parts as fit; 0 where the first one alone is too long.
static size_t parts_that_fit(const glyphs *g, const char *text, int width)
{
    static const char between[] = " · ";
    char kept[1024];
    size_t length = (size_t)snprintf(kept, sizeof kept, "%s", text);
    length = length < sizeof kept ? length : sizeof kept - 1;
    while (length > 0 && glyphs_width(g, kept) > width) {
        const char *last = NULL;
        for (const char *at = strstr(kept, between); at != NULL; at = strstr(at + 1, between)) {
            last = at;
        }
        length = last == NULL ? 0 : (size_t)(last - kept);
        kept[length] = '\0';
    }
    return length;
}

int paint_parts(const canvas *c, int y, int x, int width, role r, const char *text)
{
    size_t length = parts_that_fit(c->glyphs, text, smaller(width, c->area.w - x));
    const char *between = strstr(text, " · ");
    length = length > 0 ? length : between == NULL ? strlen(text) : (size_t)(between - text);
    return paint_format(c, y, x, width, r, "%.*s", (int)length, text);
}

void paint_right(const canvas *c, int y, int x, int width, role r, const char *text)
{
    int columns = smaller(glyphs_width(c->glyphs, text), width);
    paint_text(c, y, x + width - columns, columns, r, text);
}

void paint_rule(const canvas *c, bool focused, const char *title, const char *right)
{
    role r = focused ? ROLE_FOCUS : ROLE_RULE;
    style s = theme_role(c->theme, r);
    for (int x = 0; x < c->area.w; x++) {
        paint_cell(c, 0, x, s, c->glyphs->rule);
    }
    size_t length = parts_that_fit(c->glyphs, title, c->area.w - 6);
    int used = 2 + paint_format(c, 0, 2, c->area.w - 4, r, focused ? "[%.*s]" : " %.*s ",
                                (int)(length > 0 ? length : strlen(title)), title);
    int room = c->area.w - used - 2;
    char text[512];
    snprintf(text, sizeof text, "%.*s", (int)parts_that_fit(c->glyphs, right, room - 2), right);
    int columns = glyphs_width(c->glyphs, text);
    if (columns > 0 && room > 4) {
        int width = smaller(columns + 2, room);
        paint_format(c, 0, c->area.w - width - 1, width, focused ? ROLE_FOCUS : ROLE_TEXT, " %s ", text);
    }
}

// ---- wrapping -------------------------------------------------------------------------------------------------

// Bytes of `text` that go into one row of `width` columns.
static size_t row_bytes(const glyphs *g, const char *text, int width)
{
    const char *at = text, *end = NULL;
    int used = 0;
    while (*at != '\0' && *at != '\n') {
        const char *next = at;
        used += glyphs_columns(glyphs_fold(g, utf8_next(&next)));
        if (used > width) {
            return (size_t)((end != NULL ? end : at > text ? at : next) - text);
        }
        end = *at == ' ' ? at : end;
        at = next;
    }
    return (size_t)(at - text);
}

bool wrap_next(const glyphs *g, const char *text, int width, size_t *at, size_t *start, size_t *length)
{
    *start = *at;
    *length = row_bytes(g, text + *start, width > 0 ? width : 1);
    *at = *start + *length;
    *at += text[*at] == ' ' || text[*at] == '\n' ? 1 : 0;
    return text[*start] != '\0';
}

bool wrap_row(const glyphs *g, const char *text, int width, int row, size_t *start, size_t *length)
{
    size_t at = 0;
    bool there = true;
    for (int i = 0; there && i <= row; i++) {
        there = wrap_next(g, text, width, &at, start, length);
    }
    return there;
}

int paint_wrapped(const canvas *c, int y, role r, const char *text)
{
    size_t at = 0, start, length;
    int rows = 0;
    while (y + rows < c->area.h && wrap_next(c->glyphs, text, c->area.w, &at, &start, &length)) {
        paint_format(c, y + rows, 0, c->area.w, r, "%.*s", (int)length, text + start);
        rows++;
    }
    if (text[at] != '\0') {
        tell_cut(c, y, 0, text);
    }
    return rows;
}

// ---- reading back ---------------------------------------------------------------------------------------------

static uint8_t style_attributes(attr_t a)
{
    return (uint8_t)((a & WA_BOLD ? STYLE_BOLD : 0) | (a & WA_DIM ? STYLE_DIM : 0) |
                     (a & WA_REVERSE ? STYLE_REVERSE : 0) | (a & WA_UNDERLINE ? STYLE_UNDERLINE : 0));
}

drawn paint_read(int y, int x)
{
    cchar_t cell;
    wchar_t text[CCHARW_MAX + 1] = L"";
    attr_t attributes = 0;
    short low_pair = 0;
    int pair = 0;
    mvwin_wch(stdscr, y, x, &cell);
    getcchar(&cell, text, &attributes, &low_pair, &pair);
    drawn d = {.glyph = text[0] == L'\0' ? L' ' : text[0], .columns = 1};
    d.columns = glyphs_columns(d.glyph);
    d.style = (style){COLOR_DEFAULT, COLOR_DEFAULT, style_attributes(attributes)};
    if (pair > 0 && pair <= pair_count) {
        d.style.foreground = pairs[pair - 1].foreground;
        d.style.background = pairs[pair - 1].background;
    }
    return d;
}
