// SPDX-License-Identifier: Apache-2.0
// The person's side of a console.
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "headroom/child.h"

#include "app/lua/console.h"
#include "app/lua/console_wire.h"
#include "app/lua/recipe_process.h"

enum {
    HINT_MS = 2000, // after the first signal: what it waits for
    FLUSH_MS = 300,
    END_MS = 3000,
    TEXT_MAX = 256,
    BY_SIGNAL = 128,
};

struct lua_console {
    hr_child *child;
    recipe_signals signals;
    char *preset; // owned; NULL: none
    console_answer last;
    unsigned heard; // signals while a chunk runs
    int ended_by;   // TERM or HUP
    bool killed;
    int code;
};

// ---- the process ------------------------------------------------------------------------------------------------

static bool send_all(const lua_console *c, const void *data, size_t size)
{
    return send(hr_child_socket(c->child), data, size, MSG_NOSIGNAL) == (ssize_t)size;
}

static bool receive_all(const lua_console *c, void *data, size_t size)
{
    return recv(hr_child_socket(c->child), data, size, MSG_WAITALL) == (ssize_t)size;
}

static hr_status spawn(lua_console *c, hr_err *err)
{
    const console_setup setup = {.limits = script_default_limits, .line = c->last.line};
    char *words[] = {c->preset, NULL};
    HR_TRY(hr_child_start("console", words, &c->child, err));
    (void)send_all(c, &setup, sizeof setup); // or its end is seen
    return HR_OK;
}

// ---- while it works -----------------------------------------------------------------------------------------------

static void hear(lua_console *c)
{
    for (int number = recipe_signals_next(&c->signals); number != 0;
         number = recipe_signals_next(&c->signals)) {
        if (number == SIGINT && isatty(STDERR_FILENO)) { // behind the terminal's ^C
            fputc('\n', stderr);
        }
        c->ended_by = number == SIGINT ? c->ended_by : number;
        if (c->heard++ == 0) {
            hr_child_signal(c->child, SIGUSR1, number);
        } else if (number == SIGINT) {
            c->killed = true;
            hr_child_kill(c->child);
        }
    }
}

static void attend(lua_console *c)
{
    bool hinted = false;
    struct pollfd fds[] = {{.fd = hr_child_socket(c->child), .events = POLLIN},
                           {.fd = c->signals.fd, .events = POLLIN}};
    c->heard = 0;
    c->killed = false;
    do {
        const int ready = poll(fds, 2, c->heard > 0 && !hinted ? HINT_MS : -1);
        if (ready == 0) {
            hinted = true;
            fputs("headroom: the call of the engine under way is finished first; Ctrl-C again ends its "
                  "process\n",
                  stderr);
        } else if (ready > 0 && fds[1].revents != 0) {
            hear(c);
        }
    } while (fds[0].revents == 0);
}

// ---- the end of a process -----------------------------------------------------------------------------------------

static void say_lost(const console_answer *had)
{
    fputs("headroom: the console goes on in a new process; lost: knobs that were turned", stderr);
    if (had->globals > 0) {
        fprintf(stderr, ", %u variable%s", had->globals, had->globals == 1 ? "" : "s");
    }
    if (had->steps > 0) {
        fprintf(stderr, ", the weights of step %llu", (unsigned long long)had->steps);
    }
    fputc('\n', stderr);
}

static void say_death(lua_console *c)
{
    char what[TEXT_MAX];
    hr_child_describe_end(c->child, what, sizeof what);
    fprintf(stderr, "headroom: the console's process was %s\n",
            c->killed ? "ended by the second Ctrl-C" : what);
}

static lua_console_end take_another(lua_console *c)
{
    hr_err err = {0};
    const console_answer had = c->last;
    char text[2 * HR_ERR_TEXT_MAX + 64];
    hr_child_destroy(c->child);
    c->child = NULL;
    hr_status status = spawn(c, &err);
    if (status == HR_OK) {
        attend(c);
        if (receive_all(c, &c->last, sizeof c->last) && c->last.end == LUA_CONSOLE_FINE) {
            say_lost(&had);
            c->code = hr_status_exit_code(HR_LUA);
            return LUA_CONSOLE_LOST;
        }
        c->code = hr_status_exit_code(HR_STATE);
        return LUA_CONSOLE_OVER;
    }
    (void)hr_err_format(&err, text, sizeof text);
    fputs(text, stderr);
    c->code = hr_status_exit_code(status);
    return LUA_CONSOLE_OVER;
}

static lua_console_end over(lua_console *c, int code)
{
    c->code = code;
    return LUA_CONSOLE_OVER;
}

// Its socket has ended, or says that it hangs.
static lua_console_end bury(lua_console *c, const char *chunk)
{
    script_hang hang;
    int signal = 0;
    const bool hangs = receive_all(c, &hang, sizeof hang);
    if (hangs) {
        c->last.steps = hang.steps > c->last.steps ? hang.steps : c->last.steps;
        (void)recipe_report_hang(hr_child_socket(c->child), &hang, &script_default_limits, true);
    }
    if (!hr_child_wait(c->child, hangs ? FLUSH_MS : END_MS)) {
        hr_child_kill(c->child);
        (void)hr_child_wait(c->child, END_MS);
    }
    (void)hr_child_exit_code(c->child, &signal);
    if (c->ended_by != 0) {
        return over(c, BY_SIGNAL + c->ended_by);
    }
    if (signal == SIGPIPE) { // its output is no longer read: nothing to say
        return over(c, BY_SIGNAL + SIGPIPE);
    }
    if (!hangs) {
        say_death(c);
    }
    for (c->last.line++; *chunk != '\0'; chunk++) {
        c->last.line += *chunk == '\n';
    }
    return take_another(c);
}

// ---- requests -----------------------------------------------------------------------------------------------------

static bool ask(lua_console *c, const console_request *request, const char *text)
{
    return send_all(c, request, sizeof *request) &&
           (request->length == 0 || send_all(c, text, request->length));
}

// Whether an answer came: what begins with another number is the end of it.
static bool receive(lua_console *c)
{
    int32_t kind = 0;
    attend(c);
    return recv(hr_child_socket(c->child), &kind, sizeof kind, MSG_PEEK | MSG_WAITALL) ==
               (ssize_t)sizeof kind &&
           kind >= CONSOLE_RUN && receive_all(c, &c->last, sizeof c->last);
}

lua_console_end lua_console_run(lua_console *c, const char *text, bool last)
{
    const size_t length = strlen(text);
    const console_request request = {.kind = CONSOLE_RUN, .length = (uint32_t)length, .last = last};
    if (length > SCRIPT_SOURCE_BYTES_MAX) {
        fputs("headroom: a chunk of a console has at most 1 MiB\n  try: headroom script FILE.lua\n", stderr);
        c->code = hr_status_exit_code(HR_LUA);
        return LUA_CONSOLE_FAILED;
    }
    (void)fflush(stdout);
    (void)ask(c, &request, text);
    if (!receive(c)) {
        return bury(c, text);
    }
    c->code = c->last.code;
    return c->ended_by != 0 ? over(c, BY_SIGNAL + c->ended_by) : (lua_console_end)c->last.end;
}

bool lua_console_complete(lua_console *c, const char *text, size_t length, size_t cursor,
                          script_completion *out)
{
    const console_request request = {
        .kind = CONSOLE_COMPLETE, .length = (uint32_t)length, .cursor = (uint32_t)cursor};
    return length <= SCRIPT_SOURCE_BYTES_MAX && ask(c, &request, text) && receive(c) &&
           receive_all(c, out, sizeof *out);
}

// ---- life ---------------------------------------------------------------------------------------------------------

unsigned lua_console_line(const lua_console *c)
{
    return c->last.line;
}

int lua_console_exit_code(const lua_console *c)
{
    return c->code;
}

int lua_console_signals(const lua_console *c)
{
    return c->signals.fd;
}

int lua_console_next_signal(lua_console *c)
{
    const int number = recipe_signals_next(&c->signals);
    if (number != 0 && number != SIGINT) {
        c->ended_by = number;
        c->code = BY_SIGNAL + number;
    }
    return number;
}

static hr_status begin(lua_console *c, int *code, hr_err *err)
{
    HR_TRY(recipe_signals_begin(&c->signals, err));
    HR_TRY(spawn(c, err));
    if (!receive(c)) {
        return HR_FAIL(err, STATE, "the process of the console ended before it began");
    }
    *code = c->last.end == LUA_CONSOLE_FINE ? 0 : c->last.code;
    return HR_OK;
}

hr_status lua_console_start(const char *preset, lua_console **out, int *code, hr_err *err)
{
    lua_console *c = calloc(1, sizeof *c);
    if (c == NULL || (preset != NULL && (c->preset = strdup(preset)) == NULL)) {
        free(c);
        return HR_FAIL(err, NOMEM, "no host memory for a console");
    }
    c->signals.fd = -1;
    c->last.line = 1;
    const hr_status status = begin(c, code, err);
    if (status != HR_OK) {
        lua_console_stop(c);
        return status;
    }
    *out = c;
    return HR_OK;
}

void lua_console_stop(lua_console *c)
{
    if (c != NULL) {
        hr_child_destroy(c->child);
        recipe_signals_end(&c->signals);
        free(c->preset);
        free(c);
    }
}
