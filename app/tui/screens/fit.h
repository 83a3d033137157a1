// SPDX-License-Identifier: Apache-2.0
// What the panes of Fit share.
#ifndef TUI_SCREENS_FIT_H
#define TUI_SCREENS_FIT_H

#include "app/tui/app.h"

size_t fit_picked(const app *a);     // the point under the cursor; SIZE_MAX: there is none
void fit_pick(app *a, size_t point); // puts the cursor there, if it is shown
byte_unit fit_unit(const feed *f);   // of both panes
void fit_enter(app *a);
void fit_say(app *a);
// The knobs in which a point differs, as short as can be; ~ stands before what changes what is learned.
const char *fit_short(const hr_fit_point *point, char text[TABLE_CELL_MAX]);
bool fit_copy(const app *a, char *text, size_t size); // "-s key=value …" of the picked point

#endif
