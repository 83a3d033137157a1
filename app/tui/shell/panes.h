// SPDX-License-Identifier: Apache-2.0
// All panes by their ids, and what the shell does with one.
#ifndef TUI_PANES_H
#define TUI_PANES_H

#include "app/tui/pane/pane.h"
#include "app/tui/shell/app.h"

const pane_ops *pane_ops_of(pane_id pane); // of a pane that can have the focus
pane_view pane_view_of(const app *a, pane_id pane);
// What the functions of the pane's table take.
const void *pane_rows(const app *a, pane_id pane);
void *pane_own(app *a, pane_id pane); // its screen's state; NULL: it has none
// Where the table of a pane with rows stands, as it was drawn.
table_place pane_table_place(const app *a, pane_id pane, rect r);

#endif
