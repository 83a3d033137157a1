// SPDX-License-Identifier: Apache-2.0
// Where the program keeps what it remembers between two starts. It never matters: where nothing can be written, nothing
// is remembered, and that is no error.
#ifndef APP_CLI_STATE_H
#define APP_CLI_STATE_H

#include <stdbool.h>
#include <stddef.h>

// The workbench's file (app/tui/shell/remember.h): $XDG_STATE_HOME/headroom/workbench.
bool state_workbench_path(char *path, size_t size);
// Of the lessons that were done: $XDG_STATE_HOME/headroom/lessons.
bool state_lessons_path(char *path, size_t size);
// Of lines that were typed at a console: $XDG_STATE_HOME/headroom/console.
bool state_console_path(char *path, size_t size);

#endif
