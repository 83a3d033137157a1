// SPDX-License-Identifier: Apache-2.0
#include "app/cli/interrupt.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

enum { BY_SIGNAL = 128 };

static const int invitations[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGPIPE};

static volatile sig_atomic_t seen; // its number

// A shell that hangs up and a `timeout` send theirs twice, and a reader that has gone goes on not reading.
static void on_signal(int number)
{
    if (seen && (number == SIGINT || number == SIGQUIT)) {
        _exit(BY_SIGNAL + number);
    }
    seen = seen ? seen : number;
}

void interrupt_watch(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
    (void)sigemptyset(&action.sa_mask);
    for (size_t k = 0; k < sizeof invitations / sizeof *invitations; k++) {
        const int number = invitations[k];
        const bool ignored = sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_IGN;
        if (!ignored || number == SIGINT || number == SIGTERM) { // a shell's background job ignores SIGINT
            (void)sigaction(number, &action, NULL);
        }
    }
}

bool interrupt_seen(void)
{
    return seen != 0;
}

int interrupt_exit_code(void)
{
    return BY_SIGNAL + (seen ? seen : SIGINT);
}
