// SPDX-License-Identifier: Apache-2.0
// The terminal: taken, given back on every way out, and its keys. There is one at a time.
#ifndef TUI_TERMINAL_H
#define TUI_TERMINAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "headroom/status.h"

typedef struct terminal_event {
    int key;     // enum input, or a character; INPUT_NONE: no more keys now
    int y, x;    // of INPUT_CLICK
    bool closed; // the terminal is gone
} terminal_event;

// Takes stdin and stdout. TERMINAL error with advice when they are no terminal, when TERM is unknown, or when the
// terminal cannot place its cursor; nothing has then been written to it.
HR_MUST_CHECK hr_status terminal_open(bool mouse, hr_err *err);
void terminal_close(void); // also prints what was written to stderr meanwhile

// Screens in tests: a terminal of type `type` whose output goes to `out`. False when the type is unknown.
bool terminal_open_on(const char *type, FILE *out, FILE *in, int rows, int columns);
void terminal_close_on(void);

int terminal_colors(void);
terminal_event terminal_key(void); // never waits
void terminal_redraw(void);        // the next frame is written whole

// Signals are taken inside poll only. The fd is readable when SIGINT, SIGTERM or SIGHUP came; terminal_signal reads
// which one (0: none).
int terminal_signal_fd(void);
int terminal_signal(void);
const sigset_t *terminal_poll_mask(void);

#endif
