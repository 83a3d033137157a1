// SPDX-License-Identifier: Apache-2.0
#include "app/tui/term/terminfo.h"

#include <ncurses.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <term.h>

const char *terminfo_string(const char *name)
{
    const char *sequence = tigetstr(name);
    return sequence == NULL || (intptr_t)sequence == -1 ? "" : sequence;
}

bool terminfo_look(const char *type, int fd, bool *places)
{
    int found = 0;
    if (setupterm(type, fd, &found) != OK) {
        return false;
    }
    *places = terminfo_string("cup")[0] != '\0';
    del_curterm(cur_term);
    return true;
}

// By the beginning of TERM, the longest first. tmux and screen pass on what they know themselves, and do not know 2026
// before tmux 3.6. https://gist.github.com/christianparpart/d8a62cc1ab659194337d73e399004036 lists the terminals that know 2026.
static const struct {
    const char *prefix;
    terminal_abilities can;
} known[] = {
    {"xterm-kitty", {true, true, true}}, {"xterm-ghostty", {true, true, true}},
    {"alacritty", {true, true, true}},   {"contour", {true, true, true}},
    {"foot", {true, true, true}},        {"ghostty", {true, true, true}},
    {"wezterm", {true, true, true}},     {"iterm", {true, true, false}},
    {"konsole", {true, true, false}},    {"mintty", {true, true, false}},
    {"putty", {true, true, false}},      {"rxvt", {true, true, false}},
    {"screen", {true, true, false}},     {"st-", {true, true, false}},
    {"tmux", {true, true, false}},       {"vte", {true, true, false}},
    {"xterm", {true, true, false}},
};

terminal_abilities terminfo_abilities(const char *type)
{
    // BE, Ms and Sync are names of tmux's and ncurses' extended descriptions.
    terminal_abilities can = {.paste = terminfo_string("BE")[0] != '\0',
                              .clipboard = terminfo_string("Ms")[0] != '\0',
                              .sync = terminfo_string("Sync")[0] != '\0'};
    for (size_t i = 0; type != NULL && i < sizeof known / sizeof *known; i++) {
        if (strncmp(type, known[i].prefix, strlen(known[i].prefix)) == 0) {
            can.paste = can.paste || known[i].can.paste;
            can.clipboard = can.clipboard || known[i].can.clipboard;
            can.sync = can.sync || known[i].can.sync;
            break;
        }
    }
    return can;
}
