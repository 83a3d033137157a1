// SPDX-License-Identifier: Apache-2.0
#include "session/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/host_mem.h"
#include "base/text.h"

enum {
    CHILD_SOCKET = 3,        // what the child finds it as
    FIRST_OWN_FD = 10,       // ours lie above what the child's are moved to
    LISTEN_BYTES = 256 << 10 // at once; more than a pipe holds
};

extern char **environ;

// ---- the parent's side ----------------------------------------------------------------------------------------

typedef struct ends {
    int socket[2], errors[2]; // ours, the child's; −1: it writes where we do
} ends;

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

static void close_ends(ends *e)
{
    for (int k = 0; k < 2; k++) {
        close_fd(&e->socket[k]);
        close_fd(&e->errors[k]);
    }
}

static bool lift(int *fd)
{
    if (*fd < FIRST_OWN_FD) {
        int higher = fcntl(*fd, F_DUPFD_CLOEXEC, FIRST_OWN_FD);
        close_fd(fd);
        *fd = higher;
    }
    return *fd >= 0;
}

static hr_status make_ends(ends *e, bool listens, hr_err *err)
{
    *e = (ends){{-1, -1}, {-1, -1}};
    bool made = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, e->socket) == 0 &&
                (!listens || pipe2(e->errors, O_CLOEXEC | O_NONBLOCK) == 0);
    for (int k = 0; made && k < 2; k++) {
        made = lift(&e->socket[k]) && (!listens || lift(&e->errors[k]));
    }
    if (!made) {
        (void)HR_FAIL(err, STATE, "no socket to a process of its own was to be had: %s", strerror(errno));
        close_ends(e);
        return HR_STATE;
    }
    return HR_OK;
}

static const char *program_path(void)
{
    const char *named = getenv("HEADROOM_PROGRAM");
    return named != NULL && named[0] != '\0' ? named : "/proc/self/exe";
}

static void set_actions(posix_spawn_file_actions_t *actions, const ends *e, bool stands_in)
{
    (void)posix_spawn_file_actions_init(actions);
    if (!stands_in) {
        (void)posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        (void)posix_spawn_file_actions_adddup2(actions, e->errors[1], STDOUT_FILENO);
        (void)posix_spawn_file_actions_adddup2(actions, e->errors[1], STDERR_FILENO);
    }
    (void)posix_spawn_file_actions_adddup2(actions, e->socket[1], CHILD_SOCKET);
    if (!stands_in) {
        (void)posix_spawn_file_actions_addclosefrom_np(actions, CHILD_SOCKET + 1);
    }
}

// A process group of its own, every signal as a fresh program has it; a process that replaces us has both as we have them.
static void set_attributes(posix_spawnattr_t *attributes, bool stands_in)
{
    sigset_t all, none;
    (void)sigfillset(&all);
    (void)sigemptyset(&none);
    (void)posix_spawnattr_init(attributes);
    if (stands_in) {
        return;
    }
    (void)posix_spawnattr_setpgroup(attributes, 0);
    (void)posix_spawnattr_setsigdefault(attributes, &all);
    (void)posix_spawnattr_setsigmask(attributes, &none);
    (void)posix_spawnattr_setflags(attributes,
                                   POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
}

static int exec_child(const child_order *order, char *const *argv, const ends *e, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    set_actions(&actions, e, order->stands_in);
    set_attributes(&attributes, order->stands_in);
    int problem = posix_spawn(pid, program_path(), &actions, &attributes, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)posix_spawnattr_destroy(&attributes);
    return problem;
}

static int start(const child_order *order, const ends *e, pid_t *pid)
{
    enum { OWN_WORDS = 2 }; // the program's name and the role
    char program[] = "headroom", role[64];
    size_t count = 0;
    while (order->words != NULL && order->words[count] != NULL) {
        count++;
    }
    char **argv = hr_calloc(OWN_WORDS + count + 1, sizeof *argv);
    if (argv == NULL) {
        return ENOMEM;
    }
    (void)snprintf(role, sizeof role, "@%s", order->role);
    argv[0] = program;
    argv[1] = role;
    for (size_t k = 0; k < count; k++) {
        argv[OWN_WORDS + k] = order->words[k];
    }
    int problem = exec_child(order, argv, e, pid);
    hr_free(argv);
    return problem;
}

hr_status child_spawn(const child_order *order, child *c, hr_err *err)
{
    ends e;
    *c = (child){.pid = -1, .pidfd = -1, .socket = -1, .errors = -1, .reaped = true};
    HR_TRY(make_ends(&e, !order->stands_in, err));
    int problem = start(order, &e, &c->pid);
    if (problem != 0) {
        close_ends(&e);
        c->pid = -1;
        (void)HR_FAIL(err, STATE, "%s could not be started as %s: %s", program_path(), order->role,
                      strerror(problem));
        hr_err_try(err, "HEADROOM_PROGRAM=/path/to/headroom headroom, where there is no /proc");
        return HR_STATE;
    }
    close_fd(&e.socket[1]);
    close_fd(&e.errors[1]);
    c->socket = e.socket[0];
    c->errors = e.errors[0];
    c->reaped = false;
    c->pidfd = pidfd_open(c->pid, 0); // without one its end is seen by its socket's
    return HR_OK;
}

// The end of a child that we were not let see (SIGCHLD is ignored) is an end without a code.
static bool note_end(child *c, pid_t got, int status)
{
    if (got == 0 || (got < 0 && errno == EINTR)) {
        return false;
    }
    bool seen = got > 0;
    c->reaped = true;
    c->exit_code = seen && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    c->signal = seen && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    child_listen(c);
    return true;
}

bool child_reap(child *c)
{
    if (!c->reaped) {
        int status = 0;
        pid_t got = waitpid(c->pid, &status, WNOHANG);
        return note_end(c, got, status);
    }
    return true;
}

bool child_wait(child *c, int timeout_ms)
{
    enum { LOOK_MS = 5 };
    const uint64_t until_ns = clock_now_ns() + (uint64_t)timeout_ms * 1000000;
    while (!child_reap(c) && clock_now_ns() < until_ns) {
        struct pollfd ended = {.fd = c->pidfd, .events = POLLIN}; // −1 is passed over
        (void)poll(&ended, 1, LOOK_MS);
    }
    return c->reaped;
}

// By its descriptor, which is never another process's, where there is one.
void child_signal(const child *c, int number)
{
    if (!c->reaped &&
        (c->pidfd < 0 || (pidfd_send_signal(c->pidfd, number, NULL, 0) != 0 && errno != ESRCH))) {
        (void)kill(c->pid, number);
    }
}

void child_close(child *c)
{
    child_signal(c, SIGKILL);
    (void)child_wait(c, CHILD_TIMEOUT_MS);
    close_fd(&c->socket);
    close_fd(&c->errors);
    close_fd(&c->pidfd);
}

// ---- what it writes -------------------------------------------------------------------------------------------

static void end_line(child *c)
{
    if (c->line_bytes > 0) {
        (void)text_copy(c->last_line, sizeof c->last_line, c->line);
        c->line[0] = '\0';
        c->line_bytes = 0;
    }
}

static void add_character(child *c, char character)
{
    if (character == '\n' || character == '\r') {
        end_line(c);
    } else if (c->line_bytes + 1 < sizeof c->line) {
        bool control = (unsigned char)character < ' ' || character == 127;
        c->line[c->line_bytes++] = control ? ' ' : character;
        c->line[c->line_bytes] = '\0';
    }
}

void child_listen(child *c)
{
    char piece[1024];
    ssize_t got = 0;
    for (size_t left = LISTEN_BYTES / sizeof piece;
         left > 0 && c->errors >= 0 &&
         ((got = read(c->errors, piece, sizeof piece)) > 0 || (got < 0 && errno == EINTR));
         left--) {
        for (ssize_t k = 0; k < got; k++) {
            add_character(c, piece[k]);
        }
    }
    if (c->errors >= 0 && got == 0) {
        close_fd(&c->errors);
    }
    if (c->errors < 0 || c->reaped) {
        end_line(c);
    }
}

const char *child_last_line(const child *c)
{
    return c->last_line;
}

// ---- the child's side -----------------------------------------------------------------------------------------

// A socket pair remembers the process that made it.
static bool parent_made(int socket)
{
    struct ucred maker = {0};
    socklen_t size = sizeof maker;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &maker, &size) == 0 && maker.pid == getppid();
}

static void die_first(void)
{
    int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (file >= 0) {
        ssize_t written = write(file, "1000", 4);
        (void)written; // where it may not be said, the kernel chooses as it likes
        (void)close(file);
    }
}

int child_begin(void)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!parent_made(CHILD_SOCKET)) { // it may have died before the line above
        (void)prctl(PR_SET_PDEATHSIG, 0);
        return -1;
    }
    (void)fcntl(CHILD_SOCKET, F_SETFD, FD_CLOEXEC);
    die_first();
    return CHILD_SOCKET;
}
