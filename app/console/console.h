// SPDX-License-Identifier: Apache-2.0
// `headroom script -i [PRESET]`: a person, or a pipe, and the session of Lua that their lines go to.
#ifndef APP_CONSOLE_CONSOLE_H
#define APP_CONSOLE_CONSOLE_H

#include "headroom/status.h"

// `preset`: NULL for none; `history`: the file of lines typed before, "" for none. From a pipe there is no prompt, and the first
// error ends it with 1. Returns the exit code.
int console_main(const char *preset, const char *history);

#endif
