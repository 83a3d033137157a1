// SPDX-License-Identifier: Apache-2.0
#include "app/tui/terminfo.h"

#include <ncurses.h>
#include <stddef.h>
#include <stdint.h>
#include <term.h>

const char *terminfo_string(const char *name)
{
    const char *sequence = tigetstr(name);
    return sequence == NULL || (intptr_t)sequence == -1 ? "" : sequence;
}

bool terminfo_look(int fd, bool *places)
{
    int found = 0;
    if (setupterm(NULL, fd, &found) != OK) {
        return false;
    }
    *places = terminfo_string("cup")[0] != '\0';
    del_curterm(cur_term);
    return true;
}
