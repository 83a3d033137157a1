// SPDX-License-Identifier: Apache-2.0
#include "app/tui/autosave.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/tui/remember.h"

static void remove_abandoned(const char *folder)
{
    DIR *list = opendir(folder);
    for (struct dirent *entry = list == NULL ? NULL : readdir(list); entry != NULL; entry = readdir(list)) {
        int pid = 0, read = 0;
        bool ours = sscanf(entry->d_name, "autosave-%d.save%n", &pid, &read) == 1 && read > 0 && pid > 0;
        if (ours && kill(pid, 0) != 0 && errno == ESRCH) {
            (void)unlinkat(dirfd(list), entry->d_name, 0);
        }
    }
    if (list != NULL) {
        (void)closedir(list);
    }
}

void autosave_name(const char *state_path, char *path, size_t size)
{
    char folder[PATH_MAX];
    const char *slash = state_path == NULL ? NULL : strrchr(state_path, '/');
    path[0] = '\0';
    if (slash == NULL || (size_t)(slash - state_path) >= sizeof folder) {
        return;
    }
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - state_path), state_path);
    int length = snprintf(path, size, "%s/autosave-%d.save", folder, (int)getpid());
    if (length < 0 || (size_t)length >= size) {
        path[0] = '\0';
        return;
    }
    remember_make_folders(path);
    remove_abandoned(folder);
}
