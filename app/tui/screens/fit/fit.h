// SPDX-License-Identifier: Apache-2.0
// What the panes of Fit share.
#ifndef TUI_SCREENS_FIT_H
#define TUI_SCREENS_FIT_H

#include "app/tui/pane/pane.h"

extern const pane_ops pane_frontier, pane_points;
void place_fit(layout *l, rect body, const layout_wish *wish);

size_t fit_picked(const pane_view *v); // the point under the cursor; SIZE_MAX: there is none
pane_request fit_pick(const fit_points *fit, size_t point); // puts the cursor there, if it is shown
// ">=" before what a plan under no limit needs and misses (is_at_least); "" otherwise.
const char *fit_at_least(const hr_whatif *plan);
byte_unit fit_unit(const feed *f); // of both panes
pane_request fit_enter(const pane_view *v, void *own);
void fit_say(const pane_view *v, char text[PANE_TEXT_MAX]);
// The knobs in which the point of a row differs, as short as can be; ~ stands before what changes what is learned.
const char *fit_short(const fit_points *fit, size_t row, char text[TABLE_CELL_MAX]);
bool fit_copy(const pane_view *v, char *text, size_t size); // "-s key=value …" of the picked point

#endif
