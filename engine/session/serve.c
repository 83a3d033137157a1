// SPDX-License-Identifier: Apache-2.0
#include "session/serve.h"

#include <stdio.h>
#include <string.h>

#include "headroom/session.h"

#include "session/planning_serve.h"
#include "session/spawn.h"

static const struct {
    const char *role;
    int (*serve)(int socket);
} roles[] = {
    {"worker", worker_serve},
    {"planner", planning_serve},
};

int hr_session_serve(const char *role)
{
    for (size_t k = 0; k < sizeof roles / sizeof *roles; k++) {
        if (strcmp(role, roles[k].role) == 0) {
            int socket = child_begin();
            return socket >= 0 ? roles[k].serve(socket) : hr_status_exit_code(HR_USAGE);
        }
    }
    return hr_status_exit_code(HR_USAGE);
}
