// SPDX-License-Identifier: Apache-2.0
// The terminal's description. Apart from terminal.c because term.h makes macros of words such as `columns`.
#ifndef TUI_TERMINFO_H
#define TUI_TERMINFO_H

#include <stdbool.h>

// Looks TERM up without writing anything: false when there is no such description. *places: it can put its cursor.
bool terminfo_look(int fd, bool *places);
// A sequence of the open terminal, "" when it has none.
const char *terminfo_string(const char *name);

#endif
