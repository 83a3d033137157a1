// SPDX-License-Identifier: Apache-2.0
// Program: what listing and turned lines share.
#ifndef TUI_SCREENS_PROGRAM_H
#define TUI_SCREENS_PROGRAM_H

#include "app/tui/screens/timeline.h"

// The cursor of the listing and that of the step are one: takes over which of the two moved.
void program_sync(app *a);

#endif
