// SPDX-License-Identifier: Apache-2.0
// What the terminal says to a program, event by event, and what a program says to it.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/tui/suite.h"
#include "tests/tui/vterm_workbench.h"

static const char *const probe[] = {VTERM_PROBE, NULL};

static vt_run *start_probe(const char *const *environment, const char *type)
{
    vt_setup setup = {probe, environment, type, WORKBENCH_ROWS, WORKBENCH_COLUMNS};
    vt_run *v = vt_start(&setup);
    ck_assert(vt_shows(v, "probe 24 x 80"));
    return v;
}

static void says(vt_run *v, const char *typed, const char *shown)
{
    workbench_type(v, typed);
    if (!vt_shows(v, shown)) {
        char *text = vt_text(v);
        ck_abort_msg("'%s' did not say '%s':\n%s", typed, shown, text);
    }
}

static void ends(vt_run *v, bool by_signal, int code)
{
    int status;
    ck_assert(vt_changed(v, &status));
    ck_assert_msg(by_signal ? WIFSIGNALED(status) && WTERMSIG(status) == code
                            : WIFEXITED(status) && WEXITSTATUS(status) == code,
                  "status %x", (unsigned)status);
    workbench_has_given_back(v);
}

// ---- keys -----------------------------------------------------------------------------------------------------

START_TEST(keys_come_in_every_form_that_terminals_send)
{
    static const struct {
        const char *typed, *shown;
    } forms[] = {
        {"a", "key 97"},           {"\xc3\xa9", "key 233"},    {"\r", "key 10"},
        {"\033OM", "key 10"},      {"\033[A", "key 2097153"},  {"\033OA", "key 2097153"},
        {"\033[B", "key 2097154"}, {"\033[5~", "key 2097159"}, {"\033[1~", "key 2097157"},
        {"\033[Z", "key 2097161"}, {"\033[3~", "key 2097162"}, {"\177", "key 127"},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        vt_run *v = start_probe(NULL, NULL);
        says(v, forms[i].typed, forms[i].shown);
        vt_close(v);
    }
}
END_TEST

START_TEST(escape_alone_is_a_key_of_its_own)
{
    vt_run *v = start_probe(NULL, NULL);
    says(v, "\033", "key 27");
    says(v, "b", "key 98");
    vt_close(v);
}
END_TEST

START_TEST(pasted_characters_are_marked_and_nothing_else_comes_of_them)
{
    vt_run *v = start_probe(NULL, NULL);
    says(v, "\033[200~Q\r\tx\033OA\033[31m\302\265\033[201~y", "key 121");
    char *text = vt_text(v);
    // Q, line end, tab as a blank, x; of the sequences only what is no control
    ck_assert_msg(strstr(text, "pasted 81\npasted 10\npasted 32\npasted 120\n") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "pasted 181\nkey 121\n") != NULL, "%s", text);
    ck_assert(strstr(text, "pasted 27") == NULL && strstr(text, "key 2097153") == NULL);
    free(text);
    vt_close(v);
}
END_TEST

START_TEST(a_paste_without_an_end_is_over_after_a_second_of_silence)
{
    vt_run *v = start_probe(NULL, NULL);
    says(v, "\033[200~p", "pasted 112");
    ck_assert(vt_quiet(&v, 1, 1100));
    says(v, "k", "key 107");
    vt_close(v);
}
END_TEST

// ---- mouse ----------------------------------------------------------------------------------------------------

START_TEST(clicks_double_clicks_and_the_wheel_say_where)
{
    vt_run *v = start_probe(NULL, NULL);
    says(v, "\033[<0;10;5M\033[<0;10;5m", "click 1 at 4,9");
    says(v, "\033[<0;10;5M\033[<0;10;5m", "click 2 at 4,9");
    says(v, "\033[<0;11;5M\033[<0;11;5m", "click 1 at 4,10"); // another cell
    says(v, "\033[<64;3;2M", "up 0 at 1,2");
    says(v, "\033[<65;3;2M", "down 0 at 1,2");
    says(v, "\033[<2;3;2M\033[<2;3;2mz", "key 122"); // the right button means nothing
    char *text = vt_text(v);
    ck_assert_msg(strstr(text, "down 0 at 1,2\nkey 122\n") != NULL, "%s", text);
    free(text);
    vt_close(v);
}
END_TEST

START_TEST(the_mouse_goes_off_and_on_while_it_runs)
{
    vt_run *v = start_probe(NULL, NULL);
    ck_assert(vt_mode(v, WORKBENCH_MOUSE) && vt_mode(v, 1006));
    says(v, "Mo", "key 111");
    ck_assert(!vt_mode(v, WORKBENCH_MOUSE) && !vt_mode(v, 1006));
    says(v, "Mp", "key 112");
    ck_assert(vt_mode(v, WORKBENCH_MOUSE) && vt_mode(v, 1006));
    workbench_type(v, "Q");
    ends(v, false, 0);
    vt_close(v);
}
END_TEST

// ---- writing --------------------------------------------------------------------------------------------------

START_TEST(the_clipboard_is_written_between_frames)
{
    vt_run *v = start_probe(NULL, NULL);
    says(v, "C", "copied 1");
    ck_assert(vt_wrote(v, "\033]52;c;Zm9yIHRoZSBjbGlwYm9hcmQ=\a"));
    vt_close(v);
}
END_TEST

START_TEST(a_frame_like_the_one_before_writes_nothing)
{
    vt_run *v = start_probe(NULL, NULL);
    says(v, "a", "key 97");
    workbench_settle(v);
    size_t written = vt_written(v);
    workbench_type(v, "NNN");
    workbench_settle(v);
    ck_assert_uint_eq(vt_written(v), written);
    vt_close(v);
}
END_TEST

// A terminal that is known to hold its output: the description is xterm's under its name.
START_TEST(frames_are_held_together_where_the_terminal_can)
{
    char folder[] = "/tmp/headroom-terminfo-XXXXXX", command[256], variable[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(command, sizeof command,
             "infocmp xterm-256color | sed 's/^xterm-256color|/foot|/' > %s/foot.ti && tic -o %s %s/foot.ti",
             folder, folder, folder);
    ck_assert_int_eq(system(command), 0);
    snprintf(variable, sizeof variable, "TERMINFO=%s", folder);
    const char *environment[] = {variable, NULL};
    vt_run *v = start_probe(environment, "foot");
    says(v, "a", "key 97");
    workbench_settle(v); // the frame is seen before the mark behind it
    ck_assert(vt_wrote(v, "\033[?2026h") && vt_wrote(v, "\033[?2026l") && !vt_mode(v, 2026));
    workbench_settle(v);
    size_t written = vt_written(v);
    workbench_type(v, "N");
    workbench_settle(v);
    ck_assert_uint_eq(vt_written(v), written); // not even the marks
    vt_close(v);
    v = start_probe(NULL, NULL);
    ck_assert(!vt_wrote(v, "2026"));
    vt_close(v);
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(an_exported_size_does_not_bind)
{
    static const char *const environment[] = {"COLUMNS=33", "LINES=11", NULL};
    vt_run *v = start_probe(environment, NULL);
    vt_resize(v, 40, 100);
    ck_assert(vt_shows(v, "probe 40 x 100"));
    vt_close(v);
}
END_TEST

// ---- ends -----------------------------------------------------------------------------------------------------

START_TEST(what_went_to_stderr_is_shown_at_the_end_and_after_a_crash)
{
    for (int crash = 0; crash < 2; crash++) {
        vt_run *v = start_probe(NULL, NULL);
        says(v, "Ek", "key 107");
        char *text = vt_text(v);
        ck_assert(strstr(text, "library") == NULL);
        if (crash) {
            vt_signal(v, SIGSEGV);
        } else {
            workbench_type(v, "Q");
        }
        ends(v, crash, crash ? SIGSEGV : 0);
        ck_assert(vt_shows(v, "the words of a library"));
        free(text);
        vt_close(v);
    }
}
END_TEST

START_TEST(a_stack_overflow_is_told_of)
{
    vt_run *v = start_probe(NULL, NULL);
    workbench_type(v, "O");
    ends(v, true, SIGSEGV);
    ck_assert(vt_shows(v, "it crashed; the terminal is restored"));
    vt_close(v);
}
END_TEST

START_TEST(who_hangs_is_ended_by_the_second_signal)
{
    static const int numbers[] = {SIGTERM, SIGHUP};
    for (int i = 0; i < 2; i++) {
        vt_run *v = start_probe(NULL, NULL);
        says(v, "k", "key 107");
        workbench_type(v, "H");
        workbench_settle(v);
        vt_signal(v, numbers[i]);
        vt_signal(v, numbers[i]); // at once: the same line that drops
        workbench_settle(v);
        ck_assert(!vt_has_ended(v));
        nanosleep(&(struct timespec){.tv_nsec = 600000000}, NULL);
        vt_signal(v, numbers[i]);
        ends(v, true, numbers[i]);
        vt_close(v);
    }
}
END_TEST

START_TEST(stopping_tells_who_has_to_stop_too)
{
    int status;
    vt_run *v = start_probe(NULL, NULL);
    workbench_type(v, "Z");
    ck_assert(vt_changed(v, &status) && WIFSTOPPED(status));
    workbench_has_given_back(v);
    vt_foreground(v);
    ck_assert(vt_shows(v, "before hook\nafter hook"));
    workbench_has_taken(v);
    vt_close(v);
}
END_TEST

START_TEST(a_terminal_that_is_gone_ends_it)
{
    vt_run *v = start_probe(NULL, NULL);
    pid_t pid = vt_pid(v);
    vt_close(v);
    ck_assert_int_ne(kill(pid, 0), 0);
}
END_TEST

SUITE_MAIN("tui vterm events", keys_come_in_every_form_that_terminals_send, escape_alone_is_a_key_of_its_own,
           pasted_characters_are_marked_and_nothing_else_comes_of_them,
           a_paste_without_an_end_is_over_after_a_second_of_silence,
           clicks_double_clicks_and_the_wheel_say_where, the_mouse_goes_off_and_on_while_it_runs,
           the_clipboard_is_written_between_frames, a_frame_like_the_one_before_writes_nothing,
           frames_are_held_together_where_the_terminal_can, an_exported_size_does_not_bind,
           what_went_to_stderr_is_shown_at_the_end_and_after_a_crash, a_stack_overflow_is_told_of,
           who_hangs_is_ended_by_the_second_signal, stopping_tells_who_has_to_stop_too,
           a_terminal_that_is_gone_ends_it)
