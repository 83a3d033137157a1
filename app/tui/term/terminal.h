// SPDX-License-Identifier: Apache-2.0
// The terminal: taken, given back on every way out, and its keys. There is one at a time, and one thread.
//
//            terminal_open                       SIGTSTP, terminal_suspend
//   closed ───────────────→ open ─────────────────────────────────→ stopped
//          ←─────────────── (alternate screen, no cursor,  ←─────── (all as before open)
//            terminal_close  paste brackets, mouse if wanted) SIGCONT
//
// A crash, and a second SIGTERM or SIGHUP before the first one was read, give the terminal back and end the process by
// that signal.
#ifndef TUI_TERMINAL_H
#define TUI_TERMINAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

#include "headroom/status.h"

typedef struct terminal_event {
    int key;     // enum input, or a character; INPUT_NONE: no more keys now
    int y, x;    // where the mouse was, of INPUT_CLICK, INPUT_WHEEL_UP and INPUT_WHEEL_DOWN
    int clicks;  // of INPUT_CLICK: 2 for the second of a double click, otherwise 1
    bool pasted; // a character of a paste, to be taken as text and never as a key; '\n' ends a line
    bool closed; // the terminal is gone: nothing will come any more
} terminal_event;

// Takes stdin and stdout. TERMINAL error with advice when they are no terminal, when TERM is unknown, or when the
// terminal cannot place its cursor; nothing has then been written to it.
HR_MUST_CHECK hr_status terminal_open(bool mouse, hr_err *err);
void terminal_close(void); // also prints what was written to stderr meanwhile

// Screens in tests: a terminal of type `type` whose output goes to `out`. False when the type is unknown, or
// cannot place its cursor.
bool terminal_open_on(const char *type, FILE *out, FILE *in, int rows, int columns);
void terminal_close_on(void);
void terminal_resize(int rows, int columns); // of such a one

unsigned terminal_serial(void); // another one for every terminal that was opened
int terminal_colors(void);
terminal_event terminal_key(void); // never waits
void terminal_redraw(void);        // the next frame is written whole
// Clicks and the wheel; off leaves them, and selecting text, to the terminal.
void terminal_mouse(bool on);
bool terminal_has_mouse(void);
// Whether it takes what is written now; where it does again, the next frame is written whole.
bool terminal_takes(void);
// Around the writing of a frame: one that gets stuck is let go after two seconds, and nothing arrives until it takes again.
void terminal_begin_writing(void);
void terminal_end_writing(void);
// Around the writing of a frame: a terminal that is known to can shows it when it is whole (CSI ? 2026).
void terminal_hold_output(bool begin);

// The most bytes that terminal_copy takes: with them OSC 52 has 100,000, which older terminals cut at.
enum { TERMINAL_COPY_MAX = 74994 };
// Puts text into the clipboard of the terminal, also over ssh (OSC 52), in tmux when `set-clipboard on` or
// `allow-passthrough on`, in screen. No terminal answers whether it did. TERMINAL error with the reason when the text is
// empty or too long, or on a console.
HR_MUST_CHECK hr_status terminal_copy(const char *text, hr_err *err);

// Signals are taken inside poll only. The fd is readable when one came; terminal_signal reads which one: SIGINT, SIGTERM
// or SIGHUP for the caller to act on, 0 when there was none or when it has been dealt with here. SIGTSTP and SIGCONT
// are: the next terminal_key is then INPUT_RESIZED.
int terminal_signal_fd(void);
int terminal_signal(void);
const sigset_t *terminal_poll_mask(void);
// What else has to stop with us: `before` is called while the terminal is still open, `after` when it is again.
// NULLs: nothing.
void terminal_on_suspend(void (*before)(void *), void (*after)(void *), void *context);
// Gives the terminal back and stops the process as Ctrl-Z does; returns when it is continued.
void terminal_suspend(void);
// Lends the terminal to a program until it ends: argv[0] is searched in PATH. Its exit status; 127 when it could not be
// started. What ^C and ^Z do meanwhile is its own; when it stops, so do we.
int terminal_lend(char *const argv[]);

#endif
