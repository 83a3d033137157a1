// SPDX-License-Identifier: Apache-2.0
#ifndef TUI_FIT_VIEW_H
#define TUI_FIT_VIEW_H

#include "app/tui/shell/app.h"

// Whether the screen wants points that have not been asked for.
bool fit_wanted(const app *a);
bool fit_apply(feed *f, size_t point); // one step of undo; says what it did

#endif
