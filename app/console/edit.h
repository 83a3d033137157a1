// SPDX-License-Identifier: Apache-2.0
// Lines that a person edits at a terminal, with a history that outlives the program and completion. The only file that sees
// libedit.
#ifndef APP_CONSOLE_EDIT_H
#define APP_CONSOLE_EDIT_H

#include "app/console/lines.h"

typedef struct line_editor line_editor;

// `history`: its file; "": nothing is remembered. NULL where the terminal can do no more than print, or host memory is short.
line_editor *edit_open(lua_console *console, const char *history);
void edit_close(line_editor *e); // writes the history; NULL is fine
// As lines_read, behind a prompt. `before`: the lines of the chunk that were typed already, with their ends.
line_end edit_read(line_editor *e, const char *prompt, const char *before, char **line);

#endif
