// SPDX-License-Identifier: Apache-2.0
#include "app/cli/state.h"

#include "headroom/files.h"

static bool state_path(const char *leaf, char *path, size_t size)
{
    return hr_file_xdg("XDG_STATE_HOME", ".local/state", leaf, path, size);
}

bool state_workbench_path(char *path, size_t size)
{
    return state_path("workbench", path, size);
}

bool state_lessons_path(char *path, size_t size)
{
    return state_path("lessons", path, size);
}

bool state_console_path(char *path, size_t size)
{
    return state_path("console", path, size);
}
