// SPDX-License-Identifier: Apache-2.0
#include "session/serve.h"

#include <stdio.h>
#include <string.h>

#include "headroom/session.h"

#include "session/planning_serve.h"
#include "session/spawn.h"

int hr_session_serve(const char *role, const hr_guest_ops *guest)
{
    const bool worker = strcmp(role, "worker") == 0;
    if (!worker && strcmp(role, "planner") != 0) {
        return hr_status_exit_code(HR_USAGE);
    }
    const int socket = child_begin();
    return socket < 0 ? hr_status_exit_code(HR_USAGE)
           : worker   ? worker_serve(socket, guest)
                      : planning_serve(socket);
}
