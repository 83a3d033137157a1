// SPDX-License-Identifier: Apache-2.0
// What a terminal was sent, with times, in asciicast version 2 (https://docs.asciinema.org/manual/asciicast/v2/): a
// line of JSON for the terminal, then one for every piece of output. The times are the script's.
#ifndef TUI_SCRIPT_CAST_H
#define TUI_SCRIPT_CAST_H

#include <stdint.h>
#include <stdio.h>

#include "headroom/status.h"

typedef struct script_cast {
    FILE *from; // what curses writes to
    FILE *to;   // NULL: nothing is kept
    long taken; // bytes of `from`
} script_cast;

// Neither is owned. Only `to` fails: at the end, when it is closed.
void script_cast_begin(script_cast *c, FILE *from, FILE *to, int rows, int columns, const char *type);
// What was written since the last time.
void script_cast_frame(script_cast *c, uint64_t time_ns);

#endif
