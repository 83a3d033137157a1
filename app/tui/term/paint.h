// SPDX-License-Identifier: Apache-2.0
// Drawing on the screen: every call is relative to a canvas and clipped to it. Only paint.c and terminal*.c know
// curses.
#ifndef TUI_PAINT_H
#define TUI_PAINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "headroom/status.h"

#include "app/tui/term/glyphs.h"
#include "app/tui/term/rect.h"
#include "app/tui/term/theme.h"

typedef struct canvas {
    const theme *theme;
    const glyphs *glyphs;
    rect area;       // on the screen
    bool said_later; // a row of a list: what is cut of it is whole once it is selected
} canvas;

canvas canvas_sub(const canvas *c, int y, int x, int h, int w);
canvas canvas_of(const canvas *screen, rect area);

void paint_begin(void); // an empty screen
void paint_end(void);   // one doupdate

void paint_cell(const canvas *c, int y, int x, style s, wchar_t glyph);
// Fills a row from x on with blanks of that style.
void paint_blank(const canvas *c, int y, int x, int width, style s);
// Writes at most `width` columns, ending in "…" where the text was longer. Returns the columns written.
int paint_text(const canvas *c, int y, int x, int width, role r, const char *text);
int paint_format(const canvas *c, int y, int x, int width, role r, const char *format, ...)
    __attribute__((format(printf, 6, 7)));
// Cuts in the middle, where names differ at their ends.
int paint_middle(const canvas *c, int y, int x, int width, role r, const char *text);
// As paint_text, ending at column x + width.
void paint_right(const canvas *c, int y, int x, int width, role r, const char *text);
// Cuts at the front: names of a common group.
int paint_tail(const canvas *c, int y, int x, int width, role r, const char *text);
// Text whose parts stand between " · ": those that do not fit go whole, the last one first. The first is cut if it must
// be. Returns the columns written.
int paint_parts(const canvas *c, int y, int x, int width, role r, const char *text);
// The title line of a pane: "─ vram ──────────── 45.12 of 64.00 MiB ─". Both texts are of parts; of the right one only
// whole parts stand there.
void paint_rule(const canvas *c, bool focused, const char *title, const char *right);
// Wraps at blanks over at most c->area.h − y rows. Returns the rows used.
int paint_wrapped(const canvas *c, int y, role r, const char *text);
// The next row of `width` columns of a text that is wrapped: bytes [start, start + length). *at begins with 0 and goes
// behind it. False behind the last row.
bool wrap_next(const glyphs *g, const char *text, int width, size_t *at, size_t *start, size_t *length);
// The text that `paint_wrapped` would put into row `row` of `width` columns: bytes [start, start + length).
// False beyond the last row.
bool wrap_row(const glyphs *g, const char *text, int width, int row, size_t *start, size_t *length);

// ---- what was cut ---------------------------------------------------------------------------------------------

// Every text that has no room goes through one function, which tells a listener: what it says in full, and where
// what is left of it stands on the screen. Not of canvases whose text is said later. NULL: no listener.
typedef void (*paint_cut_seen)(void *context, int y, int x, const char *text);
void paint_watch_cuts(paint_cut_seen seen, void *context);

// ---- reading back ---------------------------------------------------------------------------------------------

typedef struct drawn {
    wchar_t glyph; // a blank where nothing was drawn
    int columns;   // 1, or 2: then the cell to its right is part of it
    style style;
} drawn;

void paint_size(int *rows, int *columns);
// What the last frame has at that place, 0 <= y < rows, 0 <= x < columns.
drawn paint_read(int y, int x);

// ---- screenshot.c, screenshot_svg.c: the screen as a file ------------------------------------------------------------

// As text: trailing blanks are cut. False when `out` failed.
bool paint_dump(FILE *out);
// As text with SGR sequences in 256 colours: `cat` shows it again. Begins with PAINT_ANSI_BEGIN.
bool paint_dump_ansi(FILE *out);
// As an SVG image that needs no font for its graphs: block, braille and line characters are shapes. The same screen gives
// the same bytes. Its first 200 bytes have PAINT_SVG_MARK. False also when host memory is short.
bool paint_dump_svg(const theme *t, FILE *out);

#define PAINT_ANSI_BEGIN "\033[0;10m"
#define PAINT_SVG_MARK   "<!-- headroom screen -->"
#define PAINT_TEXT_MARK  "(a headroom screen)\n"

// Saves the screen as the suffix of `path` says: .txt, .ans or .svg; whole or not at all. USAGE error for another
// suffix. WRITE error when the file cannot be written, or when something stands there that is not a saved screen of
// that kind: `replaces` takes every file's place. A text says in a last line of its own, PAINT_TEXT_MARK, what it is.
HR_MUST_CHECK hr_status paint_save(const theme *t, const char *path, bool replaces, hr_err *err);

#endif
