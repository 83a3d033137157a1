// SPDX-License-Identifier: Apache-2.0
// What the panes of Runs share.
#ifndef TUI_SCREENS_RUNS_H
#define TUI_SCREENS_RUNS_H

#include "app/tui/feed/run_log.h"
#include "app/tui/pane/pane.h"

// What the rows of all three panes are made of.
typedef struct runs_view {
    const feed *feed;
    const table_view *table; // of [runs]: its selected and its marked ones
} runs_view;

extern const pane_ops pane_runs, pane_diff, pane_overlay;
void place_runs(layout *l, rect body, const layout_wish *wish);

const run *runs_selected(const runs_view *v); // NULL: there is none
run_pair runs_shown(const runs_view *v);      // that DIFF and OVERLAY are about
byte_unit runs_unit(const run_pair *pair);    // one for both
// "run 2 (baseline)"
const char *runs_name(const feed *f, const run *r, char text[FORMAT_MAX]);

#endif
