// SPDX-License-Identifier: Apache-2.0
// Screens to make pictures of: the workbench in several looks, and a page with every character that is drawn.
#ifndef TESTS_TUI_PICTURED_H
#define TESTS_TUI_PICTURED_H

#include "app/tui/paint.h"
#include "tests/tui/screen.h"

enum { PICTURED_LOOKS = 7, PICTURED_THEMES = 5 };

extern const char *const pictured_themes[PICTURED_THEMES];

typedef struct pictured {
    char *text; // the caller frees it
    size_t count;
} pictured;

// The screen as ANSI, or as SVG when a theme is given.
pictured pictured_dump(const theme *svg);

// The workbench after ninety pieces of work, drawn; screen_close closes it.
app *pictured_open_look(size_t i);
// Blocks, braille and lines in all their forms, and words.
void pictured_open_page(theme *t, const char *name);
void pictured_close_page(void);

#endif
