// SPDX-License-Identifier: Apache-2.0
#include "app/cli/state.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char leaf[] = "last_preset";

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

static bool state_path(char *path, size_t size, const char *suffix)
{
    char folder[PATH_MAX];
    if (!state_xdg_folder("XDG_STATE_HOME", ".local/state", folder, sizeof folder)) {
        return false;
    }
    int length = snprintf(path, size, "%s/%s%s", folder, leaf, suffix);
    return length > 0 && (size_t)length < size;
}

bool state_last_preset(char *preset, size_t size)
{
    char path[PATH_MAX];
    FILE *file = state_path(path, sizeof path, "") ? fopen(path, "r") : NULL;
    if (file == NULL) {
        return false;
    }
    bool found = fgets(preset, (int)size, file) != NULL;
    (void)fclose(file);
    if (found) {
        preset[strcspn(preset, "\n")] = '\0';
    }
    return found && preset[0] != '\0';
}

// Makes every folder on the way to `path`, as mkdir -p does.
static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
}

// Whole or not at all: a temporary file takes the place of the old one.
static void replace_file(const char *path, const char *fresh, const char *line)
{
    int file = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) {
        return;
    }
    bool written = dprintf(file, "%s\n", line) > 0;
    written = close(file) == 0 && written;
    if (!written || rename(fresh, path) != 0) {
        (void)unlink(fresh);
    }
}

void state_remember_preset(const char *preset)
{
    char path[PATH_MAX];
    char fresh[PATH_MAX];
    char absolute[PATH_MAX];
    bool is_path = strchr(preset, '/') != NULL || access(preset, F_OK) == 0;
    const char *line = is_path && realpath(preset, absolute) != NULL ? absolute : preset;
    if (strchr(line, '\n') == NULL && state_path(path, sizeof path, "") &&
        state_path(fresh, sizeof fresh, ".new")) {
        make_folders(path);
        replace_file(path, fresh, line);
    }
}
