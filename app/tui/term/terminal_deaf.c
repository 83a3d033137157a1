// SPDX-License-Identifier: Apache-2.0
// A terminal that takes nothing (^S, a pseudo terminal that is not read): what would be drawn waits until it takes
// something again, and a write that is stuck in it is let go. ncurses asks again for ever, whatever the call returns, so
// that the descriptor itself is turned to where everything is taken, until the terminal takes something and is drawn anew.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "app/tui/term/terminal_state.h"

enum { TIMEOUT_S = 2 };

static struct {
    int terminal, nowhere; // of the terminal, and of /dev/null; −1: nothing is watched
    volatile sig_atomic_t deaf;
    struct sigaction before;
} s = {.terminal = -1, .nowhere = -1};

static bool takes(int fd)
{
    struct pollfd out = {.fd = fd, .events = POLLOUT};
    return poll(&out, 1, 0) > 0; // one that is gone takes all, and fails the write
}

bool terminal_takes_now(void)
{
    return s.terminal < 0 || takes(s.terminal);
}

static void turn_away(void)
{
    (void)dup2(s.nowhere, terminal_now.out);
    s.deaf = 1;
}

// Behind it the write begins anew, and ends.
static void on_stuck(int number)
{
    int before = errno;
    (void)number;
    if (terminal_now.out >= 0 && !takes(s.terminal)) {
        turn_away();
    }
    errno = before;
}

static void set_timer(int seconds)
{
    const struct itimerval after = {.it_interval.tv_sec = seconds, .it_value.tv_sec = seconds};
    (void)setitimer(ITIMER_REAL, &after, NULL);
}

void terminal_deaf_open(void)
{
    struct sigaction action = {.sa_handler = on_stuck, .sa_flags = SA_RESTART};
    s.deaf = 0;
    s.terminal = fcntl(terminal_now.out, F_DUPFD_CLOEXEC, 0);
    s.nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGALRM, &action, &s.before);
}

bool terminal_takes(void)
{
    if (s.terminal < 0) {
        return true;
    }
    const bool now = takes(s.terminal);
    if (now && s.deaf) {
        (void)dup2(s.terminal, terminal_now.out);
        s.deaf = 0;
        clearok(curscr, TRUE); // a part of what was written went nowhere
    }
    return now;
}

void terminal_begin_writing(void)
{
    set_timer(s.terminal >= 0 ? TIMEOUT_S : 0);
}

void terminal_end_writing(void)
{
    set_timer(0);
}

void terminal_deaf_before_close(void)
{
    if (s.terminal >= 0 && !terminal_takes()) {
        turn_away();
    }
    terminal_begin_writing();
}

void terminal_deaf_close(void)
{
    terminal_end_writing();
    if (s.terminal < 0) {
        return;
    }
    if (s.deaf) { // what is said behind it does not arrive either
        (void)dup2(s.nowhere, terminal_now.stderr_before >= 0 ? terminal_now.stderr_before : STDERR_FILENO);
    }
    (void)sigaction(SIGALRM, &s.before, NULL);
    (void)tcsetattr(s.terminal, TCSANOW, &terminal_now.before);
    (void)close(s.terminal);
    (void)close(s.nowhere);
    s.terminal = s.nowhere = -1;
}
