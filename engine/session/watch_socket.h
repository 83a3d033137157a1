// SPDX-License-Identifier: Apache-2.0
// Where watchers find an engine: $XDG_RUNTIME_DIR/headroom/PID.sock, for this user alone.
#ifndef SESSION_WATCH_SOCKET_H
#define SESSION_WATCH_SOCKET_H

#include <stdbool.h>
#include <sys/types.h>

#include "headroom/status.h"

enum { WATCH_PATH_MAX = 108 }; // of a socket's address

// False: there is no such folder, or its path is too long.
bool watch_path(pid_t pid, char path[WATCH_PATH_MAX]);
// Makes the folder and listens there. STATE error; READ when the folder is not this user's alone.
HR_MUST_CHECK hr_status watch_listen(const char *path, int *socket, hr_err *err);
// Removes what a process that listened, or was about to, may have left there.
void watch_remove(const char *path);
// The next client of this user that connects; −1: none.
int watch_accept(int listening);
// READ error when nothing listens there, or no answer comes for half a second.
HR_MUST_CHECK hr_status watch_connect(const char *path, int *socket, hr_err *err);

#endif
