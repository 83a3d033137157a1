// SPDX-License-Identifier: Apache-2.0
// Child processes: what they are given, how they die, and that nothing of them stays. The child is this program.
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session/spawn.h"

enum { WAIT_MS = 20000 };

// ---- the child ------------------------------------------------------------------------------------------------

typedef struct facts {
    int open_fds, oom_score_adj, signals_ignored_or_blocked;
    pid_t pid, group;
    bool closes_on_exec;
} facts;

static int count_fds(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder != NULL && readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count - 3; // ., .. and the folder itself
}

static int count_signals(void)
{
    int count = 0;
    sigset_t blocked;
    (void)sigprocmask(SIG_SETMASK, NULL, &blocked);
    for (int number = 1; number < 32; number++) {
        struct sigaction action;
        count += sigismember(&blocked, number) == 1;
        count += sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
                 action.sa_handler == SIG_IGN;
    }
    return count;
}

static int serve_facts(int socket)
{
    facts f = {.open_fds = count_fds(),
               .pid = getpid(),
               .group = getpgrp(),
               .signals_ignored_or_blocked = count_signals(),
               .closes_on_exec = (fcntl(socket, F_GETFD) & FD_CLOEXEC) != 0};
    FILE *file = fopen("/proc/self/oom_score_adj", "r");
    bool read = file != NULL && fscanf(file, "%d", &f.oom_score_adj) == 1;
    fclose(file);
    return read && send(socket, &f, sizeof f, 0) == sizeof f ? 7 : 1;
}

static int serve_words(int socket)
{
    (void)socket;
    fputs("first line\nsecond\tline\n\nthe last line, cut short here", stderr);
    return 3;
}

// More than a pipe holds, while nobody reads.
static int serve_flood(int socket)
{
    static const char words[] = "a line that says nothing\n";
    for (int k = 0; k < 20000; k++) {
        ssize_t written = write(STDERR_FILENO, words, sizeof words - 1);
        (void)written;
    }
    (void)send(socket, "!", 1, 0);
    return 0;
}

// Without the handlers of a sanitizer, which would make exit codes of signals.
static int serve_sleep(int socket)
{
    (void)signal(SIGSEGV, SIG_DFL);
    (void)signal(SIGBUS, SIG_DFL);
    (void)signal(SIGABRT, SIG_DFL);
    (void)send(socket, "!", 1, 0);
    while (pause() != 0) {
    }
    return 0;
}

// Spawns a sleeper itself, tells its id and waits to be killed.
static int serve_parent(int socket)
{
    child c;
    if (child_spawn(&(child_order){.role = "sleep"}, &c, NULL) != HR_OK) {
        return 1;
    }
    char ready = 0;
    if (recv(c.socket, &ready, 1, 0) != 1 || send(socket, &c.pid, sizeof c.pid, 0) != sizeof c.pid) {
        return 1;
    }
    return serve_sleep(socket);
}

static const struct {
    const char *role;
    int (*serve)(int socket);
} roles[] = {
    {"facts", serve_facts}, {"words", serve_words},   {"flood", serve_flood},
    {"sleep", serve_sleep}, {"parent", serve_parent},
};

static int serve(const char *role)
{
    int socket = child_begin();
    for (size_t k = 0; socket >= 0 && k < sizeof roles / sizeof *roles; k++) {
        if (strcmp(roles[k].role, role) == 0) {
            return roles[k].serve(socket);
        }
    }
    return 99;
}

// ---- the tests ------------------------------------------------------------------------------------------------

static child spawn(const char *role)
{
    child c;
    hr_err err = {0};
    ck_assert_msg(child_spawn(&(child_order){.role = role}, &c, &err) == HR_OK, "%s", err.sentence);
    return c;
}

static void receive(const child *c, void *to, size_t bytes)
{
    struct pollfd ready = {.fd = c->socket, .events = POLLIN};
    ck_assert_int_eq(poll(&ready, 1, WAIT_MS), 1);
    ck_assert_int_eq(recv(c->socket, to, bytes, 0), (ssize_t)bytes);
}

static void wait_for_end(child *c)
{
    struct pollfd ready = {.fd = c->pidfd, .events = POLLIN};
    ck_assert_int_eq(poll(&ready, 1, WAIT_MS), 1);
    ck_assert(child_reap(c));
}

static void assert_no_children(void)
{
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
}

START_TEST(a_child_has_what_it_is_given_and_nothing_else)
{
    facts f;
    int before = count_fds();
    int stray = open("/dev/null", O_RDONLY); // not closed on exec
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    signal(SIGINT, SIG_IGN);
    child c = spawn("facts");
    receive(&c, &f, sizeof f);
    wait_for_end(&c);
    ck_assert_int_eq(c.exit_code, 7);
    ck_assert_int_eq(c.signal, 0);
    ck_assert_int_eq(f.open_fds, 4); // standard three and the socket
    ck_assert_int_eq(f.oom_score_adj, 1000);
    ck_assert_int_eq(f.pid, c.pid);
    ck_assert_int_eq(f.group, c.pid);
    ck_assert_int_eq(f.signals_ignored_or_blocked, 0);
    ck_assert(f.closes_on_exec);
    child_close(&c);
    close(stray);
    ck_assert_int_eq(count_fds(), before);
    assert_no_children();
}
END_TEST

START_TEST(the_last_line_of_stderr_is_kept)
{
    child c = spawn("words");
    ck_assert(child_wait(&c, WAIT_MS));
    ck_assert_int_eq(c.exit_code, 3);
    ck_assert_str_eq(child_last_line(&c), "the last line, cut short here");
    child_close(&c);
    ck_assert_str_eq(child_last_line(&c), "the last line, cut short here");
}
END_TEST

START_TEST(a_child_never_waits_for_its_stderr_to_be_read)
{
    char ready;
    child c = spawn("flood");
    receive(&c, &ready, 1);
    ck_assert(child_wait(&c, WAIT_MS));
    ck_assert_int_eq(c.exit_code, 0);
    ck_assert_uint_gt(strlen(child_last_line(&c)), 0);
    child_close(&c);
}
END_TEST

START_TEST(the_signal_that_ended_it_is_known)
{
    static const int signals[] = {SIGKILL, SIGSEGV, SIGTERM, SIGABRT, SIGBUS};
    char ready;
    child c = spawn("sleep");
    receive(&c, &ready, 1);
    ck_assert(!child_reap(&c));
    child_signal(&c, signals[_i]);
    wait_for_end(&c);
    ck_assert_int_eq(c.signal, signals[_i]);
    ck_assert_int_eq(c.exit_code, -1);
    ck_assert(child_reap(&c));
    child_close(&c);
    assert_no_children();
}
END_TEST

START_TEST(who_does_not_end_is_not_waited_for)
{
    char ready;
    child c = spawn("sleep");
    receive(&c, &ready, 1);
    ck_assert(!child_wait(&c, 20));
    ck_assert(!c.reaped);
    child_signal(&c, SIGTERM);
    ck_assert(child_wait(&c, WAIT_MS));
    ck_assert_int_eq(c.signal, SIGTERM);
    child_close(&c);
    assert_no_children();
}
END_TEST

// The number of a process that has ended may be another's already: with SIGCHLD ignored nothing holds it.
START_TEST(a_signal_reaches_the_child_or_nobody)
{
    char ready;
    child c = spawn("sleep"), other = spawn("sleep");
    receive(&c, &ready, 1);
    receive(&other, &ready, 1);
    const pid_t pid = c.pid;
    c.pid = other.pid; // as if it had been given again
    child_signal(&c, SIGKILL);
    c.pid = pid;
    wait_for_end(&c);
    ck_assert_int_eq(c.signal, SIGKILL);
    ck_assert(!child_reap(&other));
    child_close(&c);
    child_close(&other);
    assert_no_children();
}
END_TEST

START_TEST(closing_kills_what_lives)
{
    char ready;
    child c = spawn("sleep");
    receive(&c, &ready, 1);
    child_signal(&c, SIGSTOP); // not even that keeps it
    child_close(&c);
    ck_assert_int_eq(c.signal, SIGKILL);
    assert_no_children();
}
END_TEST

// Grandchildren come to this process when their parent is gone: so it sees how they end.
START_TEST(a_child_dies_with_its_parent)
{
    pid_t grandchild = 0;
    int status = 0;
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    child c = spawn("parent");
    receive(&c, &grandchild, sizeof grandchild);
    child_signal(&c, SIGKILL);
    wait_for_end(&c);
    ck_assert_int_eq(waitpid(grandchild, &status, 0), grandchild);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    child_close(&c);
    assert_no_children();
}
END_TEST

START_TEST(a_program_that_is_not_there_is_an_error_and_leaves_nothing)
{
    child c;
    hr_err err = {0};
    int before = count_fds();
    setenv("HEADROOM_PROGRAM", "/nonexistent/headroom", 1);
    ck_assert_int_eq(child_spawn(&(child_order){.role = "sleep"}, &c, &err), HR_STATE);
    ck_assert_str_eq(err.sentence,
                     "/nonexistent/headroom could not be started as sleep: No such file or directory");
    child_close(&c);
    setenv("HEADROOM_PROGRAM", "/proc/self/exe", 1);
    ck_assert_int_eq(count_fds(), before);
    assert_no_children();
}
END_TEST

START_TEST(descriptors_that_are_not_to_be_had_are_an_error_and_leave_nothing)
{
    struct rlimit limit, few;
    int before = count_fds();
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    for (rlim_t most = 4; most < 20; most++) {
        child c;
        few = (struct rlimit){most, limit.rlim_max};
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
        hr_status status = child_spawn(&(child_order){.role = "words"}, &c, NULL);
        child_close(&c);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
        ck_assert(status == HR_OK || status == HR_STATE);
        ck_assert_int_eq(count_fds(), before);
        assert_no_children();
    }
}
END_TEST

// In a process of its own: the framework has a descriptor 3 too.
static int begin_unspawned(void)
{
    int ends[2], other = -1;
    (void)close(3);
    bool begun = child_begin() >= 0; // nothing there
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0) {
        other = fcntl(ends[1], F_DUPFD, 10);
        begun = begun || dup2(other, 3) != 3 || child_begin() >= 0; // a socket pair, but not its parent's
    }
    return other < 0 || begun;
}

START_TEST(whoever_was_not_spawned_by_us_is_told_so)
{
    int status = 0;
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        _exit(begin_unspawned());
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1 && argv[1][0] == '@') {
        return serve(argv[1] + 1);
    }
    setenv("HEADROOM_PROGRAM", "/proc/self/exe", 1);
    Suite *suite = suite_create("spawn");
    TCase *tests = tcase_create("spawn");
    tcase_add_test(tests, a_child_has_what_it_is_given_and_nothing_else);
    tcase_add_test(tests, the_last_line_of_stderr_is_kept);
    tcase_add_test(tests, who_does_not_end_is_not_waited_for);
    tcase_add_test(tests, a_signal_reaches_the_child_or_nobody);
    tcase_add_test(tests, a_child_never_waits_for_its_stderr_to_be_read);
    tcase_add_loop_test(tests, the_signal_that_ended_it_is_known, 0, 5);
    tcase_add_test(tests, closing_kills_what_lives);
    tcase_add_test(tests, a_child_dies_with_its_parent);
    tcase_add_test(tests, a_program_that_is_not_there_is_an_error_and_leaves_nothing);
    tcase_add_test(tests, descriptors_that_are_not_to_be_had_are_an_error_and_leave_nothing);
    tcase_add_test(tests, whoever_was_not_spawned_by_us_is_told_so);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
