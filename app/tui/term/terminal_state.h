// SPDX-License-Identifier: Apache-2.0
// What the terminal*.c share. There is one terminal, and a signal handler has no argument to find it by.
#ifndef TUI_TERMINAL_STATE_H
#define TUI_TERMINAL_STATE_H

#include <ncurses.h>
#include <stdint.h>
#include <termios.h>

#include "app/tui/term/terminal.h"
#include "app/tui/term/terminfo.h"

typedef struct terminal_state {
    SCREEN *screen;
    int out; // where ncurses writes
    unsigned serial;
    char type[64];
    terminal_abilities can;
    struct termios before;
    bool mouse, resumed; // resumed: the next key says that the size may be another
    int stderr_before;   // −1: not taken
    FILE *stderr_kept;
} terminal_state;

extern terminal_state terminal_now;

// Writes all of it past ncurses, whose own output has been flushed. Safe in a signal handler.
void terminal_write(int fd, const char *text, size_t bytes);
void terminal_brackets(bool on); // around pastes, where the terminal can
uint64_t terminal_clock_ms(void);

// ---- terminal_keys.c ----

void terminal_define_keys(void);

// ---- terminal_signals.c ----

hr_status terminal_signals_open(hr_err *err); // before newterm, which sets handlers of its own
void terminal_signals_catch(void);            // after it
void terminal_signals_close(void);

// ---- terminal_deaf.c ----

void terminal_deaf_open(void); // once the screen is open
// Nothing that is written to close the screen waits for a terminal that takes nothing.
void terminal_deaf_before_close(void);
void terminal_deaf_close(void);
bool terminal_takes_now(void); // safe in a signal handler

#endif
