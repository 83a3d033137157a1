// SPDX-License-Identifier: Apache-2.0
// What a pane is given and what it can do: one row each, so that keys, mouse, help, "." and the frame treat all panes alike.
// A pane changes its own screen's state and nothing else: what more a key shall do it returns as a request, and the shell
// does it.
#ifndef TUI_PANE_PANE_H
#define TUI_PANE_PANE_H

#include <stdbool.h>
#include <stddef.h>

#include "app/tui/feed/feed.h"
#include "app/tui/pane/screens.h"
#include "app/tui/term/paint.h"
#include "app/tui/view/layout.h"
#include "app/tui/view/table_view.h"

typedef struct pane_ops pane_ops;

// What a pane sees.
typedef struct pane_view {
    const feed *feed;
    const table_view *tables; // of all panes, by their ids
    const pane_ops *ops;      // its own row
    const void *rows;         // what the functions of its table take: the screen's state, or the feed
    pane_id pane;
    rect place; // as it stands on the screen
    bool focused;
    bool expands;          // alone it would have more room
    uint64_t pinned_bytes; // the baseline's peak; 0: none is pinned
} pane_view;

enum { PANE_TEXT_MAX = 2 * HR_ERR_TEXT_MAX };

typedef enum pane_request_kind {
    PANE_ASKS_NOTHING,  // it has no use for the key
    PANE_DONE,          // it has changed its own state, and asks for nothing more
    PANE_SAYS,          // text
    PANE_EDITS_KNOB,    // knob
    PANE_TURNS,         // the knobs of text, "a.b=1 c.d=2"
    PANE_MOVES_TABLE,   // the cursor of the pane's table by rows
    PANE_SELECTS_ROW,   // puts that cursor on a row; says text where no such row is shown
    PANE_APPLIES_POINT, // of Fit, by row
    PANE_TURNS_ALL,     // to knobs, then says text; only when it is asked twice, where there is a doubt
    PANE_FOCUSES,       // pane
    PANE_OPENS_PRESET,  // text
    PANE_BEGINS,        // the preset of text, under knobs
    PANE_SHOWS_SCREEN,  // screen
    PANE_SELECTS_KNOB,  // knob
    PANE_ASKS_RANKS,    // of the layer that text names, and says what was asked
    PANE_FREEZES,       // the view, and says text
    PANE_THAWS,
} pane_request_kind;

typedef struct pane_request {
    pane_request_kind kind;
    size_t knob; // of the panel
    pane_id pane;
    screen_id screen;
    int rows;
    size_t row;
    const hr_knobs *knobs; // of the feed
    uint32_t sure_of;      // a number that is the same when the same is asked again; 0: there is no doubt
    char text[PANE_TEXT_MAX], doubt[FORMAT_MAX + 96];
} pane_request;

struct pane_ops {
    const table_source *table; // its rows, drawn with table_draw; NULL: it has none
    int table_y;               // row of the pane where the table begins: 1 below the title alone
    const char *enter_does;    // as the footer says it: "apply"; NULL: Enter has no job here
    const char
        *term; // of the glossary: what ? explains; NULL: the column that the table is sorted by, or the title
    const char *(*term_of_row)(const pane_view *v);    // goes before `term`; NULL: the selected row has none
    void (*draw)(const canvas *c, const pane_view *v); // its title included
    // `own` is the screen's state, to be changed; NULL where it has none.
    // Before a frame that shows it, and before what a key does in it; NULL: nothing is to be made ready.
    pane_request (*settle)(const pane_view *v, void *own);
    // The cursor: rows down, columns right. Nothing asked: a table moves by rows. NULL: never.
    pane_request (*move)(const pane_view *v, void *own, int rows, int columns);
    pane_request (*enter)(const pane_view *v, void *own);
    pane_request (*apply)(const pane_view *v);           // a; NULL: what Enter does, where that is "apply"
    pane_request (*mark)(const pane_view *v, void *own); // t; NULL: a table's row is marked
    // h, s and n: of a lesson. NULL: they have no job here.
    pane_request (*hint)(const pane_view *v, void *own);
    pane_request (*sandbox)(const pane_view *v, void *own);
    pane_request (*next)(const pane_view *v, void *own);
    // + and −: −1 nearer, 1 farther; NULL: they zoom the Bench's graph
    pane_request (*zoom)(const pane_view *v, void *own, int direction);
    // At a place of the pane, whose title is row 0; NULL: tables select, others only take the focus.
    pane_request (*click)(const pane_view *v, void *own, int y, int x);
    void (*say)(const pane_view *v,
                char text[PANE_TEXT_MAX]); // the pane in a sentence; "": there is nothing to say
    // What y copies; NULL: a table's selected row. False: nothing is there.
    bool (*copy)(const pane_view *v, char *text, size_t size);
};

pane_request pane_says(const char *format, ...) __attribute__((format(printf, 1, 2)));

// The title line of a pane with a table: also what it leaves out, and in which order it stands where no heading says so.
void pane_table_rule(const canvas *c, const pane_view *v, const char *right);
void pane_draw_table(const canvas *c, const pane_view *v,
                     const char *right); // that line, and the table below it

#endif
