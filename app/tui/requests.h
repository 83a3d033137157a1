// SPDX-License-Identifier: Apache-2.0
// One table of all that can be asked of the workbench: keys, ":" commands, footer and help are made from it. One
// job per key on every screen.
#ifndef TUI_REQUESTS_H
#define TUI_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>

// Keys beyond Unicode; a plain character is its own code.
enum input {
    INPUT_NONE = 0,
    INPUT_CTRL_C = 3,
    INPUT_TAB = 9,
    INPUT_ENTER = 10,
    INPUT_CTRL_L = 12,
    INPUT_ESCAPE = 27,
    INPUT_BACKSPACE = 127, // backspace
    INPUT_BEYOND_UNICODE = 0x200000,
    INPUT_UP,
    INPUT_DOWN,
    INPUT_LEFT,
    INPUT_RIGHT,
    INPUT_HOME,
    INPUT_END,
    INPUT_PAGE_UP,
    INPUT_PAGE_DOWN,
    INPUT_BACK_TAB,
    INPUT_DELETE,
    INPUT_RESIZED,
    INPUT_CLICK,
};

// X(ID, key, "key as shown", "name after ':'", "what it does")
#define REQUEST_MAP(X)                                                                                       \
    X(LEFT, INPUT_LEFT, "←", "less", "turn the selected knob down")                                          \
    X(RIGHT, INPUT_RIGHT, "→", "more", "turn the selected knob up")                                          \
    X(ENTER, INPUT_ENTER, "Enter", "edit", "type the selected knob's value; open the selected preset")       \
    X(RUN, 'r', "r", "run", "run or pause the training")                                                     \
    X(FREEZE, ' ', "Space", "freeze", "freeze the view; the training goes on")                               \
    X(UNDO, 'z', "z", "undo", "undo the last turn of a knob")                                                \
    X(REDO, 'Z', "Z", "redo", "turn it again")                                                               \
    X(PIN, 'b', "b", "pin", "pin a baseline: every number shows what changed since")                         \
    X(UNPIN, 'B', "B", "unpin", "forget the baseline")                                                       \
    X(PRESETS, 'p', "p", "presets", "choose another preset")                                                 \
    X(BENCH, '1', "1", "bench", "the Bench: memory, loss and knobs")                                         \
    X(DOCTOR, '4', "4", "doctor", "the Doctor: why it ran out of memory, and what to turn")                  \
    X(NEXT, INPUT_TAB, "Tab", "next", "focus the next pane")                                                 \
    X(PREVIOUS, INPUT_BACK_TAB, "Shift-Tab", "previous", "focus the pane before")                            \
    X(UP, INPUT_UP, "↑", "up", "select the row above")                                                       \
    X(DOWN, INPUT_DOWN, "↓", "down", "select the row below")                                                 \
    X(PAGE_UP, INPUT_PAGE_UP, "PgUp", "page-up", "one page up")                                              \
    X(PAGE_DOWN, INPUT_PAGE_DOWN, "PgDn", "page-down", "one page down")                                      \
    X(EXPAND, 'e', "e", "expand", "the focused pane alone, and back")                                        \
    X(ZOOM_IN, '+', "+", "zoom-in", "less time on the memory graph; below the finest, one step")             \
    X(ZOOM_OUT, '-', "-", "zoom-out", "more time on the memory graph")                                       \
    X(SAY, '.', ".", "say", "say the focused pane in a sentence")                                            \
    X(HELP, '?', "?", "help", "keys, and what the selected number means")                                    \
    X(COMMAND, ':', ":", "command", "type a command")                                                        \
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

enum { REQUEST_COUNT = REQUEST_NONE };

typedef struct request_row {
    int key;
    const char *shown, *name, *line;
} request_row;

const request_row *request_rows(size_t *count); // indexed by request
request request_of_key(int key);                // REQUEST_NONE when the key has no job
request request_of_name(const char *name);

#endif
