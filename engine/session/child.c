// SPDX-License-Identifier: Apache-2.0
#include "headroom/child.h"

#include <signal.h>

#include "base/host_mem.h"
#include "session/end.h"
#include "session/spawn.h"

struct hr_child {
    child process;
    uint64_t kernel_kills; // when it began
    bool killed;           // by us
};

hr_status hr_child_start(const char *role, char *const *words, hr_child **out, hr_err *err)
{
    const child_order order = {.role = role, .words = words, .stands_in = true};
    hr_child *c = hr_calloc(1, sizeof *c);
    if (c == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a process of its own");
    }
    c->kernel_kills = end_kernel_kills();
    hr_status status = child_spawn(&order, &c->process, err);
    if (status != HR_OK) {
        hr_free(c);
        return status;
    }
    *out = c;
    return HR_OK;
}

int hr_child_socket(const hr_child *c)
{
    return c->process.socket;
}

void hr_child_signal(const hr_child *c, int number, int value)
{
    if (!c->process.reaped) { // until then no other process has its number
        (void)sigqueue(c->process.pid, number, (union sigval){.sival_int = value});
    }
}

bool hr_child_wait(hr_child *c, int timeout_ms)
{
    return child_wait(&c->process, timeout_ms);
}

void hr_child_kill(hr_child *c)
{
    if (!child_reap(&c->process)) {
        c->killed = true;
        child_signal(&c->process, SIGKILL);
    }
}

int hr_child_exit_code(const hr_child *c, int *signal)
{
    *signal = c->process.signal;
    return c->process.exit_code;
}

void hr_child_describe_end(const hr_child *c, char *text, size_t size)
{
    end_write_what(text, size, &c->process, c->killed, end_kernel_kills() > c->kernel_kills);
}

void hr_child_destroy(hr_child *c)
{
    if (c != NULL) {
        child_close(&c->process);
        hr_free(c);
    }
}

int hr_child_begin(void)
{
    return child_begin();
}
