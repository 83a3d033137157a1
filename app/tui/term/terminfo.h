// SPDX-License-Identifier: Apache-2.0
// The terminal's description, and what terminals can beyond it. Apart from terminal.c because term.h makes macros of
// words such as `columns`.
#ifndef TUI_TERMINFO_H
#define TUI_TERMINFO_H

#include <stdbool.h>

// Looks a terminal up (NULL: TERM) without writing anything: false when there is no such description. *places: it can put
// its cursor.
bool terminfo_look(const char *type, int fd, bool *places);
// A sequence of the open terminal, "" when it has none.
const char *terminfo_string(const char *name);

typedef struct terminal_abilities {
    bool paste;     // brackets around what is pasted (CSI ? 2004)
    bool clipboard; // takes text for the clipboard (OSC 52), or drops it unseen
    bool sync;      // shows a frame when it is whole (CSI ? 2026)
} terminal_abilities;

// Of the open terminal, whose TERM is `type`. What neither its description nor the table in terminfo.c says, it is not
// asked for: a console would print it.
terminal_abilities terminfo_abilities(const char *type);

#endif
