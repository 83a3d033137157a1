// SPDX-License-Identifier: Apache-2.0
// The terminal's state, and writing to it past ncurses.
#include "app/tui/term/terminal_state.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

terminal_state terminal_now = {.out = -1, .stderr_before = -1};

void terminal_write(int fd, const char *text, size_t bytes)
{
    while (bytes > 0) {
        ssize_t written = write(fd, text, bytes);
        if (written < 0 && errno != EINTR) {
            return;
        }
        text += written > 0 ? written : 0;
        bytes -= written > 0 ? (size_t)written : 0;
    }
}

static void write_text(const char *text)
{
    terminal_write(terminal_now.out, text, strlen(text));
}

void terminal_brackets(bool on)
{
    if (terminal_now.can.paste) {
        write_text(on ? "\033[?2004h" : "\033[?2004l");
    }
}

void terminal_hold_output(bool begin)
{
    if (terminal_now.can.sync) {
        write_text(begin ? "\033[?2026h" : "\033[?2026l");
    }
}

uint64_t terminal_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
