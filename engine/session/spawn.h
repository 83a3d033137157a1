// SPDX-License-Identifier: Apache-2.0
// A child process of ours: this program exec'd again (/proc/self/exe, or HEADROOM_PROGRAM) as `headroom @ROLE`, with
// one end of a socket pair as descriptor 3 and nothing else of ours open. It has a process group of its own (the
// terminal's signals are not for it), dies with its parent (PR_SET_PDEATHSIG, and the socket's end), is the first that
// the kernel kills when host memory is short (oom_score_adj), and writes its stderr into a pipe whose last lines are
// kept.
#ifndef SESSION_SPAWN_H
#define SESSION_SPAWN_H

#include <stdbool.h>
#include <sys/types.h>

#include "headroom/status.h"

typedef struct child {
    pid_t pid;
    int pidfd;  // readable when it has ended
    int socket; // ours
    int errors; // its stderr, non-blocking; −1: none
    bool reaped;
    int exit_code, signal; // once reaped: −1 and the signal, or the code and 0
} child;

// posix_spawn or vfork-like: safe with threads. STATE error with the reason.
HR_MUST_CHECK hr_status child_spawn(const char *role, child *c, hr_err *err);
bool child_reap(child *c); // true once it has ended; never waits
void child_wait(child *c); // until it has
void child_signal(const child *c, int number);
void child_close(child *c); // kills what lives, reaps, closes

// In the child: makes it what is said above, as far as the kernel lets it. Returns the socket; −1: not spawned by us.
int child_begin(void);

#endif
