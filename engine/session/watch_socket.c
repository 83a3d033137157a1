// SPDX-License-Identifier: Apache-2.0
#include "session/watch_socket.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { WAITING_MAX = 8, TIMEOUT_US = 500 * 1000 };

bool watch_path(pid_t pid, char path[WATCH_PATH_MAX])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    if (runtime == NULL || runtime[0] != '/') {
        return false;
    }
    int length = snprintf(path, WATCH_PATH_MAX, "%s/headroom/%ld.sock", runtime, (long)pid);
    return length > 0 && length < WATCH_PATH_MAX;
}

static struct sockaddr_un address_of(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    return address;
}

// The folder of the socket must be ours and closed to others: what stands there is then our own.
static hr_status check_folder(const char *path, hr_err *err)
{
    char folder[WATCH_PATH_MAX];
    struct stat info;
    (void)snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    if (mkdir(folder, 0700) != 0 && errno != EEXIST) {
        return HR_FAIL(err, STATE, "%s: no folder for a socket: %s", folder, strerror(errno));
    }
    if (lstat(folder, &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid() ||
        (info.st_mode & 077) != 0) {
        return HR_FAIL(err, READ, "%s: needed a folder of this user alone (0700), had another", folder);
    }
    return HR_OK;
}

// Where it is made, before it can be connected to.
static bool early_path(const char *path, char early[WATCH_PATH_MAX])
{
    return snprintf(early, WATCH_PATH_MAX, "%s~", path) < WATCH_PATH_MAX;
}

void watch_remove(const char *path)
{
    char early[WATCH_PATH_MAX];
    (void)unlink(path);
    if (early_path(path, early)) {
        (void)unlink(early);
    }
}

// Its process is no more (nor one of that number in another container: nothing listens there).
static bool is_dead(const char *folder, const char *name)
{
    char path[WATCH_PATH_MAX];
    long pid = 0;
    int read = 0, connected = -1;
    const bool named = sscanf(name, "%ld.sock%n", &pid, &read) == 1 && read > 0 && pid > 0 &&
                       (name[read] == '\0' || strcmp(name + read, "~") == 0) &&
                       snprintf(path, sizeof path, "%s/%s", folder, name) < WATCH_PATH_MAX;
    if (!named || kill((pid_t)pid, 0) == 0 || errno != ESRCH) {
        return false;
    }
    const bool answers = watch_connect(path, &connected, NULL) == HR_OK;
    if (answers) {
        (void)close(connected);
    }
    return !answers;
}

// What runs that were killed have left in the folder, which is ours alone.
static void remove_dead(const char *path)
{
    char folder[WATCH_PATH_MAX];
    (void)snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    DIR *list = opendir(folder);
    for (struct dirent *e = list == NULL ? NULL : readdir(list); e != NULL; e = readdir(list)) {
        if (is_dead(folder, e->d_name)) {
            (void)unlinkat(dirfd(list), e->d_name, 0);
        }
    }
    if (list != NULL) {
        (void)closedir(list);
    }
}

hr_status watch_listen(const char *path, int *listening, hr_err *err)
{
    char early[WATCH_PATH_MAX];
    *listening = -1;
    if (!early_path(path, early)) {
        return HR_FAIL(err, STATE, "%s: too long for a socket's address", path);
    }
    HR_TRY(check_folder(path, err));
    remove_dead(path);
    const struct sockaddr_un address = address_of(early);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)unlink(early); // of a process of our number that is no more
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        chmod(early, 0600) != 0 || listen(fd, WAITING_MAX) != 0 || rename(early, path) != 0) {
        (void)HR_FAIL(err, STATE, "%s: no socket to be watched at: %s", path, strerror(errno));
        (void)unlink(early);
        if (fd >= 0) {
            (void)close(fd);
        }
        return HR_STATE;
    }
    *listening = fd;
    return HR_OK;
}

static bool is_this_user(int fd)
{
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

int watch_accept(int listening)
{
    int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0 && !is_this_user(fd)) {
        (void)close(fd);
        errno = EPERM;
        return -1;
    }
    return fd;
}

// Behind too many others that knock the kernel has us wait; a stopped process accepts no connection.
hr_status watch_connect(const char *path, int *connected, hr_err *err)
{
    const struct sockaddr_un address = address_of(path);
    const struct timeval timeout = {.tv_usec = TIMEOUT_US};
    const bool fits = strlen(path) < sizeof address.sun_path;
    int fd = fits ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    const bool reached = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) == 0 &&
                         connect(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    const bool busy = fd >= 0 && !reached && errno == EAGAIN;
    *connected = -1;
    if (!reached || !is_this_user(fd)) {
        (void)HR_FAIL(err, READ, "%s: %s", path,
                      busy ? "too many wait for a connection there, and none is accepted"
                           : "no training of this user can be watched there");
        hr_err_try(err, "headroom watch, for what can be watched");
        if (fd >= 0) {
            (void)close(fd);
        }
        return HR_READ;
    }
    *connected = fd;
    return HR_OK;
}
