// SPDX-License-Identifier: Apache-2.0
// Screens to make screenshots of: the workbench in several looks, and a page with every character that is drawn.
#ifndef TESTS_TUI_SCREENSHOT_H
#define TESTS_TUI_SCREENSHOT_H

#include "app/tui/term/paint.h"
#include "tests/tui/screen.h"

enum { SCREENSHOT_LOOKS = 7, SCREENSHOT_THEMES = 5 };

extern const char *const screenshots_themes[SCREENSHOT_THEMES];

typedef struct screenshots {
    char *text; // the caller frees it
    size_t count;
} screenshots;

// The screen as ANSI, or as SVG when a theme is given.
screenshots screenshots_dump(const theme *svg);

// The workbench after ninety pieces of work, drawn; screen_close closes it.
app *screenshots_open_look(size_t i);
// Blocks, braille and lines in all their forms, and words.
void screenshots_open_page(theme *t, const char *name);
void screenshots_close_page(void);

#endif
