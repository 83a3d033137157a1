// SPDX-License-Identifier: Apache-2.0
// The Lua console: what a recipe beside the training says and draws, over the lower part of the screen, and a line for expressions.
#ifndef TUI_CONSOLE_H
#define TUI_CONSOLE_H

#include "app/tui/feed/recipe.h"
#include "app/tui/term/paint.h"
#include "app/tui/view/prompt.h"

typedef struct app app;

typedef struct console_view {
    prompt prompt;
    char chunk[HR_GUEST_TEXT_MAX]; // the lines before this one, of a chunk that is not whole yet; ""
    uint64_t back;                 // lines scrolled
    uint64_t told;                 // lines that were shown here or said elsewhere
    uint64_t plots;                // that were
    uint64_t answered;             // the last answer that was taken,
    size_t answers;                // and how many words it had then
    bool evaluates;                // ":=": what it comes to is said without the console
} console_view;

void console_open(app *a);
void console_key(app *a, int key);
void console_scroll(app *a, int rows);
void console_run(app *a, const char *recipe, const char *words); // a file or a name, and what follows it
// ":lua FILE [ARGUMENTS]", ":lua stop", ":lua".
void console_lua(app *a, const char *argument);
// ":=EXPRESSION".
void console_evaluate(app *a, const char *text);
void console_ask(app *a); // what may stand at the cursor; the answer comes when it comes
// Where it is not open: what a recipe has said since. A plot opens it.
void console_follow(app *a);
void screen_console(const canvas *body, const app *a);

#endif
