// SPDX-License-Identifier: Apache-2.0
#include "session/end.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/host_mem.h"
#include "base/text.h"

enum { VMSTAT_BYTES = 1 << 20, PLACE_MAX = 128 };

static const struct {
    int number;
    const char *name, *cause;
} signals[] = {
    {SIGSEGV, "SIGSEGV", "it touched memory that is not its own"},
    {SIGBUS, "SIGBUS", "memory went away under it"},
    {SIGABRT, "SIGABRT", "it gave up: a library found itself in a state that must not be"},
    {SIGILL, "SIGILL", "it came to an instruction that this processor does not have"},
    {SIGFPE, "SIGFPE", "it divided an integer by zero"},
    {SIGSYS, "SIGSYS", "it asked the kernel for what is forbidden here"},
    {SIGXCPU, "SIGXCPU", "its processor time was used up: ulimit -t"},
    {SIGXFSZ, "SIGXFSZ", "a file became larger than allowed: ulimit -f"},
    {SIGTRAP, "SIGTRAP", "it ran into a trap: a debugger, or a library that found itself broken"},
    {SIGTERM, "SIGTERM", "another process told it to end"},
    {SIGINT, "SIGINT", "it was interrupted"},
    {SIGHUP, "SIGHUP", "its terminal was closed"},
    {SIGQUIT, "SIGQUIT", "another process told it to end"},
};

uint64_t end_kernel_kills(void)
{
    static const char key[] = "\noom_kill ";
    char *data = NULL;
    size_t bytes = 0;
    if (file_read("/proc/vmstat", VMSTAT_BYTES, &data, &bytes, NULL) != HR_OK) {
        return 0;
    }
    const char *found = strstr(data, key);
    uint64_t count = found != NULL ? strtoull(found + sizeof key - 1, NULL, 10) : 0;
    hr_free(data);
    return count;
}

static void write_place(char place[PLACE_MAX], const trace_heartbeat_copy *p)
{
    if (p == NULL) {
        (void)text_copy(place, PLACE_MAX, "before it said anything");
    } else if (p->evaluates) {
        (void)snprintf(place, PLACE_MAX, "in the evaluation after step %" PRIu64, p->step);
    } else if (p->instr == HR_NO_ID) {
        (void)snprintf(place, PLACE_MAX, "between two steps, with %" PRIu64 " done", p->step);
    } else {
        (void)snprintf(place, PLACE_MAX, "in step %" PRIu64 " at instruction %" PRIu32, p->step + 1,
                       p->instr);
    }
}

void end_set_place(hr_session_end *end, const trace_heartbeat_copy *heartbeat)
{
    end->step = heartbeat != NULL ? heartbeat->step : 0;
    end->instr = heartbeat != NULL && !heartbeat->evaluates ? heartbeat->instr : HR_NO_ID;
    end->saved_step = heartbeat != NULL ? heartbeat->saved_step : HR_NONE;
}

void end_write_what(char *what, size_t size, const child *c, bool by_us, bool kernel_killed)
{
    if (c->signal == SIGKILL) {
        (void)text_copy(what, size,
                        by_us           ? "killed from here (SIGKILL)"
                        : kernel_killed ? "killed by the kernel (SIGKILL): out of host memory"
                                        : "killed from outside (SIGKILL)");
        return;
    }
    for (size_t k = 0; k < sizeof signals / sizeof *signals; k++) {
        if (signals[k].number == c->signal) {
            (void)snprintf(what, size, "ended by %s: %s", signals[k].name, signals[k].cause);
            return;
        }
    }
    if (c->signal != 0) {
        (void)snprintf(what, size, "ended by signal %d", c->signal);
    } else {
        (void)snprintf(what, size, "ended with exit code %d", c->exit_code);
    }
}

void end_describe(hr_session_end *end, const child *c, const trace_heartbeat_copy *heartbeat,
                  bool kernel_killed)
{
    char place[PLACE_MAX], what[PLACE_MAX];
    end->exit_code = c->exit_code;
    end->signal = c->signal;
    end_set_place(end, heartbeat);
    if (end->signal == 0 && end->exit_code == 0) {
        (void)text_copy(end->sentence, sizeof end->sentence, "the training was ended");
        return;
    }
    write_place(place, heartbeat);
    end_write_what(what, sizeof what, c, end->by_us, kernel_killed);
    const char *last = child_last_line(c);
    (void)snprintf(end->sentence, sizeof end->sentence, "the worker was %s, %s%s%s", what, place,
                   last[0] != '\0' ? "; the last it said: " : "", last);
}

void end_describe_silence(hr_session_end *end, const trace_heartbeat_copy *heartbeat, uint64_t silent_ns)
{
    char place[PLACE_MAX];
    *end = (hr_session_end){.exit_code = -1};
    end_set_place(end, heartbeat);
    write_place(place, heartbeat);
    (void)snprintf(end->sentence, sizeof end->sentence,
                   "the worker has done nothing for %" PRIu64 " s: it hangs or was stopped, %s",
                   silent_ns / UINT64_C(1000000000), place);
}
