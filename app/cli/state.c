// SPDX-License-Identifier: Apache-2.0
#include "app/cli/state.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

bool state_xdg_folder(const char *variable, const char *home_default, char *path, size_t size)
{
    const char *base = getenv(variable);
    const char *home = getenv("HOME");
    int length = 0;
    if (base != NULL && base[0] == '/') { // the specification has relative ones ignored
        length = snprintf(path, size, "%s/headroom", base);
    } else if (home != NULL && home[0] != '\0') {
        length = snprintf(path, size, "%s/%s/headroom", home, home_default);
    }
    return length > 0 && (size_t)length < size;
}

static bool state_path(const char *leaf, char *path, size_t size)
{
    char folder[PATH_MAX];
    if (!state_xdg_folder("XDG_STATE_HOME", ".local/state", folder, sizeof folder)) {
        return false;
    }
    int length = snprintf(path, size, "%s/%s", folder, leaf);
    return length > 0 && (size_t)length < size;
}

bool state_workbench_path(char *path, size_t size)
{
    return state_path("workbench", path, size);
}

bool state_lessons_path(char *path, size_t size)
{
    return state_path("lessons", path, size);
}
