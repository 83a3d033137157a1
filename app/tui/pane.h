// SPDX-License-Identifier: Apache-2.0
// What a pane can do: one row each, so that keys, mouse, help, "." and the frame treat all panes alike.
#ifndef TUI_PANE_H
#define TUI_PANE_H

#include <stdbool.h>
#include <stddef.h>

#include "app/tui/app.h"
#include "app/tui/term/paint.h"
#include "app/tui/view/table_view.h"

typedef struct pane_ops {
    void (*draw)(const canvas *c, const app *a); // its title included; changes nothing
    void (*settle)(app *a);    // before a frame that shows it; NULL: nothing is to be made ready
    const table_source *table; // its rows, drawn with table_draw; NULL: it has none
    bool table_of_feed;        // its functions take the feed; else all of the state
    int table_y;               // row of the pane where the table begins: 1 below the title alone
    // The cursor: rows down, columns right. False: it has no use for that, and a table moves by rows. NULL: never.
    bool (*move)(app *a, int rows, int columns);
    void (*enter)(app *a);               // NULL: Enter has no job here
    const char *enter_does;              // as the footer says it: "apply"
    void (*apply)(app *a);               // a; NULL: what Enter does, where that is "apply"
    void (*mark)(app *a);                // t; NULL: a table's row is marked
    void (*zoom)(app *a, int direction); // + and −: −1 nearer, 1 farther; NULL: they zoom the Bench's graph
    void (*say)(app *a);                 // the pane in a sentence
    // Of the glossary: what ? explains; NULL: the column that the table is sorted by, or the title.
    const char *(*term)(const app *a);
    // What y copies; NULL: a table's selected row. False: nothing is there.
    bool (*copy)(const app *a, char *text, size_t size);
    void (*click)(app *a, int y,
                  int x); // within the pane, title row 0; NULL: tables select, others only take the focus
} pane_ops;

const pane_ops *pane_ops_of(pane_id pane); // of a pane that can have the focus
// What the functions of the pane's table take.
const void *pane_rows(const app *a, pane_id pane);
// Where the table of a pane with rows stands, as it was drawn.
table_place pane_table_place(const app *a, pane_id pane, rect r);

#endif
