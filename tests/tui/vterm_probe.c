// SPDX-License-Identifier: Apache-2.0
// terminal.h alone, saying what it reads: the last events are on the screen. M mouse, C copy, E a line on stderr, Z stop,
// O overflow the stack, H hang, N nothing, Q leave.
#include <locale.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/tui/shell/requests.h"
#include "app/tui/term/paint.h"
#include "app/tui/term/terminal.h"

enum { LINES_KEPT = 20, LINE_MAX = 60 };

static char lines[LINES_KEPT][LINE_MAX];
static int line_count;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    if (line_count == LINES_KEPT) {
        memmove(lines[0], lines[1], sizeof lines - sizeof lines[0]);
        line_count--;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(lines[line_count++], LINE_MAX, format, args);
    va_end(args);
}

static void draw(const theme *t, const glyphs *g)
{
    int rows, columns;
    paint_size(&rows, &columns);
    canvas c = {.theme = t, .glyphs = g, .area = {0, 0, rows, columns}};
    paint_begin();
    paint_format(&c, 0, 0, columns, ROLE_TEXT, "probe %d x %d", rows, columns);
    for (int i = 0; i < line_count; i++) {
        paint_text(&c, i + 1, 0, columns, ROLE_TEXT, lines[i]);
    }
    paint_end();
}

static void say_before(void *context)
{
    say("before %s", (const char *)context);
}

static void say_after(void *context)
{
    say("after %s", (const char *)context);
}

static unsigned char *deeper(volatile unsigned depth)
{
    unsigned char room[1 << 16];
    memset(room, (int)depth, sizeof room);
    unsigned char *below = depth == 0 ? NULL : deeper(depth - 1);
    return below == NULL ? NULL : below + room[depth % sizeof room];
}

// False: leave.
static bool act(int key)
{
    hr_err err = {0};
    switch (key) {
    case 'M':
        terminal_mouse(!terminal_has_mouse());
        break;
    case 'C':
        say("copied %d", terminal_copy("for the clipboard", &err) == HR_OK);
        break;
    case 'E':
        fputs("the words of a library\n", stderr);
        break;
    case 'Z':
        terminal_suspend();
        break;
    case 'O':
        return deeper(UINT32_MAX) == NULL;
    case 'H':
        for (;;) {
            sleep(1);
        }
    default:
        return key != 'Q';
    }
    return true;
}

static bool take_events(void)
{
    for (terminal_event e = terminal_key(); e.key != INPUT_NONE || e.closed; e = terminal_key()) {
        if (e.closed) {
            return false;
        }
        if (e.pasted) {
            say("pasted %d", e.key);
        } else if (e.key == INPUT_CLICK || e.key == INPUT_WHEEL_UP || e.key == INPUT_WHEEL_DOWN) {
            say("%s %d at %d,%d",
                e.key == INPUT_CLICK      ? "click"
                : e.key == INPUT_WHEEL_UP ? "up"
                                          : "down",
                e.clicks, e.y, e.x);
        } else if (e.key != 'N' && e.key != INPUT_RESIZED) {
            say("key %d", e.key);
        }
        if (!e.pasted && !act(e.key)) {
            return false;
        }
    }
    return true;
}

int main(void)
{
    hr_err err = {0};
    theme t;
    glyphs g = glyphs_make(GLYPHS_FULL);
    char name[] = "hook";
    setlocale(LC_ALL, "");
    if (!theme_make(&t, "dark", 0, false) || terminal_open(true, &err) != HR_OK) {
        return 1;
    }
    terminal_on_suspend(say_before, say_after, name);
    int ended = 0;
    do {
        draw(&t, &g);
        struct pollfd fds[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
                                {.fd = terminal_signal_fd(), .events = POLLIN}};
        if (ppoll(fds, 2, NULL, terminal_poll_mask()) > 0 && fds[1].revents != 0) {
            ended = terminal_signal();
        }
    } while (take_events() && ended == 0);
    terminal_close();
    return ended;
}
