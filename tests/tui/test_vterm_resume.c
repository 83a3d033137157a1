// SPDX-License-Identifier: Apache-2.0
// A session that ended without `q` is offered again: the program itself, in a terminal, with a state folder of its own.
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tui/suite.h"
#include "tests/tui/vterm_workbench.h"

static const char *const small[] = {HEADROOM_PROGRAM,
                                    "demo",
                                    "-s",
                                    "device.kind=reference",
                                    "-s",
                                    "batch.size=2",
                                    "-s",
                                    "train.steps=6",
                                    "-s",
                                    "pipeline.shuffle=0",
                                    NULL};
static char folder[64];

static vt_run *start(const char *const *command)
{
    static char state[96], home[96];
    snprintf(state, sizeof state, "XDG_STATE_HOME=%s", folder);
    snprintf(home, sizeof home, "HOME=%s", folder);
    const char *const environment[] = {state, home, NULL};
    const vt_setup setup = {
        .command = command, .environment = environment, .rows = WORKBENCH_ROWS, .columns = WORKBENCH_COLUMNS};
    return vt_start(&setup);
}

// Files of that ending, which stand for sessions.
static int count_saves(const char *ending)
{
    char path[96];
    int count = 0;
    snprintf(path, sizeof path, "%s/headroom", folder);
    DIR *list = opendir(path);
    for (struct dirent *e = list == NULL ? NULL : readdir(list); e != NULL; e = readdir(list)) {
        const size_t length = strlen(e->d_name), tail = strlen(ending);
        count += strncmp(e->d_name, "autosave-", 9) == 0 && length > tail &&
                 strcmp(e->d_name + length - tail, ending) == 0;
    }
    if (list != NULL) {
        closedir(list);
    }
    return count;
}

static void begin(void)
{
    strcpy(folder, "/tmp/headroom-resume-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void end(void)
{
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static void ends_with(vt_run *v, int exit_code)
{
    int status;
    ck_assert(vt_changed(v, &status));
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == exit_code, "status %x", (unsigned)status);
    vt_close(v);
}

// Six steps are done, and it is at rest.
static vt_run *trained(void)
{
    vt_run *v = start(small);
    ck_assert(vt_shows(v, "batch.size"));
    workbench_type(v, "\033"); // the card that a first start shows
    ck_assert_msg(vt_shows(v, "idle 6/6"), "%s", vt_text(v));
    return v;
}

START_TEST(a_session_that_was_hung_up_goes_on_where_it_was)
{
    static const int gentle[] = {SIGHUP, SIGTERM};
    for (size_t k = 0; k < sizeof gentle / sizeof *gentle; k++) {
        begin();
        vt_run *v = trained();
        vt_signal(v, gentle[k]);
        vt_signal(v, gentle[k]); // a line that drops sends twice, by the shell and by the kernel
        ck_assert_msg(vt_shows(v, "step 6 of demo is kept: the next headroom offers"), "%s", vt_text(v));
        ends_with(v, 128 + gentle[k]);
        ck_assert_int_eq(count_saves(".save"), 1);
        v = start((const char *[]){HEADROOM_PROGRAM, NULL});
        ck_assert(vt_shows(v, "resume demo at step 6, 0 min ago?"));
        workbench_type(v, "y");
        ck_assert(vt_shows(v, "resumed from the save of step 6") && vt_shows(v, "idle 6/6"));
        workbench_type(v, "q");
        ck_assert(vt_shows(v, "6 steps, autosaved at step 6: s keeps all, y discards all"));
        workbench_type(v, "s");
        ends_with(v, 0);
        ck_assert_int_eq(count_saves(".save"), 1);
        end();
    }
}
END_TEST

START_TEST(a_session_that_was_killed_is_kept_until_somebody_says_no)
{
    begin();
    vt_run *v = trained();
    workbench_settle(v); // it has come to rest, and has been saved
    vt_signal(v, SIGKILL);
    int status;
    ck_assert(vt_changed(v, &status));
    vt_close(v);
    ck_assert_int_eq(count_saves(".save"), 1);
    v = start(small);
    ck_assert(vt_shows(v, "resume demo at step 6"));
    workbench_type(v, "q"); // nothing has begun
    ends_with(v, 0);
    v = start(small);
    ck_assert(vt_shows(v, "resume demo at step 6"));
    workbench_type(v, "? xjp14s\r\t"); // no answers
    workbench_settle(v);
    ck_assert(vt_shows(v, "resume demo at step 6"));
    workbench_type(v, "\033");
    ck_assert(vt_shows(v, "idle 6/6"));
    workbench_type(v, "qy");
    ends_with(v, 0);
    ck_assert_int_eq(count_saves(".save"), 1); // the other's
    v = start(small);
    ck_assert(vt_shows(v, "resume demo at step 6"));
    workbench_type(v, "n");
    ck_assert(vt_shows(v, "it stays"));
    ck_assert_int_eq(count_saves(".left.save"), 1);
    workbench_type(v, "q");
    ck_assert(vt_shows(v, "y leaves") || vt_has_ended(v));
    workbench_type(v, "y");
    ends_with(v, 0);
    v = start(small);
    ck_assert(vt_shows(v, "idle 6/6")); // it is not asked again
    vt_close(v);
    end();
}
END_TEST

// `y` would open something else than what stands on the command line.
START_TEST(who_asked_for_something_else_is_not_offered_it)
{
    static const char *const others[][8] = {
        {HEADROOM_PROGRAM, "mlp", "-s", "device.kind=plan", "-s", "train.steps=1", NULL},
        {HEADROOM_PROGRAM, "demo", "-s", "device.kind=plan", "-s", "train.steps=1", NULL},
    };
    static const char *const same[][4] = {{HEADROOM_PROGRAM, "demo", NULL},
                                          {HEADROOM_PROGRAM, "-s", "batch.size=2", NULL},
                                          {HEADROOM_PROGRAM, NULL}};
    int status;
    begin();
    vt_run *v = trained();
    workbench_settle(v);
    vt_signal(v, SIGKILL);
    ck_assert(vt_changed(v, &status));
    vt_close(v);
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        v = start(others[k]);
        ck_assert_msg(vt_shows(v, "step 6 of demo is kept: headroom alone offers"), "%s", vt_text(v));
        ck_assert(vt_shows(v, "idle 1/1"));
        char *text = vt_text(v);
        ck_assert_ptr_null(strstr(text, "resume demo"));
        free(text);
        workbench_type(v, "qy");
        ends_with(v, 0);
    }
    for (size_t k = 0; k < sizeof same / sizeof *same; k++) {
        v = start(same[k]);
        ck_assert_msg(vt_shows(v, "resume demo at step 6"), "%s", vt_text(v));
        workbench_type(v, "q");
        ends_with(v, 0);
    }
    end();
}
END_TEST

SUITE_MAIN("tui vterm resume", who_asked_for_something_else_is_not_offered_it,
           a_session_that_was_hung_up_goes_on_where_it_was,
           a_session_that_was_killed_is_kept_until_somebody_says_no)
