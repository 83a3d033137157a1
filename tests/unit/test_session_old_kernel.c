// SPDX-License-Identifier: Apache-2.0
// A kernel that lacks what is newer than Linux 4.18, or a container that forbids it: no descriptors of processes, no
// seal against future writing, no close_range. A filter on system calls stands for it; the worker inherits it.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "session/watch_socket.h"
#include "unit/session_use.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define LOAD(field)         BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define GIVE(action)        BPF_STMT(BPF_RET | BPF_K, action)
#define REFUSE(error)       GIVE(SECCOMP_RET_ERRNO | (error))
#define UNLESS(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)

// False: filters cannot be had here.
static bool filter(struct sock_filter *lines, unsigned short count)
{
    struct sock_fprog program = {.len = count, .filter = lines};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static bool be_old(void)
{
    static struct sock_filter lines[] = {
        LOAD(nr),
        UNLESS(__NR_pidfd_open, 1),
        REFUSE(ENOSYS),
        UNLESS(__NR_close_range, 1),
        REFUSE(ENOSYS),
        UNLESS(__NR_fcntl, 5),
        LOAD(args[1]), // its low half
        UNLESS(F_ADD_SEALS, 3),
        LOAD(args[2]),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, F_SEAL_FUTURE_WRITE, 0, 1),
        REFUSE(EINVAL),
        GIVE(SECCOMP_RET_ALLOW),
    };
    return filter(lines, sizeof lines / sizeof *lines);
}

static bool be_without_shared_memory(void)
{
    static struct sock_filter lines[] = {
        LOAD(nr),
        UNLESS(__NR_memfd_create, 1),
        REFUSE(ENOSYS),
        GIVE(SECCOMP_RET_ALLOW),
    };
    return filter(lines, sizeof lines / sizeof *lines);
}

// Signals are taken and do nothing, as with a process that waits for a disk that does not answer.
static bool be_without_kills(void)
{
    static struct sock_filter lines[] = {
        LOAD(nr),  UNLESS(__NR_kill, 1),    REFUSE(0), UNLESS(__NR_pidfd_send_signal, 1),
        REFUSE(0), GIVE(SECCOMP_RET_ALLOW),
    };
    return filter(lines, sizeof lines / sizeof *lines);
}

static int serve_role(const char *role)
{
    return hr_session_serve(role, NULL);
}

START_TEST(an_old_kernel_trains_and_is_watched)
{
    char path[WATCH_PATH_MAX];
    seen n = {.state = HR_ENGINE_PAUSED}, watched = n;
    hr_session *watcher = NULL;
    hr_knobs knobs = use_knobs(NULL);
    hr_session_options options = use_options(&knobs);
    options.watchable = true;
    if (!be_old()) {
        return;
    }
    hr_session *s = use_start(&options);
    use_run(s, 3);
    use_read_until(s, &n, use_is_in, HR_ENGINE_IDLE);
    ck_assert_uint_eq(n.steps, 3);
    ck_assert(watch_path(use_child(), path));
    ck_assert_int_eq(hr_session_attach(path, &watcher, NULL), HR_OK);
    use_read_until(watcher, &watched, use_is_in, HR_ENGINE_IDLE);
    ck_assert_uint_eq(watched.events, n.events);
    use_stop(watcher);
    if (_i == 0) {
        kill(use_child(), SIGSEGV);
        hr_session_end end = use_wait_end(s);
        ck_assert_int_eq(end.signal, SIGSEGV);
    }
    use_stop(s);
}
END_TEST

START_TEST(without_shared_memory_the_reason_is_told)
{
    hr_knobs knobs = use_knobs(NULL);
    hr_session_options options = use_options(&knobs);
    if (!be_without_shared_memory()) {
        return;
    }
    hr_session *s = use_start(&options);
    hr_session_end end = use_wait_end(s);
    ck_assert_msg(strstr(end.sentence, "event ring") != NULL, "%s", end.sentence);
    ck_assert_msg(strstr(end.sentence, strerror(ENOSYS)) != NULL, "%s", end.sentence);
    use_stop(s);
}
END_TEST

START_TEST(who_cannot_be_killed_is_left_to_the_kernel)
{
    seen n = {.state = HR_ENGINE_PAUSED};
    hr_knobs knobs = use_knobs(NULL);
    hr_session_options options = use_options(&knobs);
    if (!be_without_kills()) {
        return;
    }
    hr_session *s = use_start(&options);
    use_run(s, 0);
    use_read_until(s, &n, use_has_steps, 1);
    hr_session_kill(s);
    hr_session_end end = use_wait_end(s);
    ck_assert(end.by_us);
    ck_assert_int_eq(end.exit_code, -1);
    ck_assert_msg(strstr(end.sentence, "the kernel does not let it go") != NULL, "%s", end.sentence);
    use_stop(s); // closes its socket, which ends it after all
}
END_TEST

static Suite *make_suite(void)
{
    Suite *suite = suite_create("session_old_kernel");
    TCase *old = tcase_create("old kernel");
    tcase_add_checked_fixture(old, use_setup, use_teardown);
    tcase_add_loop_test(old, an_old_kernel_trains_and_is_watched, 0, 2);
    tcase_add_test(old, who_cannot_be_killed_is_left_to_the_kernel);
    tcase_set_timeout(old, 30);
    tcase_add_test(old, without_shared_memory_the_reason_is_told);
    suite_add_tcase(suite, old);
    return suite;
}

USE_MAIN(make_suite)
