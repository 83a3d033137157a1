// SPDX-License-Identifier: Apache-2.0
// The server's thread when somebody is gone or something is short: it takes no signals and never turns in circles.
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "session/server.h"
#include "session/watch_socket.h"

enum { WAIT_MS = 20000, REST_US = 60000, WAKES_FEW = 8, COMMANDS = 80 };

static atomic_uint polls;

int __real_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
    (void)atomic_fetch_add(&polls, 1);
    return __real_poll(fds, count, timeout);
}

static char folder[] = "/tmp/headroom-server-XXXXXX";
static trace_ring *ring;

static void setup(void)
{
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    setenv("XDG_RUNTIME_DIR", folder, 1);
    ck_assert_int_eq(trace_ring_create(16, &ring, NULL), HR_OK);
}

static void teardown(void)
{
    char path[64];
    (void)snprintf(path, sizeof path, "%s/headroom", folder);
    trace_ring_destroy(ring);
    ck_assert_int_eq(rmdir(path) == 0 || access(path, F_OK) != 0, 1);
    ck_assert_int_eq(rmdir(folder), 0);
}

static server *start(wire *owner)
{
    hr_knobs knobs;
    hr_err err = {0};
    server *s = NULL;
    hr_knobs_init(&knobs);
    const server_options options = {
        .ring = ring, .owner = owner, .watchable = true, .preset = "tiny", .knobs = &knobs};
    ck_assert_msg(server_start(&options, &s, &err) == HR_OK, "%s", err.sentence);
    return s;
}

// While nothing happens it sleeps.
static void assert_rests(void)
{
    unsigned before = 0;
    for (int k = 0; k < WAIT_MS * 1000 / REST_US; k++) {
        before = atomic_load(&polls);
        usleep(REST_US);
        if (atomic_load(&polls) - before <= WAKES_FEW) {
            return;
        }
    }
    ck_abort_msg("%u wakes in a moment of rest", atomic_load(&polls) - before);
}

START_TEST(its_thread_takes_no_signals)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH, SIGCHLD, SIGALRM, SIGUSR1};
    sigset_t before, after;
    unsigned threads = 0;
    sigprocmask(SIG_SETMASK, NULL, &before);
    server *s = start(NULL);
    sigprocmask(SIG_SETMASK, NULL, &after);
    ck_assert_int_eq(sigismember(&after, SIGINT), sigismember(&before, SIGINT));
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *e = readdir(tasks); e != NULL; e = readdir(tasks)) {
        char path[300], line[128];
        unsigned long long blocked = 0;
        (void)snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
        FILE *f = e->d_name[0] == '.' || atol(e->d_name) == getpid() ? NULL : fopen(path, "r");
        while (f != NULL && fgets(line, sizeof line, f) != NULL) {
            (void)sscanf(line, "SigBlk: %llx", &blocked);
        }
        for (size_t k = 0; f != NULL && k < sizeof numbers / sizeof *numbers; k++) {
            ck_assert_msg((blocked >> (numbers[k] - 1) & 1) == 1, "signal %d", numbers[k]);
        }
        threads += f != NULL;
        if (f != NULL) {
            fclose(f);
        }
    }
    closedir(tasks);
    ck_assert_uint_ge(threads, 1);
    server_stop(s);
}
END_TEST

START_TEST(an_owner_that_leaves_with_the_queue_full_wakes_nobody)
{
    int ends[2];
    wire *owner = NULL, *other = NULL;
    wire_out body = {0};
    put_command(&body, &(hr_command){.version = HR_EVENT_VERSION, .kind = HR_COMMAND_PAUSE});
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    ck_assert_int_eq(wire_create(ends[0], MESSAGE_KINDS, &owner, NULL), HR_OK);
    ck_assert_int_eq(wire_create(ends[1], MESSAGE_KINDS, &other, NULL), HR_OK);
    server *s = start(owner);
    for (int k = 0; k < COMMANDS; k++) { // more than the queue takes
        ck_assert(wire_write(other, MESSAGE_COMMAND, body.data, (uint32_t)body.bytes, -1));
    }
    wire_destroy(other);
    assert_rests();
    wire_out_deinit(&body);
    server_stop(s);
}
END_TEST

// As many descriptors as it takes to hear a bell and no signals.
START_TEST(who_could_hear_no_signals_does_not_start)
{
    struct rlimit limit;
    sigset_t endings;
    hr_knobs knobs;
    hr_err err = {0};
    server *s = NULL;
    const int next = dup(STDOUT_FILENO);
    hr_knobs_init(&knobs);
    (void)sigemptyset(&endings);
    (void)sigaddset(&endings, SIGTERM);
    const server_options options = {.ring = ring, .endings = &endings, .preset = "tiny", .knobs = &knobs};
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    close(next);
    const struct rlimit few = {(rlim_t)next + 1, limit.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    const hr_status status = server_start(&options, &s, &err);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(status, HR_STATE);
    ck_assert_ptr_nonnull(strstr(err.sentence, "no descriptor for signals"));
    ck_assert_ptr_null(s);
}
END_TEST

// Who knocks while there is no descriptor for him is let in once there is.
START_TEST(without_descriptors_it_waits)
{
    struct rlimit limit;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char path[WATCH_PATH_MAX], first;
    server *s = start(NULL);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), next = dup(fd);
    ck_assert(watch_path(getpid(), path));
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_ge(next, 0);
    close(next);
    const struct rlimit few = {(rlim_t)next, limit.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_rests();
    ck_assert_int_eq(recv(fd, &first, 1, MSG_DONTWAIT), -1);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    ck_assert_int_eq(__real_poll(&ready, 1, WAIT_MS), 1);
    ck_assert_int_eq(recv(fd, &first, 1, 0), 1);
    close(fd);
    server_stop(s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("server");
    TCase *tests = tcase_create("server");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, its_thread_takes_no_signals);
    tcase_add_test(tests, an_owner_that_leaves_with_the_queue_full_wakes_nobody);
    tcase_add_test(tests, who_could_hear_no_signals_does_not_start);
    tcase_add_test(tests, without_descriptors_it_waits);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
