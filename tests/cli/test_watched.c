// SPDX-License-Identifier: Apache-2.0
// A run can be watched while it goes on, by several at once, and nobody who watches can change it.
#include <check.h>
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "headroom/session.h"

#include "program.h"

enum { TIMEOUT = 3000, WATCHERS = 2, TAKEN_MAX = 256 }; // looks of 10 ms

#define WORDS "run demo -s device.kind=reference -s batch.size=2 --steps 1000000 --json"

static char folder[256];

static void *run(void *result)
{
    char setting[300];
    snprintf(setting, sizeof setting, "XDG_RUNTIME_DIR=%s", folder);
    *(outcome *)result = program_run_with(setting, WORDS);
    return NULL;
}

static void look_later(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

// The socket that appears, and whose it is; 0: there is none.
static pid_t find_socket(char *path, size_t size)
{
    char sockets[300];
    pid_t found = 0;
    snprintf(sockets, sizeof sockets, "%s/headroom", folder);
    DIR *entries = opendir(sockets);
    for (struct dirent *e; entries != NULL && (e = readdir(entries)) != NULL;) {
        const char *end = strstr(e->d_name, ".sock");
        if (end != NULL && strcmp(end, ".sock") == 0) { // ".sock~" is not listened on yet
            found = (pid_t)atoi(e->d_name);
            snprintf(path, size, "%s/%.64s", sockets, e->d_name);
        }
    }
    if (entries != NULL) {
        closedir(entries);
    }
    return found;
}

typedef struct seen {
    uint64_t steps, version;
    bool report, about;
    hr_session_life life;
} seen;

static void look(hr_session *s, seen *w)
{
    static hr_event events[TAKEN_MAX];
    char preset[HR_KNOB_TEXT_MAX];
    hr_knobs knobs;
    hr_session_end end;
    uint64_t lost = 0;
    for (size_t n = TAKEN_MAX; n == TAKEN_MAX;) {
        n = hr_session_events(s, events, TAKEN_MAX, &lost);
        for (size_t k = 0; k < n; k++) {
            w->steps += events[k].kind == HR_EVENT_STEP;
        }
    }
    hr_report report;
    if (hr_session_report(s, &w->version, &report)) {
        ck_assert_str_eq(report.preset, "demo");
        ck_assert_uint_eq(report.step.effective_batch, 2);
        w->report = true;
        hr_report_deinit(&report);
    }
    if (hr_session_about(s, preset, &knobs)) {
        ck_assert_str_eq(preset, "demo");
        ck_assert_int_eq(hr_knob_int(&knobs, HR_KNOB_BATCH_SIZE), 2);
        w->about = true;
    }
    w->life = hr_session_get_life(s, &end);
}

static void watch(const char *path)
{
    hr_session *sessions[WATCHERS];
    hr_err err = {0};
    for (int k = 0; k < WATCHERS; k++) {
        ck_assert_msg(hr_session_attach(path, &sessions[k], &err) == HR_OK, "%s", err.sentence);
        ck_assert(hr_session_is_read_only(sessions[k]));
        const hr_command stop = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_STOP};
        ck_assert(!hr_session_send(sessions[k], &stop));
    }
    for (int k = 0; k < WATCHERS; k++) {
        seen w = {0};
        for (int looks = 0; looks < TIMEOUT && !(w.steps >= 3 && w.report && w.about); looks++) {
            look(sessions[k], &w);
            look_later();
        }
        ck_assert_msg(w.steps >= 3 && w.report && w.about, "%d steps, report %d, about %d", (int)w.steps,
                      w.report, w.about);
        ck_assert_int_eq(w.life, HR_SESSION_LIVE);
    }
    for (int k = 0; k < WATCHERS; k++) {
        ck_assert(hr_session_stop(sessions[k], &err) == HR_OK); // leaves; the run goes on
    }
}

// A run in a runtime folder of its own, and where it can be watched.
typedef struct subject {
    pthread_t thread;
    outcome outcome;
    pid_t pid;
    char path[400];
} subject;

static void start(subject *s, const char *name)
{
    *s = (subject){0};
    snprintf(folder, sizeof folder, "%s/%s", program_home(), name);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    ck_assert_int_eq(pthread_create(&s->thread, NULL, run, &s->outcome), 0);
    for (int looks = 0; looks < TIMEOUT && s->pid == 0; looks++, look_later()) {
        s->pid = find_socket(s->path, sizeof s->path);
    }
    ck_assert_int_ne(s->pid, 0);
}

static void finish(subject *s, int exit_code)
{
    pthread_join(s->thread, NULL);
    assert_exit(&s->outcome, WORDS, exit_code);
    ck_assert_int_eq(find_socket(s->path, sizeof s->path), 0);
    outcome_deinit(&s->outcome);
}

START_TEST(a_run_is_watched_by_two_who_cannot_change_it)
{
    subject s;
    start(&s, "two");
    watch(s.path);
    ck_assert_int_eq(kill(s.pid, SIGINT), 0);
    finish(&s, 130);
}
END_TEST

START_TEST(watch_lists_the_runs_that_can_be_watched)
{
    subject s;
    char setting[300], line[500];
    start(&s, "list");
    snprintf(setting, sizeof setting, "XDG_RUNTIME_DIR=%s", folder);
    snprintf(line, sizeof line, "%s  demo\n", s.path);
    outcome o = program_run_with(setting, "watch");
    assert_exit(&o, "watch", 0);
    ck_assert_str_eq(o.out, line);
    outcome_deinit(&o);
    ck_assert_int_eq(kill(s.pid, SIGINT), 0);
    finish(&s, 130);
    o = program_run_with(setting, "watch");
    assert_exit(&o, "watch", 1);
    ck_assert_ptr_nonnull(strstr(o.out, "no training can be watched now"));
    outcome_deinit(&o);
    o = program_run_with(setting, "watch nothing");
    assert_exit(&o, "watch nothing", 2); // no terminal
    outcome_deinit(&o);
}
END_TEST

START_TEST(a_run_that_ends_is_over_for_who_watches)
{
    subject s;
    hr_session *session = NULL;
    hr_err err = {0};
    seen w = {0};
    start(&s, "one");
    ck_assert_msg(hr_session_attach(s.path, &session, &err) == HR_OK, "%s", err.sentence);
    ck_assert_int_eq(kill(s.pid, SIGTERM), 0);
    for (int looks = 0; looks < TIMEOUT && w.life != HR_SESSION_ENDED; looks++, look_later()) {
        look(session, &w);
    }
    ck_assert_int_eq(w.life, HR_SESSION_ENDED);
    (void)hr_session_stop(session, NULL);
    finish(&s, 143);
}
END_TEST

static void *wait_for_one(void *out)
{
    char setting[300];
    snprintf(setting, sizeof setting, "XDG_RUNTIME_DIR=%s", folder);
    *(outcome *)out = program_run_with(setting, "watch --wait");
    return NULL;
}

START_TEST(who_waits_for_a_run_hears_of_the_first)
{
    subject s = {0};
    pthread_t waiting;
    outcome o = {0};
    snprintf(folder, sizeof folder, "%s/wait", program_home());
    ck_assert_int_eq(pthread_create(&waiting, NULL, wait_for_one, &o), 0);
    start(&s, "wait");
    pthread_join(waiting, NULL);
    assert_exit(&o, "watch --wait", 0);
    ck_assert_msg(strstr(o.out, s.path) != NULL, "%s", o.out);
    outcome_deinit(&o);
    ck_assert_int_eq(kill(s.pid, SIGINT), 0);
    finish(&s, 130);
}
END_TEST

START_TEST(a_run_that_was_killed_is_killed_and_its_socket_goes_with_the_next)
{
    subject s;
    hr_session *session = NULL;
    hr_session_end end = {0};
    start(&s, "killed");
    ck_assert_int_eq(hr_session_attach(s.path, &session, NULL), HR_OK);
    ck_assert_int_eq(kill(s.pid, SIGKILL), 0);
    for (int looks = 0; looks < TIMEOUT && hr_session_get_life(session, &end) != HR_SESSION_ENDED;
         looks++, look_later()) {
    }
    ck_assert_str_eq(end.sentence, "it was killed: its process is gone without a word");
    ck_assert_int_eq(end.exit_code, -1);
    (void)hr_session_stop(session, NULL);
    pthread_join(s.thread, NULL);
    assert_exit(&s.outcome, WORDS, 137);
    outcome_deinit(&s.outcome);
    ck_assert_int_eq(access(s.path, F_OK), 0);
    char setting[300];
    snprintf(setting, sizeof setting, "XDG_RUNTIME_DIR=%s", folder);
    outcome o = program_run_with(setting, "run demo -s device.kind=plan --steps 1");
    assert_exit(&o, "the next", 0);
    ck_assert_int_ne(access(s.path, F_OK), 0);
    outcome_deinit(&o);
}
END_TEST

// What it advises, done in a shell, lets a training be watched.
START_TEST(without_a_folder_to_listen_in_it_says_how_to_make_one)
{
    char command[1024], advice[400];
    outcome o = program_run_with("XDG_RUNTIME_DIR=", "watch");
    assert_exit(&o, "watch", 1);
    const char *hint = strstr(o.err, "  try: ");
    ck_assert_msg(hint != NULL && strstr(o.err, "which is not set") != NULL, "%s", o.err);
    snprintf(advice, sizeof advice, "%.*s", (int)strcspn(hint + 7, "#\n"), hint + 7);
    snprintf(
        command, sizeof command,
        "unset XDG_RUNTIME_DIR; %s && { %s run demo -s device.kind=plan --steps 1000000 >/dev/null 2>&1 & "
        "timeout 60 %s watch --wait 2>/dev/null | grep demo; found=$?; kill $!; wait; "
        "rmdir $XDG_RUNTIME_DIR/headroom $XDG_RUNTIME_DIR 2>/dev/null; exit $found; }", // where it was empty
        advice, HEADROOM_PROGRAM, HEADROOM_PROGRAM);
    ck_assert_msg(system(command) == 0, "%s", command);
    outcome_deinit(&o);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("watched");
    tcase_add_unchecked_fixture(tests, NULL, program_remove_home);
    tcase_add_test(tests, a_run_is_watched_by_two_who_cannot_change_it);
    tcase_add_test(tests, watch_lists_the_runs_that_can_be_watched);
    tcase_add_test(tests, who_waits_for_a_run_hears_of_the_first);
    tcase_add_test(tests, a_run_that_was_killed_is_killed_and_its_socket_goes_with_the_next);
    tcase_add_test(tests, without_a_folder_to_listen_in_it_says_how_to_make_one);
    tcase_add_test(tests, a_run_that_ends_is_over_for_who_watches);
    Suite *suite = suite_create("watched");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
