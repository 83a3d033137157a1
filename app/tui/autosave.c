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

enum { HOST_MAX = 65, PREFIX_MAX = HOST_MAX + 16 };

// A state folder may be shared with other machines, where our numbers of processes mean nothing.
static void write_prefix(char prefix[PREFIX_MAX])
{
    char host[HOST_MAX] = "";
    (void)gethostname(host, sizeof host - 1);
    snprintf(prefix, PREFIX_MAX, "autosave-%s-", host);
}

// Whole, or half-written by a worker that died with its workbench.
static bool is_abandoned(const char *name, const char *prefix)
{
    const size_t length = strlen(prefix);
    int pid = 0, read = 0;
    if (strncmp(name, prefix, length) != 0 || sscanf(name + length, "%d.save%n", &pid, &read) != 1 ||
        read == 0 || pid <= 0) {
        return false;
    }
    const char *rest = name + length + read, *dot = strrchr(rest, '.');
    const bool ours = rest[0] == '\0' || (rest[0] == '.' && strcmp(dot, ".tmp") == 0);
    return ours && kill(pid, 0) != 0 && errno == ESRCH;
}

static void remove_abandoned(const char *folder, const char *prefix)
{
    DIR *list = opendir(folder);
    for (struct dirent *entry = list == NULL ? NULL : readdir(list); entry != NULL; entry = readdir(list)) {
        if (is_abandoned(entry->d_name, prefix)) {
            (void)unlinkat(dirfd(list), entry->d_name, 0);
        }
    }
    if (list != NULL) {
        (void)closedir(list);
    }
}

void autosave_name(const char *state_path, char *path, size_t size)
{
    char folder[PATH_MAX], prefix[PREFIX_MAX];
    const char *slash = state_path == NULL ? NULL : strrchr(state_path, '/');
    path[0] = '\0';
    if (slash == NULL || (size_t)(slash - state_path) >= sizeof folder) {
        return;
    }
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - state_path), state_path);
    write_prefix(prefix);
    int length = snprintf(path, size, "%s/%s%d.save", folder, prefix, (int)getpid());
    if (length < 0 || (size_t)length >= size) {
        path[0] = '\0';
        return;
    }
    remember_make_folders(path);
    remove_abandoned(folder, prefix);
}
