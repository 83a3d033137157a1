// SPDX-License-Identifier: Apache-2.0
// The terminal is given back on every way out, and taken again after every stop.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/tui/suite.h"
#include "tests/tui/vterm_workbench.h"

static void stops_and_comes_back(vt_run *v)
{
    int status;
    ck_assert(vt_changed(v, &status));
    ck_assert_msg(WIFSTOPPED(status), "status %x", (unsigned)status);
    workbench_has_given_back(v);
    vt_resize(v, 30, 100);
    vt_foreground(v);
    workbench_settle(v);
    workbench_has_taken(v);
    ck_assert(vt_mode(v, WORKBENCH_MOUSE));
    workbench_is_clean(v, "coming back");
    vt_run *fresh = workbench_start_sized(workbench_still, 30, 100);
    workbench_wait(fresh);
    workbench_show_same(v, fresh, "coming back");
    vt_close(fresh);
}

START_TEST(ctrl_z_gives_back_and_returns_to_the_new_size)
{
    vt_run *v = workbench_start(workbench_still);
    ck_assert(vt_shows(v, "headroom"));
    workbench_wait(v);
    workbench_type(v, "\032");
    stops_and_comes_back(v);
    vt_resize(v, WORKBENCH_ROWS, WORKBENCH_COLUMNS);
    workbench_settle(v);
    vt_signal(v, SIGTSTP); // as kill -TSTP does
    stops_and_comes_back(v);
    vt_close(v);
}
END_TEST

// Nothing can be given back before this stop; after it the terminal may be as another program left it.
START_TEST(a_stop_from_outside_is_repaired)
{
    int status;
    vt_run *v = workbench_start(workbench_still);
    ck_assert(vt_shows(v, "headroom"));
    workbench_wait(v);
    vt_signal(v, SIGSTOP);
    ck_assert(vt_changed(v, &status) && WIFSTOPPED(status));
    struct termios cooked = *vt_before(v);
    vt_set_termios(v, &cooked);
    vt_foreground(v);
    workbench_settle(v);
    workbench_has_taken(v);
    ck_assert_uint_eq(vt_termios(v).c_lflag & (ICANON | ECHO), 0);
    workbench_is_clean(v, "the stop");
    vt_close(v);
}
END_TEST

static void put_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

// The editor has the terminal as a shell would; what it saves is read again, and asked about first.
START_TEST(the_preset_goes_to_the_editor_and_comes_back)
{
    char folder[] = "/tmp/headroom-editor-XXXXXX", path[64], script[64], editor[96];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/mine.yaml", folder);
    snprintf(script, sizeof script, "%s/edit", folder);
    snprintf(editor, sizeof editor, "sh %s 7", script);
    put_file(path, "extends: demo\ndevice: {kind: plan}\nbatch: {size: 48}\n");
    put_file(script,
             "stty -a | grep -q ' icanon' || exit 3\n! grep -q 48 \"$2\" || sed -i s/48/24/ \"$2\"\n");
    setenv("VISUAL", editor, 1);
    const char *const command[] = {HEADROOM_PROGRAM, path, NULL};
    vt_run *v = workbench_start(command);
    ck_assert(vt_shows(v, "◂ 48 ▸"));
    ck_assert(vt_shows(v, "running")); // there is something to lose
    workbench_type(v, "E");
    ck_assert(vt_shows(v, "any other key stays"));
    workbench_type(v, "y");
    ck_assert(vt_shows(v, "◂ 24 ▸"));
    workbench_has_taken(v);
    workbench_type(v, "E"); // nothing to change any more
    ck_assert(vt_shows(v, "is as it was"));
    vt_close(v);
    unsetenv("VISUAL");
    unlink(path);
    unlink(script);
    rmdir(folder);
}
END_TEST

static const struct {
    int number;
    bool by_signal; // otherwise it leaves in order
} endings[] = {{SIGSEGV, true}, {SIGABRT, true},  {SIGBUS, true}, {SIGFPE, true},
               {SIGILL, true},  {SIGTERM, false}, {SIGHUP, false}};

START_TEST(every_end_gives_the_terminal_back)
{
    static const char *const *const programs[] = {workbench_lively, workbench_real};
    for (size_t p = 0; p < 2; p++) {
        for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
            int status;
            vt_run *v = workbench_start(programs[p]);
            ck_assert(vt_shows(v, "batch.size"));
            vt_signal(v, endings[i].number);
            ck_assert_msg(vt_changed(v, &status), "signal %d did not end it", endings[i].number);
            ck_assert_msg(endings[i].by_signal == (WIFSIGNALED(status) != 0), "signal %d: status %x",
                          endings[i].number, (unsigned)status);
            ck_assert_int_eq(endings[i].by_signal ? WTERMSIG(status) : WEXITSTATUS(status) - 128,
                             endings[i].number);
            workbench_has_given_back(v);
            ck_assert(!endings[i].by_signal || vt_shows(v, "it crashed; the terminal is restored"));
            vt_close(v);
        }
    }
}
END_TEST

START_TEST(who_loses_the_terminal_ends)
{
    static const char *const *const programs[] = {workbench_lively, workbench_real};
    for (size_t p = 0; p < 2; p++) {
        vt_run *v = workbench_start(programs[p]);
        pid_t pid = vt_pid(v);
        ck_assert(vt_shows(v, "batch.size"));
        vt_close(v); // waits, and kills what does not end
        ck_assert_int_ne(kill(pid, 0), 0);
    }
}
END_TEST

static void tell_to_end(vt_run *v, int number)
{
    if (number == 0) {
        workbench_type(v, "qy"); // y where it asks about what was trained
    } else {
        vt_signal(v, number);
    }
}

enum { MANY = 6 };

static void expect_ends(vt_run *const v[MANY], int number)
{
    for (int k = 0; k < MANY; k++) {
        int status;
        ck_assert(vt_changed(v[k], &status));
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == (number == 0 ? 0 : 128 + number),
                      "workbench %d, told by %d: status %x", k, number, (unsigned)status);
        workbench_has_given_back(v[k]);
        vt_close(v[k]);
    }
}

static void start_and_end_many(int number)
{
    static const char *const training[] = {HEADROOM_PROGRAM, "demo", "-s", "batch.size=16", NULL};
    char state[] = "/tmp/headroom-many-XXXXXX", clear[64];
    vt_run *v[MANY];
    ck_assert_ptr_nonnull(mkdtemp(state));
    ck_assert_int_eq(setenv("XDG_STATE_HOME", state, 1), 0); // there is nothing to go on with
    for (int k = 0; k < MANY; k++) {
        v[k] = workbench_start(training);
    }
    for (int k = 0; k < MANY; k++) {
        ck_assert(vt_shows(v[k], "running"));
    }
    for (int k = 0; k < MANY; k++) {
        tell_to_end(v[k], number);
    }
    expect_ends(v, number);
    unsetenv("XDG_STATE_HOME");
    snprintf(clear, sizeof clear, "rm -r %s", state);
    ck_assert_int_eq(system(clear), 0);
}

// On few cores many end slowly: each does as it would alone.
START_TEST(many_at_once_each_end_as_one_does)
{
    start_and_end_many(0);
    start_and_end_many(SIGTERM);
    start_and_end_many(SIGHUP);
}
END_TEST

// Without a look at what it writes.
static bool ends_unread_for(vt_run *v, int seconds)
{
    enum { LOOKS = 10, LOOK_NS = 100000000 };
    for (int k = 0; k < seconds * LOOKS && kill(vt_pid(v), 0) == 0; k++) {
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
    return kill(vt_pid(v), 0) != 0;
}

static bool ends_unread(vt_run *v)
{
    return ends_unread_for(v, 15);
}

START_TEST(a_stopped_terminal_holds_nobody_up)
{
    static const int gentle[] = {SIGTERM, SIGHUP};
    for (size_t k = 0; k < sizeof gentle / sizeof *gentle; k++) {
        vt_run *v = workbench_start(workbench_real);
        ck_assert(vt_shows(v, "batch.size"));
        workbench_type(v, "\023");                                 // ^S
        nanosleep(&(struct timespec){.tv_nsec = 600000000}, NULL); // a frame would have come
        vt_signal(v, gentle[k]);
        ck_assert_msg(ends_unread(v), "signal %d", gentle[k]);
        vt_close(v);
    }
}
END_TEST

START_TEST(a_stopped_terminal_is_drawn_anew_when_it_goes_on)
{
    vt_run *v = workbench_start(workbench_still);
    ck_assert(vt_shows(v, "headroom"));
    workbench_wait(v);
    workbench_type(v, "\023?");
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    workbench_type(v, "\021"); // ^Q
    ck_assert(vt_shows(v, "PgDn scroll"));
    workbench_is_clean(v, "a stopped terminal");
    vt_close(v);
}
END_TEST

// A frame larger than what lies between the two ends: the write is stuck in its middle.
START_TEST(a_terminal_that_nobody_reads_holds_nobody_up)
{
    vt_run *v = workbench_start_sized(workbench_real, 250, 900);
    ck_assert_msg(!ends_unread_for(v, 1), "it ended before it was told");
    vt_signal(v, SIGTERM);
    ck_assert(ends_unread(v));
    vt_close(v);
}
END_TEST

SUITE_MAIN("tui vterm ends", many_at_once_each_end_as_one_does, the_preset_goes_to_the_editor_and_comes_back,
           a_stopped_terminal_holds_nobody_up, a_stopped_terminal_is_drawn_anew_when_it_goes_on,
           a_terminal_that_nobody_reads_holds_nobody_up, ctrl_z_gives_back_and_returns_to_the_new_size,
           a_stop_from_outside_is_repaired, every_end_gives_the_terminal_back, who_loses_the_terminal_ends)
