// SPDX-License-Identifier: Apache-2.0
// A workbench without a terminal: ncurses writes to /dev/null, what it would show is read back as text.
#ifndef TESTS_TUI_SCREEN_H
#define TESTS_TUI_SCREEN_H

#include "app/tui/shell/app.h"

typedef struct screen_look {
    const char *type; // TERM; NULL: xterm-256color
    int rows, columns;
    glyph_set glyphs;
    bool no_color;
} screen_look;

// A workbench on a manual scripted engine that has just been started. The caller closes it.
app *screen_open(const screen_look *look);
void screen_close(app *a);
// Lets the engine do `pieces` pieces of work, takes what it says, and answers every what-if.
void screen_advance(app *a, unsigned pieces);
// Draws a frame and returns it as text; the caller frees it.
char *screen_text(app *a);
void screen_keys(app *a, const char *keys); // plain characters

#endif
