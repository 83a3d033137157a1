// SPDX-License-Identifier: Apache-2.0
#include "app/console/lines.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

line_end lines_wait(lua_console *console)
{
    struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                           {.fd = lua_console_signals(console), .events = POLLIN}};
    for (;;) {
        const int ready = poll(fds, 2, -1);
        if (ready < 0 && errno != EINTR) {
            return LINE_OVER;
        }
        if (ready > 0 && fds[1].revents != 0) {
            const int number = lua_console_next_signal(console);
            if (number != 0) {
                return number == SIGINT ? LINE_BREAK : LINE_SIGNAL;
            }
        }
        if (ready > 0 && fds[0].revents != 0) {
            return LINE_READ;
        }
    }
}

static line_end fill(line_reader *r)
{
    const line_end end = lines_wait(r->console);
    if (end != LINE_READ) {
        return end;
    }
    const ssize_t got = read(STDIN_FILENO, r->buffer, sizeof r->buffer);
    r->begin = 0;
    r->end = got > 0 ? (size_t)got : 0;
    r->ended = got <= 0;
    return LINE_READ;
}

static bool append(char **line, size_t *length, const char *part, size_t bytes)
{
    char *longer = realloc(*line, *length + bytes + 1);
    if (longer == NULL) {
        return false;
    }
    memcpy(longer + *length, part, bytes);
    longer[*length + bytes] = '\0';
    *line = longer;
    *length += bytes;
    return true;
}

static line_end give_up(char **line, line_end why)
{
    free(*line);
    *line = NULL;
    return why;
}

line_end lines_read(line_reader *r, char **line)
{
    size_t length = 0;
    *line = NULL;
    while (!r->ended) {
        const char *at = r->buffer + r->begin;
        const char *newline = memchr(at, '\n', r->end - r->begin);
        const size_t bytes = newline == NULL ? r->end - r->begin : (size_t)(newline - at);
        if (!append(line, &length, at, bytes)) {
            return give_up(line, LINE_OVER);
        }
        r->begin += bytes + (newline != NULL);
        if (newline != NULL) {
            return LINE_READ;
        }
        const line_end end = fill(r);
        if (end != LINE_READ) {
            return give_up(line, end);
        }
    }
    return length > 0 ? LINE_READ : give_up(line, LINE_OVER);
}
