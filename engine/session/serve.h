// SPDX-License-Identifier: Apache-2.0
// The roles that this program takes when it is spawned (session/spawn.h). Each is handed its socket and returns the exit
// code of the process.
#ifndef SESSION_SERVE_H
#define SESSION_SERVE_H

#include "headroom/guest.h"

int worker_serve(int socket, const hr_guest_ops *guest); // an engine, for hr_session_start

#endif
