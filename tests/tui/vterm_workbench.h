// SPDX-License-Identifier: Apache-2.0
// What the tests of programs in a terminal have in common. Each of these fails the test when it is not so.
#ifndef TESTS_TUI_VTERM_WORKBENCH_H
#define TESTS_TUI_VTERM_WORKBENCH_H

#include "tests/tui/vterm.h"

// The workbench draws four frames a second of what happens by itself: after so long nothing is waiting to be drawn.
enum { WORKBENCH_ROWS = 24, WORKBENCH_COLUMNS = 80, WORKBENCH_QUIET_MS = 300, WORKBENCH_GROUP_MAX = 32 };
// Private modes of a terminal.
enum { WORKBENCH_CURSOR = 25, WORKBENCH_MOUSE = 1000, WORKBENCH_SCREEN = 1049, WORKBENCH_PASTE = 2004 };

extern const char *const workbench_still[];  // on an engine that does nothing
extern const char *const workbench_lively[]; // on an engine by a script
extern const char *const workbench_real[];   // the program itself

vt_run *workbench_start(const char *const *command);
vt_run *workbench_start_sized(const char *const *command, int rows, int columns);
void workbench_type(vt_run *v, const char *text);
void workbench_settle(vt_run *v);
void workbench_settle_all(vt_run *const *v, int count);
// Until everything that the start brings has been drawn.
void workbench_wait_all(vt_run *const *v, int count);
void workbench_wait(vt_run *v);
void workbench_has_taken(const vt_run *v);      // the screen, the cursor, pastes
void workbench_has_given_back(const vt_run *v); // everything, as a shell needs it

vt_cell *workbench_copy_cells(vt_run *v); // the caller frees them
bool workbench_same_cells(const vt_cell *a, const vt_cell *b, int count);
// The two show the same text.
void workbench_show_same(vt_run *a, vt_run *b, const char *name);
// What stands there is what a frame drawn on an empty screen shows. At most WORKBENCH_GROUP_MAX.
void workbench_are_clean(vt_run *const *v, const char *const *names, int count);
void workbench_is_clean(vt_run *v, const char *name);

#endif
