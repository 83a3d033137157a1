// SPDX-License-Identifier: Apache-2.0
// What the process of a person does for one in which Lua runs: signals, and the last word where it hangs.
#ifndef APP_LUA_RECIPE_PROCESS_H
#define APP_LUA_RECIPE_PROCESS_H

#include "app/lua/watch.h"

// The person's signals (INT, TERM, HUP, less what we were started to ignore), held back while these stand. A child that is started
// meanwhile has them blocked, and SIGUSR1 until it listens.
typedef struct recipe_signals {
    sigset_t asked_by, before; // the mask as it was
    int fd;                    // readable once there is one; -1
} recipe_signals;

HR_MUST_CHECK hr_status recipe_signals_begin(recipe_signals *signals, hr_err *err);
void recipe_signals_end(recipe_signals *signals);
int recipe_signals_next(const recipe_signals *signals); // its number; 0: there is none

// Reads the trace behind `hang` from the socket and says on stderr where Lua was stopped. Returns the exit code.
int recipe_report_hang(int socket, const script_hang *hang, const script_limits *limits, bool typed);

#endif
