// SPDX-License-Identifier: Apache-2.0
// Part of tests that compute: what a signal ends says who was computing, and with which instructions.
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "device_cpu/running.h"

// Not what a signal handler may do by the book; there is nothing left that it could spoil.
static void on_signal(int number)
{
    char isa[64];
    const char *who = cpu_running(isa, sizeof isa);
    struct sigaction plain = {.sa_handler = SIG_DFL};
    if (who != NULL) {
        (void)fprintf(stderr, "SIG%s in %s with %s\n", sigabbrev_np(number), who, isa);
        (void)fflush(stderr);
    }
    (void)sigaction(number, &plain, NULL);
    (void)raise(number);
}

__attribute__((constructor)) static void stand_by(void)
{
    static const int numbers[] = {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGABRT};
    struct sigaction action = {.sa_handler = on_signal};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        (void)sigaction(numbers[k], &action, NULL);
    }
}
