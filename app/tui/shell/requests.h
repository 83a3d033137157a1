// SPDX-License-Identifier: Apache-2.0
// One table of all that can be asked of the workbench: keys, ":" commands, footer and help are made from it. One
// job per key on every screen.
#ifndef TUI_REQUESTS_H
#define TUI_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>

#include "app/tui/shell/rows.h"
#include "app/tui/term/input.h"

// X(ID, key, "key as shown", "name after ':'", "what it does")
#define REQUEST_MAP(X)                                                                                       \
    X(LEFT, INPUT_LEFT, "←", "left", "turn the selected knob down; in a chart, move its cursor")             \
    X(RIGHT, INPUT_RIGHT, "→", "right", "turn the selected knob up; in a chart, move its cursor")            \
    X(ENTER, INPUT_ENTER, "Enter", "edit", "type the selected knob's value; open or apply the selected row") \
    X(APPLY, 'a', "a", "apply", "turn the knobs to what the selected row says")                              \
    X(HINT, 'h', "h", "hint", "in a lesson: the next of its hints, which are counted")                       \
    X(SANDBOX, 's', "s", "sandbox", "in a lesson: turn what you like, nothing counts; back without loss")    \
    X(PERMIT, 'P', "P", "permit", "let Fit change precision too, then also the optimizer; then neither")     \
    X(LESS, '<', "<", "less", "turn the selected knob down, on every screen")                                \
    X(MORE, '>', ">", "more", "turn the selected knob up, on every screen")                                  \
    X(KNOB_ABOVE, '[', "[", "knob-above", "select the knob above, on every screen")                          \
    X(KNOB_BELOW, ']', "]", "knob-below", "select the knob below, on every screen")                          \
    X(RUN, 'r', "r", "run", "run or pause the training")                                                     \
    X(RESTART, 'R', "R", "restart", "end the worker and go on from its last save")                           \
    X(FREEZE, ' ', "Space", "freeze", "freeze the view; the training goes on")                               \
    X(UNDO, 'z', "z", "undo", "undo the last turn of a knob")                                                \
    X(REDO, 'Z', "Z", "redo", "turn it again")                                                               \
    X(EDIT_PRESET, 'E', "E", "edit-preset", "open the preset in $EDITOR, and read it again")                 \
    X(PIN, 'b', "b", "pin", "pin a baseline: every number shows what changed since")                         \
    X(UNPIN, 'B', "B", "unpin", "forget the baseline")                                                       \
    X(PRESETS, 'p', "p", "presets", "choose another preset")                                                 \
    SCREEN_MAP(X)                                                                                            \
    X(NEXT, INPUT_TAB, "Tab", "next", "focus the next pane")                                                 \
    X(PREVIOUS, INPUT_BACK_TAB, "Shift-Tab", "previous", "focus the pane before")                            \
    X(UP, INPUT_UP, "↑ k", "up", "select the row above")                                                     \
    X(DOWN, INPUT_DOWN, "↓ j", "down", "select the row below")                                               \
    X(PAGE_UP, INPUT_PAGE_UP, "PgUp", "page-up", "one page up")                                              \
    X(PAGE_DOWN, INPUT_PAGE_DOWN, "PgDn", "page-down", "one page down")                                      \
    X(FIRST, INPUT_HOME, "Home", "first", "the first row")                                                   \
    X(LAST, INPUT_END, "End G", "last", "the last row")                                                      \
    X(FILTER, '/', "/", "filter", "show the rows that match, !text the others; among knobs, find one")       \
    X(NEXT_MATCH, 'n', "n", "next-match", "the next row, or knob, looked for with /; the next lesson")       \
    X(MATCH_BEFORE, 'N', "N", "match-before", "the one before")                                              \
    X(SORT, 'o', "o", "sort", "sort by the next column")                                                     \
    X(REVERSE, 'O', "O", "reverse", "sort the other way round")                                              \
    X(COLUMNS, 'c', "c", "columns", "choose the columns of this table")                                      \
    X(FOLLOW, 'f', "f", "follow", "stay on this row wherever it goes")                                       \
    X(MARK, 't', "t", "mark", "mark this row, to compare it with another")                                   \
    X(EXPAND, 'e', "e", "expand", "the focused pane alone, and back")                                        \
    X(ZOOM_IN, '+', "+", "zoom-in", "less time on the graph; below the finest, one step")                    \
    X(ZOOM_OUT, '-', "-", "zoom-out", "more time on the graph")                                              \
    X(SAY, '.', ".", "say", "say the focused pane in a sentence")                                            \
    X(COPY, 'y', "y", "copy", "copy the selected row, or what this pane shows, through the terminal")        \
    X(SAVE_SCREEN, 'S', "S", "save-screen", "save the screen as SVG: headroom-1.svg")                        \
    X(THEME, 'v', "v", "theme", "other colours: dark, light, for the colour-blind, none")                    \
    X(MOUSE, 'm', "m", "mouse", "mouse on or off; off leaves selecting text to the terminal")                \
    X(HELP, '?', "?", "help", "keys, and what the selected number means")                                    \
    X(COMMAND, ':', ":", "command", "type a command")                                                        \
    X(CONSOLE, '=', "=", "console", "Lua beside the training: expressions, and what recipes say")            \
    X(GLOSSARY, 'L', "L", "glossary", "Learn: lessons, words and situations; on Learn: the list of lessons") \
    X(GLYPHS, 'g', "g", "glyphs", "blocks, braille or ASCII")                                                \
    X(REDRAW, INPUT_CTRL_L, "^L", "redraw", "draw the whole screen again")                                   \
    X(BACK, INPUT_ESCAPE, "Esc", "back", "close what is open; an error has been read")                       \
    X(INTERRUPT, INPUT_CTRL_C, "^C", "stop", "pause the training; a second time leaves")                     \
    X(QUIT, 'q', "q", "quit", "leave (asks while it trains)")

typedef enum request {
#define X(id, key, shown, name, line) REQUEST_##id,
    REQUEST_MAP(X)
#undef X
        REQUEST_NONE, // also their count
} request;

enum { REQUEST_COUNT = REQUEST_NONE, REQUEST_FIRST_SCREEN = REQUEST_BENCH };

// The request that opens a screen.
static inline request request_of_screen(screen_id screen)
{
    return (request)(REQUEST_FIRST_SCREEN + (int)screen);
}

typedef struct request_row {
    int key;
    const char *shown, *name, *line;
} request_row;

const request_row *request_rows(size_t *count); // indexed by request
// REQUEST_NONE when the key has no job. j, k and G are those of less and vi.
request request_of_key(int key);
request request_of_name(const char *name);

#endif
