// SPDX-License-Identifier: Apache-2.0
#include "app/tui/base/folders.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void folders_make_above(const char *path)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(folder, 0700);
        *slash = '/';
    }
}
