// SPDX-License-Identifier: Apache-2.0
// The screens: one row each, with its panes and how they share the place.
#ifndef TUI_SHELL_ROWS_H
#define TUI_SHELL_ROWS_H

#include "app/tui/pane/screens.h"
#include "app/tui/view/layout.h"

const screen_row *screen_row_of(screen_id screen);
bool screen_has(screen_id screen, pane_id pane);

#endif
