// SPDX-License-Identifier: Apache-2.0
#ifndef TUI_LOOP_H
#define TUI_LOOP_H

#include "app/tui/shell/app.h"

// Draws the first frame, starts the engine, and answers keys and events until the app wants to quit. Looks are written down two
// seconds after the last key, and at the end. At most four
// frames a second come from events; a key is answered with a frame at once; without either nothing runs and nothing
// is written.
void loop_run(app *a);

#endif
