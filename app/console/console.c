// SPDX-License-Identifier: Apache-2.0
#include "app/console/console.h"

#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/console/edit.h"
#include "app/console/lines.h"
#include "app/lua/console.h"

enum { PROMPT_MAX = 24 };

typedef struct talk {
    lua_console *console;
    line_editor *editor; // NULL: lines come as they are
    line_reader reader;
    bool at_terminal; // a person types, and
    bool prompts;     // sees what is printed
    char *chunk;      // lines that are no whole chunk yet, with their ends; "" or owned
    bool over;
    int code;
} talk;

// ---- lines ----------------------------------------------------------------------------------------------------------

static line_end read_line(talk *t, char **line)
{
    char prompt[PROMPT_MAX];
    unsigned number = lua_console_line(t->console);
    for (const char *at = t->chunk; at != NULL && *at != '\0'; at++) {
        number += *at == '\n';
    }
    const bool goes_on = t->chunk != NULL;
    (void)snprintf(prompt, sizeof prompt, "%u%s ", number, goes_on ? "|" : ">");
    if (t->editor != NULL) {
        return edit_read(t->editor, prompt, goes_on ? t->chunk : "", line);
    }
    if (t->prompts) {
        fputs(prompt, stdout);
        (void)fflush(stdout);
    }
    const line_end end = lines_read(&t->reader, line);
    if (t->prompts && end != LINE_READ) {
        putchar('\n');
    }
    return end;
}

static void drop_chunk(talk *t)
{
    free(t->chunk);
    t->chunk = NULL;
}

// The chunk with one line more; false: host memory is short.
static bool add_line(talk *t, const char *line)
{
    const size_t before = t->chunk == NULL ? 0 : strlen(t->chunk), bytes = strlen(line);
    char *longer = realloc(t->chunk, before + bytes + 2);
    if (longer == NULL) {
        return false;
    }
    memcpy(longer + before, line, bytes);
    memcpy(longer + before + bytes, "\n", 2);
    t->chunk = longer;
    return true;
}

// ---- chunks ---------------------------------------------------------------------------------------------------------

static void end_with(talk *t, int code)
{
    t->over = true;
    t->code = code;
}

// The end of its last line is not sent: the console counts lines by those between two.
static void run_chunk(talk *t, bool last)
{
    const size_t length = strlen(t->chunk);
    t->chunk[length - 1] = '\0';
    const lua_console_end end = lua_console_run(t->console, t->chunk, last);
    t->chunk[length - 1] = '\n';
    if (end == LUA_CONSOLE_MORE) {
        return;
    }
    drop_chunk(t);
    if (end == LUA_CONSOLE_OVER || (end != LUA_CONSOLE_FINE && !t->at_terminal)) {
        end_with(t, lua_console_exit_code(t->console));
    }
}

static void take_line(talk *t)
{
    char *line = NULL;
    const line_end end = read_line(t, &line);
    if (end == LINE_READ) {
        if (add_line(t, line)) {
            run_chunk(t, false);
        } else {
            end_with(t, hr_status_exit_code(HR_NOMEM));
        }
    } else if (end == LINE_BREAK && t->at_terminal) {
        drop_chunk(t);
    } else if (end == LINE_OVER) {
        if (t->chunk != NULL && !t->at_terminal) {
            run_chunk(t, true);
        }
        t->over = true;
    } else {
        end_with(t, end == LINE_BREAK ? 130 : lua_console_exit_code(t->console));
    }
    free(line);
}

// ---- all of it ------------------------------------------------------------------------------------------------------

static int say(const hr_err *err)
{
    char text[2 * HR_ERR_TEXT_MAX + 64];
    (void)hr_err_format(err, text, sizeof text);
    fputs(text, stderr);
    return hr_status_exit_code(err->status);
}

// A line that is typed is UTF-8 as Lua has it, also where the locale is C.
static void choose_locale(void)
{
    if (setlocale(LC_CTYPE, "") == NULL || MB_CUR_MAX == 1) {
        (void)setlocale(LC_CTYPE, "C.UTF-8");
    }
}

// A socket of ours would take its number.
static bool open_stdin(void)
{
    return fcntl(STDIN_FILENO, F_GETFD) >= 0 || open("/dev/null", O_RDONLY) == STDIN_FILENO;
}

int console_main(const char *preset, const char *history)
{
    talk t = {.at_terminal = isatty(STDIN_FILENO) != 0};
    hr_err err = {0};
    choose_locale();
    (void)fflush(stdout);
    if (!open_stdin()) {
        (void)HR_FAIL(&err, READ, "stdin is closed, and /dev/null does not stand in for it");
        return say(&err);
    }
    if (lua_console_start(preset, &t.console, &t.code, &err) != HR_OK) {
        return say(&err);
    }
    t.reader.console = t.console;
    t.over = t.code != 0;
    t.prompts = t.at_terminal && isatty(STDOUT_FILENO) != 0;
    if (t.prompts && !t.over) {
        t.editor = edit_open(t.console, history);
        puts("Lua in its sandbox: Tab completes, hr. and Tab lists, Ctrl-C stops, Ctrl-D ends");
    }
    while (!t.over) {
        take_line(&t);
    }
    edit_close(t.editor);
    drop_chunk(&t);
    lua_console_stop(t.console);
    return t.code;
}
