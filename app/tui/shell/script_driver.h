// SPDX-License-Identifier: Apache-2.0
// Drives the workbench from a file, for tests and screenshots: the clock stands still but for "wait", the engine moves
// only then, every plan that was asked for is answered before the next line. The same file gives the same screens on
// every machine.
//
//   # a comment                  keys <Right> z <Tab>         type 64
//   :set batch.size 64           wait steps 20                wait seconds 2.5
//   expect out of memory         expect not out of memory     resize 120x36
//   save-display bench.svg       pace 0.2                     visible on
//
// `keys` are pressed one after the other, blanks between them; `type` types text as it stands. `pace`: every key from
// here on takes so long. `visible on`: a key that the screen does not show is an error.
#ifndef TUI_SCRIPT_DRIVER_H
#define TUI_SCRIPT_DRIVER_H

#include <stdbool.h>
#include <stdio.h>

#include "headroom/status.h"

#include "app/tui/shell/app.h"

// What moves beside the keys.
typedef struct script_hands {
    bool (*advance)(app *a); // one bounded piece of the engine's work; false: it had none
    void (*settle)(app *a);  // answers what app_drain does not; NULL: nothing
} script_hands;

typedef struct script_stage {
    const char *name; // of the script, for its errors
    const char *type; // of the terminal
    FILE *screen;     // what curses writes to
    FILE *cast;       // NULL: none is made
    FILE *last;       // gets the screen as text when all is done; NULL: none
    FILE *failed;     // gets the screen when an `expect` fails; NULL: none
    const script_hands *hands;
} script_stage;

// Does `text` line by line on an app whose engine has been started. CHECK error: an `expect` failed, or the workbench
// was left early. USAGE error: a line that means nothing. WRITE error: a screenshot could not be saved.
HR_MUST_CHECK hr_status script_drive(app *a, const char *text, const script_stage *stage, hr_err *err);

#endif
