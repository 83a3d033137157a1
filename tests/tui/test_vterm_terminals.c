// SPDX-License-Identifier: Apache-2.0
// Terminals, locales, mouse and pastes.
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/tui/suite.h"
#include "tests/tui/vterm_workbench.h"

START_TEST(the_mouse_is_not_touched_when_it_is_not_wanted)
{
    static const char *const without[] = {FAKE_WORKBENCH, "--still", "--no-mouse", NULL};
    vt_run *v = workbench_start(without);
    ck_assert(vt_shows(v, "headroom"));
    workbench_settle(v);
    ck_assert(!vt_mode(v, WORKBENCH_MOUSE) && !vt_wrote(v, "1000h") && !vt_wrote(v, "?1006"));
    vt_close(v);
}
END_TEST

START_TEST(a_paste_never_is_a_key)
{
    int status;
    vt_run *v = workbench_start(workbench_still);
    ck_assert(vt_shows(v, "headroom"));
    workbench_wait(v);
    char *before = vt_text(v);
    workbench_type(v, "\033[200~q\ry\033OBzzz\033[201~");
    workbench_settle(v);
    ck_assert(!vt_has_ended(v));
    workbench_has_taken(v);
    workbench_type(v, "\033");
    workbench_settle(v);
    char *after = vt_text(v);
    ck_assert_msg(strcmp(before, after) == 0, "the paste did something");
    workbench_type(v, "qy"); // and after it keys are keys again
    ck_assert(vt_changed(v, &status));
    free(before);
    free(after);
    vt_close(v);
}
END_TEST

START_TEST(pasted_text_goes_into_the_line)
{
    vt_run *v = workbench_start(workbench_still);
    ck_assert(vt_shows(v, "headroom"));
    workbench_type(v, ":");
    workbench_type(v, "\033[200~set batch.size 64\033[201~");
    ck_assert(vt_shows(v, "set batch.size 64"));
    vt_close(v);
}
END_TEST

static const struct {
    const char *type, *locale;
    bool ascii;
} terminals[] = {
    {"xterm-256color", "LC_ALL=C.UTF-8", false},
    {"screen", "LC_ALL=C.UTF-8", false},
    {"screen-256color", "LC_ALL=C.UTF-8", false},
    {"tmux-256color", "LC_ALL=C.UTF-8", false},
    {"linux", "LC_ALL=C.UTF-8", true},
    {"vt100", "LC_ALL=C.UTF-8", false},
    {"xterm-256color", "LC_ALL=C", true},
    {"vt100", "LC_ALL=POSIX", true},
};

enum { TERMINAL_COUNT = sizeof terminals / sizeof *terminals };

static bool is_ascii(const char *text)
{
    while (*text == '\n' || (*text >= ' ' && *text < 0x7f)) {
        text++;
    }
    return *text == '\0';
}

START_TEST(every_terminal_shows_the_bench_and_gets_back_what_it_gave)
{
    vt_run *v[TERMINAL_COUNT];
    const char *names[TERMINAL_COUNT];
    setlocale(LC_CTYPE, "C.UTF-8");
    for (int i = 0; i < TERMINAL_COUNT; i++) {
        const char *environment[] = {terminals[i].locale, NULL};
        v[i] = vt_start(
            &(vt_setup){workbench_still, environment, terminals[i].type, WORKBENCH_ROWS, WORKBENCH_COLUMNS});
        names[i] = terminals[i].type;
    }
    workbench_wait_all(v, TERMINAL_COUNT);
    workbench_are_clean(v, names, TERMINAL_COUNT);
    for (int i = 0; i < TERMINAL_COUNT; i++) {
        int status;
        char *text = vt_text(v[i]);
        ck_assert_msg(strstr(text, "batch.size") != NULL, "%s\n%s", names[i], text);
        ck_assert_msg(is_ascii(text) == terminals[i].ascii, "%s %s\n%s", names[i], terminals[i].locale, text);
        ck_assert(strcmp(names[i], "vt100") != 0 || !vt_wrote(v[i], "?2004")); // it would be printed
        workbench_type(v[i], "qy");
        ck_assert(vt_changed(v[i], &status));
        struct termios now = vt_termios(v[i]);
        ck_assert_uint_eq(now.c_lflag, vt_before(v[i])->c_lflag);
        ck_assert(!vt_mode(v[i], WORKBENCH_SCREEN) && !vt_mode(v[i], WORKBENCH_PASTE) &&
                  !vt_mode(v[i], WORKBENCH_MOUSE));
        free(text);
        vt_close(v[i]);
    }
}
END_TEST

static void is_refused(const char *type, const char *said)
{
    int status;
    vt_setup setup = {workbench_still, NULL, type, WORKBENCH_ROWS, WORKBENCH_COLUMNS};
    vt_run *v = vt_start(&setup);
    ck_assert(vt_changed(v, &status));
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 4, "%s: status %x", type, (unsigned)status);
    ck_assert_msg(vt_shows(v, said) && vt_shows(v, "try:"), "%s", type);
    ck_assert(!vt_wrote(v, "\033"));
    vt_close(v);
}

START_TEST(terminals_that_cannot_are_told_what_to_do)
{
    is_refused("dumb", "cannot place its cursor");
    is_refused("no-such-terminal", "is in no terminal description");
}
END_TEST

START_TEST(without_colors_no_color_is_written)
{
    static const char *const environment[] = {"NO_COLOR=1", NULL};
    vt_setup setup = {workbench_lively, environment, NULL, WORKBENCH_ROWS, WORKBENCH_COLUMNS};
    vt_run *v = vt_start(&setup);
    ck_assert(vt_shows(v, "running"));
    const vt_cell *cells = vt_cells(v);
    for (int i = 0; i < WORKBENCH_ROWS * WORKBENCH_COLUMNS; i++) {
        ck_assert(cells[i].foreground == -1 && cells[i].background == -1);
    }
    vt_close(v);
}
END_TEST

SUITE_MAIN("tui vterm terminals", the_mouse_is_not_touched_when_it_is_not_wanted, a_paste_never_is_a_key,
           pasted_text_goes_into_the_line, every_terminal_shows_the_bench_and_gets_back_what_it_gave,
           terminals_that_cannot_are_told_what_to_do, without_colors_no_color_is_written)
