// SPDX-License-Identifier: Apache-2.0
// What the panes of Runs share.
#ifndef TUI_SCREENS_RUNS_H
#define TUI_SCREENS_RUNS_H

#include "app/tui/app.h"
#include "app/tui/feed/run_log.h"

run_pair runs_shown(const app *a);         // that DIFF and OVERLAY are about
byte_unit runs_unit(const run_pair *pair); // one for both
// "run 2 (baseline)"
const char *runs_name(const feed *f, const run *r, char text[FORMAT_MAX]);

// Names the selected run of this screen; from elsewhere the one that goes on. "" takes its name away.
void runs_give_name(app *a, const char *name);

#endif
