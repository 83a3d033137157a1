// SPDX-License-Identifier: Apache-2.0
#include "app/cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include "headroom/status.h"

static volatile sig_atomic_t seen;

static void on_signal(int number)
{
    (void)number;
    if (seen) {
        _exit(hr_status_exit_code(HR_INTERRUPTED));
    }
    seen = 1;
}

void interrupt_watch(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

bool interrupt_seen(void)
{
    return seen != 0;
}
