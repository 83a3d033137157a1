// SPDX-License-Identifier: Apache-2.0
// What the program remembers between two starts, below $XDG_STATE_HOME/headroom. It never matters: where nothing can
// be written, nothing is remembered, and that is no error.
#ifndef APP_CLI_STATE_H
#define APP_CLI_STATE_H

#include <stdbool.h>
#include <stddef.h>

// The preset of the last workbench; false when there is none.
bool state_last_preset(char *preset, size_t size);
// Remembers a preset's name, or the absolute path of its file.
void state_remember_preset(const char *preset);

// $XDG_<variable>/headroom or $HOME/<home_default>/headroom; false when neither is set or it is too long.
bool state_xdg_folder(const char *variable, const char *home_default, char *path, size_t size);

#endif
