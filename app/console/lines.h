// SPDX-License-Identifier: Apache-2.0
// Lines of a person, or of a pipe, until a signal comes: how a console reads where there is nothing to edit with.
#ifndef APP_CONSOLE_LINES_H
#define APP_CONSOLE_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "app/lua/console.h"

typedef enum line_end {
    LINE_READ,
    LINE_BREAK, // Ctrl-C
    LINE_OVER,  // Ctrl-D, or a pipe's end
    LINE_SIGNAL // that ends the console
} line_end;

typedef struct line_reader {
    lua_console *console; // borrowed: its signals are listened to
    char buffer[4096];
    size_t begin, end; // of what was read and not yet taken
    bool ended;
} line_reader;

// Waits for a byte of stdin: LINE_READ once there is one, or its end.
line_end lines_wait(lua_console *console);
// *line is the next one without its end, owned by the caller; also the last one where it has none.
line_end lines_read(line_reader *r, char **line);

#endif
