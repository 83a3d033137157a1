// SPDX-License-Identifier: Apache-2.0
#include "app/console/edit.h"

#include <errno.h>
#include <histedit.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "headroom/files.h"

#include "app/console/offers.h"

enum { HISTORY_LINES = 1000 };

struct line_editor {
    lua_console *console; // borrowed
    EditLine *el;
    History *history;            // what the keys go through, and
    History *own;                // those of its lines that were typed here
    char path[PATH_MAX];         // of the history; "": none
    const char *prompt, *before; // of the line that is read
    line_end ended;              // why there are no more characters
    script_completion found;
};

static line_editor *editor_of(EditLine *el)
{
    line_editor *e = NULL;
    (void)el_get(el, EL_CLIENTDATA, &e);
    return e;
}

static char *say_prompt(EditLine *el)
{
    return (char *)(uintptr_t)editor_of(el)->prompt;
}

// ---- characters -----------------------------------------------------------------------------------------------------

// A byte at a time: what a terminal sends in one piece may be more than one line.
static int next_character(EditLine *el, wchar_t *out)
{
    line_editor *e = editor_of(el);
    mbstate_t state = {0};
    for (;;) {
        char byte = '\0';
        e->ended = lines_wait(e->console);
        if (e->ended != LINE_READ) {
            errno = EINTR;
            return -1;
        }
        if (read(STDIN_FILENO, &byte, 1) != 1) {
            e->ended = LINE_OVER;
            return 0;
        }
        const size_t used = mbrtowc(out, &byte, 1, &state);
        if (used == (size_t)-1) {
            *out = L'?';
            return 1;
        }
        if (used != (size_t)-2) {
            return 1;
        }
    }
}

// ---- completion -----------------------------------------------------------------------------------------------------

static unsigned columns_of_terminal(void)
{
    struct winsize size = {0};
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// The chunk with the line as it stands; the caller's.
static char *chunk_of(const line_editor *e, const LineInfo *line, size_t *length, size_t *cursor)
{
    const size_t before = strlen(e->before), typed = (size_t)(line->lastchar - line->buffer);
    char *text = malloc(before + typed + 1);
    if (text != NULL) {
        memcpy(text, e->before, before);
        memcpy(text + before, line->buffer, typed);
        text[before + typed] = '\0';
        *length = before + typed;
        *cursor = before + (size_t)(line->cursor - line->buffer);
    }
    return text;
}

// What all candidates have beyond what stands there; whether it was more than nothing.
static bool insert_common(line_editor *e, size_t typed)
{
    const script_completion *c = &e->found;
    char text[SCRIPT_HINT_MAX];
    const size_t common = script_common_bytes(c);
    if (common < typed || common - typed + SCRIPT_AFTER_MAX >= sizeof text) {
        return false;
    }
    (void)snprintf(text, sizeof text, "%.*s%s", (int)(common - typed), script_candidate(c, 0) + typed,
                   c->count == 1 && !c->more ? c->items[0].after : "");
    return text[0] != '\0' && el_insertstr(e->el, text) == 0;
}

static unsigned char complete(EditLine *el, int key)
{
    line_editor *e = editor_of(el);
    size_t length = 0, cursor = 0;
    char *text = chunk_of(e, el_line(el), &length, &cursor);
    (void)key;
    const bool found = text != NULL && lua_console_complete(e->console, text, length, cursor, &e->found);
    free(text);
    if (!found || (e->found.count == 0 && e->found.hint[0] == '\0')) {
        return CC_REFRESH_BEEP;
    }
    if (e->found.count > 0 && insert_common(e, cursor - e->found.start)) {
        return CC_REFRESH;
    }
    putchar('\n');
    offers_print(&e->found, columns_of_terminal(), stdout);
    (void)fflush(stdout);
    return CC_REDISPLAY;
}

// ---- history ----------------------------------------------------------------------------------------------------------

static History *make_history(void)
{
    HistEvent event;
    History *h = history_init();
    if (h != NULL) {
        (void)history(h, &event, H_SETSIZE, HISTORY_LINES);
        (void)history(h, &event, H_SETUNIQUE, 1);
    }
    return h;
}

static void remember(line_editor *e, const char *line)
{
    HistEvent event;
    if (line[strspn(line, " \t\n")] != '\0') {
        (void)history(e->history, &event, H_ENTER, line);
        (void)history(e->own, &event, H_ENTER, line);
    }
}

// All of a file from its beginning. The caller's to free; NULL: it cannot be read, or host memory is short.
static char *read_whole(FILE *from, size_t *length)
{
    const long end = fseek(from, 0, SEEK_END) == 0 ? ftell(from) : -1;
    char *text = end > 0 ? malloc((size_t)end) : NULL;
    rewind(from);
    if (text != NULL && fread(text, 1, (size_t)end, from) != (size_t)end) {
        free(text);
        text = NULL;
    }
    *length = text == NULL ? 0 : (size_t)end;
    return text;
}

// What is remembered with the lines of another console that ended meanwhile, and ours behind them. As read_whole.
static char *history_text(const line_editor *e, size_t *length)
{
    HistEvent line, event;
    char *text = NULL;
    History *all = make_history();
    FILE *to = all == NULL ? NULL : tmpfile(); // libedit asks it for its number
    if (to != NULL) {
        (void)history(all, &event, H_LOAD, e->path); // one of another program is not read
        for (int more = history(e->own, &line, H_LAST); more >= 0; more = history(e->own, &line, H_PREV)) {
            (void)history(all, &event, H_ENTER, line.str);
        }
        text = history(all, &event, H_SAVE_FP, to) < 0 ? NULL : read_whole(to, length);
        (void)fclose(to);
    }
    if (all != NULL) {
        history_end(all);
    }
    return text;
}

// What cannot be written is not remembered.
static void write_history(const line_editor *e)
{
    HistEvent event;
    size_t length = 0;
    if (e->path[0] == '\0' || history(e->own, &event, H_FIRST) < 0) {
        return;
    }
    char *text = history_text(e, &length);
    if (text != NULL && hr_file_make_folders(e->path)) {
        const hr_status status = hr_file_write(e->path, text, length, HR_FILE_PRIVATE, NULL);
        (void)status;
    }
    free(text);
}

static bool open_history(line_editor *e, const char *path)
{
    HistEvent event;
    e->history = make_history();
    e->own = make_history();
    if (e->history == NULL || e->own == NULL) {
        return false;
    }
    (void)snprintf(e->path, sizeof e->path, "%s", path);
    if (path[0] != '\0') {
        (void)history(e->history, &event, H_LOAD, path);
    }
    return true;
}

// ---- life -------------------------------------------------------------------------------------------------------------

static bool can_edit(void)
{
    const char *term = getenv("TERM");
    return term != NULL && term[0] != '\0' && strcmp(term, "dumb") != 0;
}

static void set_up(line_editor *e)
{
    (void)el_set(e->el, EL_CLIENTDATA, e);
    (void)el_set(e->el, EL_PROMPT, say_prompt);
    (void)el_set(e->el, EL_EDITOR, "emacs");
    (void)el_set(e->el, EL_SIGNAL, 1);
    (void)el_set(e->el, EL_HIST, history, e->history);
    (void)el_set(e->el, EL_GETCFN, next_character);
    (void)el_wset(e->el, EL_ADDFN, L"complete", L"completes the word before the cursor",
                  complete); // keeps both texts
    (void)el_set(e->el, EL_BIND, "^I", "complete", NULL);
    (void)el_set(e->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
    (void)el_source(e->el, NULL); // ~/.editrc, a person's own keys
}

line_editor *edit_open(lua_console *console, const char *path)
{
    line_editor *e = can_edit() ? calloc(1, sizeof *e) : NULL;
    if (e == NULL) {
        return NULL;
    }
    e->console = console;
    e->prompt = e->before = "";
    e->el = open_history(e, path) ? el_init("headroom", stdin, stdout, stderr) : NULL;
    if (e->el == NULL) {
        e->path[0] = '\0';
        edit_close(e);
        return NULL;
    }
    set_up(e);
    return e;
}

void edit_close(line_editor *e)
{
    if (e == NULL) {
        return;
    }
    if (e->el != NULL) {
        write_history(e);
        el_end(e->el);
    }
    if (e->history != NULL) {
        history_end(e->history);
    }
    if (e->own != NULL) {
        history_end(e->own);
    }
    free(e);
}

line_end edit_read(line_editor *e, const char *prompt, const char *before, char **line)
{
    int count = 0;
    e->prompt = prompt;
    e->before = before;
    e->ended = LINE_READ;
    *line = NULL;
    const char *read = el_gets(e->el, &count);
    if (e->ended == LINE_BREAK || e->ended == LINE_SIGNAL) {
        el_reset(e->el);
        fputs(e->ended == LINE_BREAK ? "^C\n" : "\n", stdout);
        return e->ended;
    }
    if (read == NULL || count <= 0) {
        putchar('\n');
        return LINE_OVER;
    }
    remember(e, read);
    *line = strndup(read, strcspn(read, "\n"));
    return *line == NULL ? LINE_OVER : LINE_READ;
}
