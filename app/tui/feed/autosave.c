// SPDX-License-Identifier: Apache-2.0
#include "app/tui/feed/autosave.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headroom/files.h"

enum { HOST_MAX = 65, PREFIX_MAX = HOST_MAX + 16 };

// A state folder may be shared with other machines, where our numbers of processes mean nothing.
static void write_prefix(char prefix[PREFIX_MAX])
{
    char host[HOST_MAX] = "";
    (void)gethostname(host, sizeof host - 1);
    snprintf(prefix, PREFIX_MAX, "autosave-%s-", host);
}

typedef enum kind { KIND_OTHER, KIND_WHOLE, KIND_LEFT, KIND_BROKEN } kind;

// By the clock of files; 0: unknown. /proc/PID/stat has it as its field 22, in ticks since the machine was started; its
// second field may have anything in its brackets (proc_pid_stat(5)).
static time_t began_at(int pid)
{
    char path[32], line[1024] = "";
    unsigned long long ticks = 0;
    struct timespec up = {0};
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    const char *rest = f != NULL && fgets(line, sizeof line, f) != NULL ? strrchr(line, ')') : NULL;
    if (f != NULL) {
        (void)fclose(f);
    }
    for (int field = 2; rest != NULL && field < 22; field++) {
        rest = strchr(rest + 1, ' ');
    }
    if (rest == NULL || sscanf(rest, "%llu", &ticks) != 1 || clock_gettime(CLOCK_BOOTTIME, &up) != 0) {
        return 0;
    }
    return time(NULL) - up.tv_sec + (time_t)(ticks / (unsigned long long)sysconf(_SC_CLK_TCK));
}

// Numbers come again, after a start of the machine above all: a process that is younger than the file did not write it.
static bool is_gone(int pid, time_t written)
{
    enum { CLOCKS_APART_S = 5 };
    return kill(pid, 0) == 0 || errno != ESRCH ? began_at(pid) > written + CLOCKS_APART_S : true;
}

// Of a workbench of this machine that is no more.
static kind dead_kind(int folder, const char *name, const char *prefix)
{
    const size_t length = strlen(prefix);
    struct stat info;
    int pid = 0, read = 0;
    if (strncmp(name, prefix, length) != 0 || sscanf(name + length, "%d.%n", &pid, &read) != 1 || read == 0 ||
        pid <= 0 || fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !is_gone(pid, info.st_mtime)) {
        return KIND_OTHER;
    }
    const char *rest = name + length + read, *dot = strrchr(rest, '.');
    return strcmp(rest, "save") == 0                                    ? KIND_WHOLE
           : strcmp(rest, "left.save") == 0                             ? KIND_LEFT
           : strncmp(rest, "save.", 5) == 0 && strcmp(dot, ".tmp") == 0 ? KIND_BROKEN
                                                                        : KIND_OTHER;
}

static void remove_broken(const char *folder, const char *prefix)
{
    DIR *list = opendir(folder);
    for (struct dirent *entry = list == NULL ? NULL : readdir(list); entry != NULL; entry = readdir(list)) {
        if (dead_kind(dirfd(list), entry->d_name, prefix) == KIND_BROKEN) {
            (void)unlinkat(dirfd(list), entry->d_name, 0);
        }
    }
    if (list != NULL) {
        (void)closedir(list);
    }
}

// ---- those of the dead ----------------------------------------------------------------------------------------

static int newest_first(const void *a, const void *b)
{
    const autosave_file *one = a, *other = b;
    return one->written != other->written ? (one->written < other->written ? 1 : -1)
                                          : strcmp(one->path, other->path);
}

static bool look(const char *folder, const char *name, kind k, autosave_file *file)
{
    struct stat info;
    const int length = snprintf(file->path, sizeof file->path, "%s/%s", folder, name);
    if (length < 0 || (size_t)length >= sizeof file->path || lstat(file->path, &info) != 0 ||
        !S_ISREG(info.st_mode)) {
        return false;
    }
    file->written = info.st_mtime;
    file->bytes = (uint64_t)info.st_size;
    file->left = k == KIND_LEFT;
    return true;
}

static bool folder_of(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL || slash - path >= PATH_MAX) {
        return false;
    }
    snprintf(folder, PATH_MAX, "%.*s", (int)(slash - path), path);
    return true;
}

size_t autosave_dead(const char *path, autosave_file files[AUTOSAVES_SEEN_MAX])
{
    char folder[PATH_MAX], prefix[PREFIX_MAX];
    size_t count = 0;
    DIR *list = folder_of(path, folder) ? opendir(folder) : NULL;
    write_prefix(prefix);
    for (struct dirent *entry = list == NULL ? NULL : readdir(list); entry != NULL; entry = readdir(list)) {
        const kind k = dead_kind(dirfd(list), entry->d_name, prefix);
        if ((k == KIND_WHOLE || k == KIND_LEFT) && count < AUTOSAVES_SEEN_MAX) {
            count += look(folder, entry->d_name, k, &files[count]);
        }
    }
    if (list != NULL) {
        (void)closedir(list);
    }
    qsort(files, count, sizeof *files, newest_first);
    return count;
}

void autosave_prune(const char *path)
{
    autosave_file *files = malloc(AUTOSAVES_SEEN_MAX * sizeof *files);
    const size_t count = files == NULL ? 0 : autosave_dead(path, files);
    for (size_t k = AUTOSAVES_KEPT; k < count; k++) {
        (void)unlink(files[k].path);
    }
    free(files);
}

bool autosave_leave(const autosave_file *file)
{
    static const char ending[] = ".save";
    char left[PATH_MAX];
    const size_t stem = strlen(file->path) - strlen(ending);
    const int length = snprintf(left, sizeof left, "%.*s.left%s", (int)stem, file->path, ending);
    return length > 0 && (size_t)length < sizeof left && rename(file->path, left) == 0;
}

// ---- ours -----------------------------------------------------------------------------------------------------

// Higher than any process's number (PID_MAX_LIMIT, include/linux/threads.h).
enum { NUMBERS = 1 << 22 };

// One that stands at our path as we begin is of a dead workbench that had our number, as they do in containers: it gets a
// number that is free.
static void give_away(const char *folder, const char *prefix, const char *path)
{
    char other[PATH_MAX];
    struct stat info;
    for (int number = NUMBERS + (int)getpid(); number < INT_MAX - NUMBERS; number += NUMBERS) {
        const int length = snprintf(other, sizeof other, "%s/%s%d.save", folder, prefix, number);
        const bool fits = length > 0 && (size_t)length < sizeof other;
        if (!fits || lstat(other, &info) != 0) {
            (void)!(fits && rename(path, other) == 0); // as a rule nothing stands there
            return;
        }
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
    (void)hr_file_make_folders(path);
    give_away(folder, prefix, path);
    remove_broken(folder, prefix);
}
