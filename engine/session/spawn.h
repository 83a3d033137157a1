// SPDX-License-Identifier: Apache-2.0
// A child process of ours: this program exec'd again (/proc/self/exe, or HEADROOM_PROGRAM) as `headroom @ROLE`, with
// one end of a socket pair as descriptor 3 and nothing else of ours open. It has a process group of its own (the
// terminal's signals are not for it), dies with the thread that spawned it (PR_SET_PDEATHSIG, and the socket's end), is
// the first that the kernel kills when host memory is short (oom_score_adj), and writes stdout and stderr into a pipe
// whose last line is kept; what the pipe does not take is lost, so that writing never blocks.
//
// One that stands in for us has our descriptors, process group, ignored and blocked signals instead: what it writes comes
// out where ours would, and the terminal's ^Z stops both.
#ifndef SESSION_SPAWN_H
#define SESSION_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "headroom/status.h"

enum { CHILD_LINE_MAX = 256, CHILD_TIMEOUT_MS = 3000 };

typedef struct child {
    pid_t pid;
    int pidfd;  // readable when it has ended; −1: the kernel has none (Linux before 5.3)
    int socket; // ours; −1 once somebody else has taken it (and closes it)
    int errors; // its stderr, non-blocking; −1: ended
    char line[CHILD_LINE_MAX],
        last_line[CHILD_LINE_MAX]; // the one that comes; the last that had anything in it
    size_t line_bytes;
    bool reaped;
    int exit_code, signal; // once reaped: −1 and the signal, or the code and 0
} child;

typedef struct child_order {
    const char *role;
    char *const *words; // that follow the role on its command line, NULL at the end; NULL: none
    bool stands_in;
} child_order;

// posix_spawn or vfork-like: safe with threads. STATE error with the reason.
HR_MUST_CHECK hr_status child_spawn(const child_order *order, child *c, hr_err *err);
bool child_reap(child *c);                 // true once it has ended; never waits
bool child_wait(child *c, int timeout_ms); // until it has; false: it had not by then
void child_listen(
    child *c); // takes what stderr has, a bounded amount, so that a flood of it cannot block the caller
const char *child_last_line(const child *c); // of its stderr, cut; ""
void child_signal(const child *c, int number);
// Kills what lives, reaps, closes. What the kernel does not let go (a disk or a driver that does not answer) is left to it
// after CHILD_TIMEOUT_MS.
void child_close(child *c);

// In the child: makes it what is said above, as far as the kernel lets it. Returns the socket; −1: not spawned by us.
int child_begin(void);

#endif
