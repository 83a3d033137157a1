// SPDX-License-Identifier: Apache-2.0
// A planner in a process of its own says what is said here, byte for byte; killed, stopped, silent or lying, it does no
// harm, and another one takes its place.
#include <check.h>
#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "headroom/session.h"

#include "base/host_mem.h"
#include "session/planning_wire.h"
#include "session/spawn.h"
#include "unit/planning_evil.h"
#include "unit/planning_use.h"

// What is said here, by kind: in what order the kinds come depends on when a process heard of them.
static struct {
    wire_out said[HR_FIT_POINTS_MAX];
    uint32_t count, compared;
} expected[HR_QUESTION_COUNT];

static void forget_expected(void)
{
    for (int k = 0; k < HR_QUESTION_COUNT; k++) {
        for (uint32_t i = 0; i < expected[k].count; i++) {
            wire_out_deinit(&expected[k].said[i]);
        }
        expected[k].count = expected[k].compared = 0;
    }
}

static void expect_everything(int round)
{
    hr_planning *here = started(true);
    hr_answer a;
    ck_assert_int_eq(hr_planning_fd(here), -1);
    forget_expected();
    ask_everything(here, round);
    while (next_answer(here, &a)) {
        put_answer(&expected[a.kind].said[expected[a.kind].count++], &a);
        hr_answer_deinit(&a);
    }
    hr_planning_stop(here);
}

// Takes up to `until` answers; they are those expected.
static void compare_some(hr_planning *there, unsigned until)
{
    hr_answer a;
    for (unsigned k = 0; k < until && next_answer(there, &a); k++) {
        wire_out o;
        const uint32_t at = expected[a.kind].compared++;
        ck_assert_uint_lt(at, expected[a.kind].count);
        const wire_out *e = &expected[a.kind].said[at];
        put_answer(&o, &a);
        ck_assert(o.bytes == e->bytes && memcmp(o.data, e->data, e->bytes) == 0);
        wire_out_deinit(&o);
        hr_answer_deinit(&a);
    }
}

static void compare_all(hr_planning *there)
{
    compare_some(there, 1000);
    for (int k = 0; k < HR_QUESTION_COUNT; k++) {
        ck_assert_uint_eq(expected[k].compared, expected[k].count);
        ck_assert_uint_gt(expected[k].count, 0);
    }
}

START_TEST(a_process_says_what_is_said_here_byte_for_byte)
{
    hr_planning *there = started(false);
    expect_everything(_i);
    ask_everything(there, _i);
    compare_all(there);
    hr_planning_stop(there);
    forget_expected();
}
END_TEST

// The one child that we have; 0: none.
static pid_t the_child(void)
{
    char path[64], text[64] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    const size_t got = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[got] = '\0';
    return (pid_t)strtol(text, NULL, 10);
}

static unsigned open_files(void)
{
    unsigned count = 0;
    DIR *d = opendir("/proc/self/fd");
    ck_assert_ptr_nonnull(d);
    while (readdir(d) != NULL) {
        count++;
    }
    closedir(d);
    return count;
}

START_TEST(nothing_is_left_of_a_planner)
{
    const unsigned files = open_files();
    const int64_t live = hr_host_mem_live();
    for (int k = 0; k < 8; k++) {
        hr_planning *p = started(false);
        ck_assert_int_gt(the_child(), 0);
        if (k % 2 == 0) {
            ask_everything(p, 0);
        }
        if (k == 4) {
            ck_assert_int_eq(kill(the_child(), SIGKILL), 0);
        }
        hr_planning_stop(p);
        ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
        ck_assert_uint_eq(open_files(), files);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
}
END_TEST

START_TEST(a_planner_takes_what_nobody_else_wants)
{
    const hr_knobs knobs = demo_knobs(NULL);
    setenv("PLANNER_IS", "idle", 1);
    hr_planning *p = started(false);
    hr_answer a;
    ck_assert_uint_ne(hr_planning_ask_turns(p, &knobs, turns, 1), 0);
    ck_assert(next_answer(p, &a));
    ck_assert_int_eq(sched_getscheduler(the_child()), SCHED_IDLE);
    ck_assert_int_eq(getpriority(PRIO_PROCESS, (id_t)the_child()), 19);
    hr_planning_stop(p);
}
END_TEST

START_TEST(what_a_killed_planner_owed_another_one_says)
{
    hr_planning *there = started(false);
    expect_everything(0);
    ask_everything(there, 0);
    compare_some(there, (unsigned)_i * 7);
    const pid_t first = the_child();
    ck_assert_int_eq(kill(first, SIGKILL), 0);
    compare_all(there);
    ck_assert_int_ne(the_child(), first);
    hr_planning_stop(there);
    forget_expected();
}
END_TEST

static void check_end(const char *how, const char *said)
{
    const hr_knobs knobs = demo_knobs(NULL);
    hr_planning *p = NULL;
    hr_answer a;
    setenv("PLANNER_IS", how, 1);
    ck_assert_int_eq(hr_planning_start(false, &p, NULL), HR_OK);
    hr_planning_open(p, demo, false);
    const uint64_t number = hr_planning_ask_turns(p, &knobs, turns, TURNS);
    ck_assert_uint_ne(hr_planning_ask_step_plan(p, &knobs), 0);
    ck_assert(next_answer(p, &a));
    ck_assert_uint_eq(a.number, number);
    ck_assert(a.last && a.status == HR_STATE);
    ck_assert_msg(strstr(a.sentence, said) != NULL, "%s: %s", how, a.sentence);
    ck_assert(next_answer(p, &a) && a.last && a.kind == HR_QUESTION_STEP_PLAN && a.status == HR_STATE);
    ck_assert(!next_answer(p, &a));
    unsetenv("PLANNER_IS");
    ck_assert_uint_ne(hr_planning_ask_turns(p, &knobs, turns, TURNS),
                      0); // the next question starts a good one
    for (int k = 0; k < TURNS; k++) {
        ck_assert(next_answer(p, &a) && a.index == (uint32_t)k && (k > 0 || a.status == HR_OK));
    }
    hr_planning_stop(p);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
}

START_TEST(a_planner_that_lies_or_dies_is_no_harm)
{
    check_end(planning_evils[_i].name, planning_evils[_i].said);
}
END_TEST

START_TEST(a_planner_that_never_stops_holds_nobody_up)
{
    const hr_knobs knobs = demo_knobs(NULL);
    setenv("PLANNER_IS", "flooding", 1);
    hr_planning *p = started(false);
    hr_answer a;
    ck_assert_uint_ne(hr_planning_ask_turns(p, &knobs, turns, TURNS), 0);
    for (int k = 0; k < 40; k++) {
        struct pollfd ready = {.fd = hr_planning_fd(p), .events = POLLIN};
        ck_assert_int_eq(poll(&ready, 1, TIMEOUT_MS), 1);
        ck_assert(!hr_planning_take(p, &a));
    }
    ck_assert(hr_planning_is_busy(p));
    hr_planning_stop(p);
}
END_TEST

static uint64_t ahead_ns;

uint64_t __real_clock_now_ns(void);
uint64_t __wrap_clock_now_ns(void);

uint64_t __wrap_clock_now_ns(void)
{
    return __real_clock_now_ns() + ahead_ns;
}

// A minute after it was asked, and not before; more to do is no sign of life.
static void be_silent(hr_planning *p, const hr_knobs *knobs, hr_answer *a)
{
    const uint64_t second_ns = UINT64_C(1000000000);
    const pid_t before = the_child();
    ahead_ns += 50 * second_ns;
    ck_assert(!hr_planning_take(p, a));
    ck_assert_int_eq(the_child(), before);
    ck_assert_uint_ne(hr_planning_ask_step_plan(p, knobs), 0);
    ahead_ns += 11 * second_ns;
    (void)hr_planning_take(p, a);
    ck_assert_int_ne(the_child(), before);
}

START_TEST(a_planner_that_was_stopped_is_replaced)
{
    const hr_knobs knobs = demo_knobs(NULL);
    hr_planning *p = started(false);
    siginfo_t how;
    hr_answer a;
    ck_assert_int_eq(kill(the_child(), SIGSTOP), 0);
    ck_assert_int_eq(waitid(P_PID, (id_t)the_child(), &how, WSTOPPED | WNOWAIT), 0);
    ahead_ns += UINT64_C(300000000000); // it owes nothing
    ck_assert(!hr_planning_take(p, &a));
    ck_assert_uint_ne(hr_planning_ask_turns(p, &knobs, turns, TURNS), 0);
    be_silent(p, &knobs, &a);
    for (int k = 0; k < TURNS; k++) {
        ck_assert(next_answer(p, &a) && a.status != HR_STATE);
        hr_answer_deinit(&a);
    }
    hr_planning_stop(p);
}
END_TEST

START_TEST(two_silent_planners_are_enough)
{
    const hr_knobs knobs = demo_knobs(NULL);
    setenv("PLANNER_IS", "silent", 1);
    hr_planning *p = started(false);
    hr_answer a;
    ck_assert_uint_ne(hr_planning_ask_turns(p, &knobs, turns, TURNS), 0);
    be_silent(p, &knobs, &a);
    be_silent(p, &knobs, &a);
    ck_assert_int_eq(a.status, HR_STATE);
    ck_assert_str_eq(a.sentence, "the planner did not answer: it was silent for a minute");
    hr_planning_stop(p);
}
END_TEST

START_TEST(without_a_program_there_is_no_planner)
{
    hr_planning *p = NULL;
    hr_err err = {0};
    setenv("HEADROOM_PROGRAM", "/no/such/program", 1);
    ck_assert_int_eq(hr_planning_start(false, &p, &err), HR_STATE);
    ck_assert_ptr_null(p);
    ck_assert_ptr_nonnull(strstr(err.sentence, "/no/such/program"));
}
END_TEST

#if HEADROOM_HAVE_ONEDNN
START_TEST(what_the_library_was_asked_outlives_a_kill)
{
    static const hr_turn present[] = {{HR_KNOB_COUNT, ""}};
    const hr_knobs knobs = demo_knobs((const char *[]){"device.kind=cpu", "device.card=", NULL});
    hr_planning *p = started(false);
    char path[160];
    struct stat file;
    hr_answer a;
    snprintf(path, sizeof path, "%s/headroom/workspaces", getenv("XDG_CACHE_HOME"));
    (void)unlink(path);
    ck_assert_uint_ne(hr_planning_ask_turns(p, &knobs, present, 1), 0);
    ck_assert(next_answer(p, &a) && a.status == HR_OK);
    ck_assert_uint_ne(hr_planning_ask_turns(p, &knobs, present, 1),
                      0); // answered once the first is done with
    ck_assert(next_answer(p, &a));
    hr_planning_stop(p);
    ck_assert_msg(stat(path, &file) == 0 && file.st_size > 0, "%s", path);
}
END_TEST
#endif

// This program as the planner: what PLANNER_IS says, or a good one.
static int serve(void)
{
    const char *how = getenv("PLANNER_IS");
    if (how == NULL) {
        return planning_serve_demo();
    }
    if (strcmp(how, "idle") == 0) {
        return hr_session_serve("planner", NULL);
    }
    const int socket = child_begin();
    return socket < 0 ? 2 : planning_evil(how, socket);
}

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, a_process_says_what_is_said_here_byte_for_byte, 0, 2);
    tcase_add_test(tests, nothing_is_left_of_a_planner);
    tcase_add_test(tests, a_planner_takes_what_nobody_else_wants);
    tcase_add_loop_test(tests, what_a_killed_planner_owed_another_one_says, 0, 3);
    tcase_add_loop_test(tests, a_planner_that_lies_or_dies_is_no_harm, 0, PLANNING_EVILS);
    tcase_add_test(tests, a_planner_that_never_stops_holds_nobody_up);
    tcase_add_test(tests, a_planner_that_was_stopped_is_replaced);
    tcase_add_test(tests, two_silent_planners_are_enough);
    tcase_add_test(tests, without_a_program_there_is_no_planner);
#if HEADROOM_HAVE_ONEDNN
    tcase_add_test(tests, what_the_library_was_asked_outlives_a_kill);
#endif
}

int main(int argc, char **argv)
{
    return planning_tests(argc, argv, add, serve);
}
