// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/host_mem.h"
#include "base/text.h"

enum { FILE_BUFFER_BYTES = 64 << 10, FILE_NAMES_TRIED = 100 };

#define TEMPORARY_ENDING ".headroom.tmp"

static atomic_uint_fast64_t operations; // since the last file_fail_at
static atomic_uint_fast64_t failing;    // which of them fails; 0: none
static atomic_int failing_with = EIO;

uint64_t file_fail_at(uint64_t nth)
{
    atomic_store(&failing, nth);
    return atomic_exchange(&operations, 0);
}

void file_fail_with(int failure)
{
    atomic_store(&failing_with, failure);
}

// Counts one operation; true, with errno set, when it is the one that must fail.
static bool must_fail(void)
{
    if (atomic_fetch_add(&operations, 1) + 1 != atomic_load(&failing)) {
        return false;
    }
    errno = atomic_load(&failing_with);
    return true;
}

static int open_file(const char *path, int flags)
{
    return must_fail() ? -1 : open(path, flags | O_CLOEXEC, 0666);
}

// What cannot be read as a file, or NULL. A pipe is read where a person's shell hands it over (/dev/stdin, /dev/fd/63);
// one that lies among files would wait for a writer that may never come.
static const char *what_it_is(const char *path, const struct stat *status)
{
    const bool handed_over = strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0;
    return S_ISDIR(status->st_mode)                                                 ? "a folder"
           : !handed_over && S_ISFIFO(status->st_mode)                              ? "a pipe"
           : S_ISSOCK(status->st_mode)                                              ? "a socket"
           : !handed_over && (S_ISCHR(status->st_mode) || S_ISBLK(status->st_mode)) ? "a device"
                                                                                    : NULL;
}

// Opens a file for reading without waiting for a pipe's writer; *status is filled. -1 with *why said.
static int open_to_read(const char *path, struct stat *status, const char **why)
{
    const int fd = open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    const bool known = fd >= 0 && fstat(fd, status) == 0;
    *why = known ? what_it_is(path, status) : strerror(errno);
    if (*why == NULL && (S_ISREG(status->st_mode) || fcntl(fd, F_SETFL, 0) == 0)) {
        return fd;
    }
    *why = *why == NULL ? strerror(errno) : *why;
    file_close(fd);
    return -1;
}

static ssize_t read_some(int fd, void *to, size_t bytes)
{
    ssize_t got;
    do {
        got = must_fail() ? -1 : read(fd, to, bytes);
    } while (got < 0 && errno == EINTR);
    return got;
}

static bool write_all(int fd, const char *from, size_t bytes)
{
    while (bytes > 0) {
        ssize_t written = must_fail() ? -1 : write(fd, from, bytes);
        if (written < 0 && errno != EINTR) {
            return false;
        }
        if (written > 0) {
            from += written;
            bytes -= (size_t)written;
        }
    }
    return true;
}

// ---- why a file cannot be written -------------------------------------------------------------------------------

static const char *folder_of(const char *path, char folder[PATH_MAX])
{
    text_copy(folder, PATH_MAX, path);
    char *slash = strrchr(folder, '/');
    if (slash == NULL) {
        text_copy(folder, PATH_MAX, ".");
    } else {
        slash[slash == folder] = '\0'; // "/name" is in "/"
    }
    return folder;
}

// What helps against an errno of writing in `folder`; a full disk is the status' own default.
static hr_status refuse_writing(const char *folder, int failure, hr_err *err)
{
    if (failure == EACCES || failure == EPERM) {
        hr_err_try(err, "ls -ld '%s', or another folder", folder);
    } else if (failure == EROFS) {
        hr_err_try(err, "another folder: what '%s' lies on is read-only", folder);
    } else if (failure == ENOENT || failure == ENOTDIR) {
        hr_err_try(err, "mkdir -p '%s', or another folder", folder);
    }
    return HR_WRITE;
}

static hr_status refuse_target(const char *target, int failure, hr_err *err)
{
    char folder[PATH_MAX];
    return refuse_writing(folder_of(target, folder), failure, err);
}

// ---- reading --------------------------------------------------------------------------------------------------

static hr_status too_large(const char *path, uint64_t limit_bytes, hr_err *err)
{
    return HR_FAIL(err, READ, "%s: may have at most %" PRIu64 " bytes, has more", path, limit_bytes);
}

// Reads to the end rather than to the size that the file had: it may grow, and a pipe has none.
static hr_status read_to_end(int fd, const char *path, uint64_t limit_bytes, size_t expected_bytes,
                             text *into, hr_err *err)
{
    size_t room = expected_bytes;
    for (;;) {
        char *grown = hr_realloc(into->data, into->length + room + 1, 1);
        if (grown == NULL) {
            return HR_FAIL(err, NOMEM, "%s: needed %zu bytes to read it", path, into->length + room + 1);
        }
        into->data = grown;
        into->capacity = into->length + room + 1;
        while (into->length < into->capacity) {
            ssize_t got = read_some(fd, into->data + into->length, into->capacity - into->length);
            if (got < 0) {
                return HR_FAIL(err, READ, "%s: cannot be read at byte %zu: %s", path, into->length,
                               strerror(errno));
            }
            if (got == 0) {
                into->data[into->length] = '\0';
                return HR_OK;
            }
            into->length += (size_t)got;
            if (into->length > limit_bytes) {
                return too_large(path, limit_bytes, err);
            }
        }
        room = into->length < FILE_BUFFER_BYTES ? FILE_BUFFER_BYTES : into->length;
    }
}

static hr_status open_failed(const char *path, const struct stat *status, const char *why, hr_err *err)
{
    const bool is_other = status->st_mode != 0 && !S_ISREG(status->st_mode);
    (void)HR_FAIL(err, READ, is_other ? "%s: needed a file, it is %s" : "%s: cannot be opened: %s", path,
                  why);
    hr_err_try(err, "ls -l '%s'", path);
    return HR_READ;
}

hr_status file_open(const char *path, int *fd, hr_err *err)
{
    struct stat info = {0};
    const char *why = NULL;
    *fd = open_to_read(path, &info, &why);
    return *fd >= 0 ? HR_OK : open_failed(path, &info, why, err);
}

hr_status file_read_rest(int fd, const char *path, uint64_t limit_bytes, char **data, size_t *bytes,
                         hr_err *err)
{
    struct stat info = {0};
    const off_t place = lseek(fd, 0, SEEK_CUR); // a pipe has none
    const off_t begin = place > 0 ? place : 0;
    text content = {0};
    *data = NULL;
    *bytes = 0;
    const off_t rest = fstat(fd, &info) == 0 && info.st_size > begin ? info.st_size - begin : 0;
    hr_status status = (uint64_t)rest > limit_bytes
                           ? too_large(path, limit_bytes, err)
                           : read_to_end(fd, path, limit_bytes, (size_t)rest, &content, err);
    if (status == HR_READ) {
        hr_err_try(err, "ls -l '%s'", path);
    }
    if (status != HR_OK) {
        text_deinit(&content);
        return status;
    }
    *data = content.data;
    *bytes = content.length;
    return HR_OK;
}

hr_status file_read(const char *path, uint64_t limit_bytes, char **data, size_t *bytes, hr_err *err)
{
    int fd = -1;
    *data = NULL;
    *bytes = 0;
    HR_TRY(file_open(path, &fd, err));
    hr_status status = file_read_rest(fd, path, limit_bytes, data, bytes, err);
    file_close(fd);
    return status;
}

ptrdiff_t file_read_some(int fd, void *to, size_t bytes)
{
    return read_some(fd, to, bytes);
}

// For file systems that have no files without a name: it has one until it is removed here.
static int make_and_remove(const char *folder)
{
    char name[PATH_MAX];
    const int length = snprintf(name, sizeof name, "%s/headroom.XXXXXX", folder);
    if (length < 0 || (size_t)length >= sizeof name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    const int fd = must_fail() ? -1 : mkostemp(name, O_CLOEXEC);
    if (fd >= 0) {
        (void)unlink(name);
    }
    return fd;
}

static int make_nameless(const char *folder)
{
    const int fd = must_fail() ? -1 : open(folder, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    return fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR) ? make_and_remove(folder) : fd;
}

// 0, or what failed: a signal's handler is no failure.
static int set_aside(int fd, uint64_t bytes)
{
    int failure;
    do {
        failure = must_fail() ? EIO : posix_fallocate(fd, 0, (off_t)bytes);
    } while (failure == EINTR);
    return failure;
}

hr_status file_open_nameless(const char *folder, uint64_t bytes, int *fd, hr_err *err)
{
    *fd = make_nameless(folder);
    if (*fd < 0) {
        const int failure = errno;
        (void)HR_FAIL(err, WRITE, "%s: needed a folder that takes files, had: %s", folder, strerror(failure));
        return refuse_writing(folder, failure, err);
    }
    const int failure = set_aside(*fd, bytes);
    if (failure != 0) {
        file_close(*fd);
        *fd = -1;
        return HR_FAIL(err, WRITE, "%s: needed a file of %" PRIu64 " bytes, had: %s", folder, bytes,
                       strerror(failure));
    }
    return HR_OK;
}

hr_status file_read_at(int fd, uint64_t offset, void *to, uint64_t bytes, const char *name, hr_err *err)
{
    for (uint64_t done = 0; done < bytes;) {
        const ssize_t got =
            must_fail() ? -1 : pread(fd, (char *)to + done, bytes - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return HR_FAIL(err, READ, "%s, offset %" PRIu64 ": needed %" PRIu64 " bytes, had %s", name,
                           offset, bytes, got < 0 ? strerror(errno) : "fewer");
        }
        done += (uint64_t)got;
    }
    return HR_OK;
}

hr_status file_write_at(int fd, uint64_t offset, const void *from, uint64_t bytes, const char *name,
                        hr_err *err)
{
    for (uint64_t done = 0; done < bytes;) {
        const ssize_t put =
            must_fail() ? -1 : pwrite(fd, (const char *)from + done, bytes - done, (off_t)(offset + done));
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            return HR_FAIL(err, WRITE, "%s, offset %" PRIu64 ": cannot be written: %s", name, offset,
                           strerror(errno));
        }
        done += (uint64_t)put;
    }
    return HR_OK;
}

void file_close(int fd)
{
    if (fd >= 0) {
        (void)close(fd);
    }
}

// ---- writing --------------------------------------------------------------------------------------------------

struct file_writer {
    int fd, folder_fd;
    int failure; // errno of the first write that failed; 0: none. It stays, so that a gap is never committed
    unsigned number; // in the name of the temporary
    bool stands;     // under its own name, whole
    bool keeps;      // what stands under its name
    size_t buffered;
    char target[PATH_MAX];    // with links resolved, so that a link stays one
    char temporary[PATH_MAX]; // in the folder of target
    mode_t mode;              // of the file that is replaced; 0: the person's umask decides
    char buffer[FILE_BUFFER_BYTES];
};

static hr_status resolve_target(file_writer *w, const char *path, hr_err *err)
{
    struct stat status;
    bool exists = stat(path, &status) == 0;
    if (exists && !S_ISREG(status.st_mode)) { // a rename would replace the device or pipe itself
        return HR_FAIL(err, WRITE, "%s: needed a file, it is a %s", path,
                       S_ISDIR(status.st_mode) ? "folder" : "device or pipe");
    }
    if (exists &&
        (status.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)) == 0) { // the rename would succeed all the same
        (void)HR_FAIL(err, WRITE, "%s: needed a file that may be written, it is read-only", path);
        hr_err_try(err, "chmod u+w '%s', or another file", path);
        return HR_WRITE;
    }
    if (exists && realpath(path, w->target) != NULL) {
        w->mode = status.st_mode & (S_IRWXU | S_IRWXG | S_IRWXO);
        return HR_OK;
    }
    if (!text_copy(w->target, sizeof w->target, path)) {
        return HR_FAIL(err, WRITE, "the file name has %zu characters, at most %d are allowed", strlen(path),
                       PATH_MAX - 1);
    }
    return HR_OK;
}

// False: it is too long.
static bool name_temporary(char name[PATH_MAX], const char *target, long pid, unsigned number)
{
    return snprintf(name, PATH_MAX, "%s.%ld-%u" TEMPORARY_ENDING, target, pid, number) < PATH_MAX;
}

// Whoever finds it unlocked takes it for a leftover. False when that has happened.
static bool is_kept(int fd)
{
    struct stat status;
    const bool taken = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    return !taken && (fstat(fd, &status) != 0 || status.st_nlink > 0);
}

// A name of its own, in the mode of the file that is replaced or of the person's umask, which mkstemp would not give.
static hr_status open_temporary(file_writer *w, hr_err *err)
{
    for (unsigned i = 0; i < FILE_NAMES_TRIED; i++) {
        if (!name_temporary(w->temporary, w->target, (long)getpid(), i)) {
            errno = ENAMETOOLONG;
            break;
        }
        w->fd = open_file(w->temporary, O_WRONLY | O_CREAT | O_EXCL);
        w->number = i;
        if (w->fd >= 0 ? is_kept(w->fd) : errno != EEXIST) {
            break;
        }
        file_close(w->fd); // another process took it for a leftover, before it was locked
        w->fd = -1;
    }
    if (w->fd < 0 || (w->mode != 0 && fchmod(w->fd, w->mode) != 0)) {
        const int failure = errno;
        (void)HR_FAIL(err, WRITE, "%s: cannot be created: %s", w->target, strerror(failure));
        return refuse_target(w->target, failure, err);
    }
    return HR_OK;
}

// "TARGET.PID-N.headroom.tmp"
static bool is_temporary_of(const char *name, const char *target)
{
    long pid = 0;
    unsigned number = 0;
    int read = 0;
    const size_t length = strlen(target);
    return strncmp(name, target, length) == 0 &&
           sscanf(name + length, ".%ld-%u" TEMPORARY_ENDING "%n", &pid, &number, &read) == 2 && read > 0 &&
           name[length + (size_t)read] == '\0';
}

// While it is locked here no other process puts another file in its place: its writer is gone, and others pass it over.
static void remove_if_left(int folder, const char *name)
{
    struct stat file = {0}, there = {0};
    const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const bool ours = fd >= 0 && fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_uid == geteuid();
    if (ours && flock(fd, LOCK_EX | LOCK_NB) == 0 &&
        fstatat(folder, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && there.st_dev == file.st_dev &&
        there.st_ino == file.st_ino) {
        (void)unlinkat(folder, name, 0);
    }
    file_close(fd);
}

void file_remove_leftovers(const char *path)
{
    char target[PATH_MAX], folder[PATH_MAX];
    if (realpath(path, target) == NULL && !text_copy(target, sizeof target, path)) {
        return;
    }
    const char *slash = strrchr(target, '/');
    const char *leaf = slash == NULL ? target : slash + 1;
    DIR *list = opendir(folder_of(target, folder));
    for (struct dirent *entry = list == NULL ? NULL : readdir(list); entry != NULL; entry = readdir(list)) {
        if (is_temporary_of(entry->d_name, leaf)) {
            remove_if_left(dirfd(list), entry->d_name);
        }
    }
    if (list != NULL) {
        (void)closedir(list);
    }
}

hr_status file_writer_open(const char *path, file_writer **out, hr_err *err)
{
    *out = NULL;
    file_writer *w = hr_calloc(1, sizeof *w);
    if (w == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %zu bytes to write it", path, sizeof *w);
    }
    w->fd = w->folder_fd = -1;
    hr_status status = resolve_target(w, path, err);
    if (status == HR_OK) {
        char folder[PATH_MAX];
        w->folder_fd = open_file(folder_of(w->target, folder), O_RDONLY | O_DIRECTORY);
        if (w->folder_fd < 0) {
            const int failure = errno;
            (void)HR_FAIL(err, WRITE, "%s: its folder cannot be opened: %s", path, strerror(failure));
            status = refuse_target(w->target, failure, err);
        }
    }
    if (status == HR_OK) {
        file_remove_leftovers(w->target);
        status = open_temporary(w, err);
    }
    if (status != HR_OK) {
        file_writer_abandon(w);
        return status;
    }
    *out = w;
    return HR_OK;
}

static hr_status refuse_other(const char *path, hr_err *err)
{
    (void)HR_FAIL(err, WRITE, "%s: is there already, and stays as it is", path);
    hr_err_try(err, "another file name");
    return HR_WRITE;
}

hr_status file_writer_keep_others(file_writer *w, hr_err *err)
{
    struct stat there;
    w->keeps = true;
    return lstat(w->target, &there) == 0 ? refuse_other(w->target, err) : HR_OK;
}

hr_status file_writer_make_private(file_writer *w, hr_err *err)
{
    return w->mode != 0 || fchmod(w->fd, S_IRUSR | S_IWUSR) == 0
               ? HR_OK
               : HR_FAIL(err, WRITE, "%s: cannot be made private: %s", w->target, strerror(errno));
}

static hr_status write_failed(const file_writer *w, hr_err *err)
{
    if (w->keeps && w->failure == EEXIST) {
        return refuse_other(w->target, err);
    }
    (void)HR_FAIL(err, WRITE, "%s: cannot be written: %s", w->target, strerror(w->failure));
    return refuse_target(w->target, w->failure, err);
}

// Passes `done` on, keeping the reason when it is false.
static bool keep_failure(file_writer *w, bool done)
{
    if (!done && w->failure == 0) {
        w->failure = errno;
    }
    return done;
}

static bool flush_buffer(file_writer *w)
{
    bool written = w->failure == 0 && keep_failure(w, write_all(w->fd, w->buffer, w->buffered));
    w->buffered = 0;
    return written;
}

static bool write_whole(file_writer *w)
{
    return flush_buffer(w) && keep_failure(w, !must_fail() && fsync(w->fd) == 0);
}

// A link replaces nothing; not every file system has them.
static bool give_name(const file_writer *w)
{
    if (!w->keeps) {
        return rename(w->temporary, w->target) == 0;
    }
    if (link(w->temporary, w->target) == 0) {
        (void)unlink(w->temporary);
        return true;
    }
    if (errno == EEXIST || access(w->target, F_OK) == 0) {
        errno = EEXIST;
        return false;
    }
    return rename(w->temporary, w->target) == 0;
}

static bool take_place(file_writer *w)
{
    w->stands = keep_failure(w, !must_fail() && give_name(w));
    return w->stands;
}

hr_status file_writer_add(file_writer *w, const void *data, size_t bytes, hr_err *err)
{
    if (bytes > sizeof w->buffer - w->buffered && !flush_buffer(w)) {
        return write_failed(w, err);
    }
    if (bytes > sizeof w->buffer) {
        return keep_failure(w, write_all(w->fd, data, bytes)) ? HR_OK : write_failed(w, err);
    }
    if (bytes > 0) {
        memcpy(w->buffer + w->buffered, data, bytes);
    }
    w->buffered += bytes;
    return HR_OK;
}

// From here the file stands whole under its name. A folder that cannot be synced (some network file systems)
// may lose the rename in a power cut, and then the old file is still whole.
static void close_written(file_writer *w)
{
    (void)fsync(w->folder_fd);
    close(w->folder_fd);
    close(w->fd);
    hr_free(w);
}

hr_status file_writer_commit(file_writer *w, hr_err *err)
{
    if (!write_whole(w) || !take_place(w)) {
        hr_status status = write_failed(w, err);
        file_writer_abandon(w);
        return status;
    }
    close_written(w);
    return HR_OK;
}

void file_writer_abandon(file_writer *w)
{
    if (w == NULL) {
        return;
    }
    if (w->fd >= 0) {
        close(w->fd);
    }
    if (w->fd >= 0 && !w->stands) {
        unlink(w->temporary);
    }
    if (w->folder_fd >= 0) {
        close(w->folder_fd);
    }
    hr_free(w);
}

// ---- in one go ------------------------------------------------------------------------------------------------

hr_status hr_file_write(const char *path, const void *data, size_t bytes, hr_file_rule rule, hr_err *err)
{
    file_writer *w = NULL;
    HR_TRY(file_writer_open(path, &w, err));
    hr_status status = rule == HR_FILE_NEW       ? file_writer_keep_others(w, err)
                       : rule == HR_FILE_PRIVATE ? file_writer_make_private(w, err)
                                                 : HR_OK;
    status = status == HR_OK ? file_writer_add(w, data, bytes, err) : status;
    if (status != HR_OK) {
        file_writer_abandon(w);
        return status;
    }
    return file_writer_commit(w, err);
}

// ---- two files that belong together ---------------------------------------------------------------------------

// What is replaced, until both new ones stand.
typedef struct old_file {
    bool kept; // under `name`
    int fd;    // locks it, so that nobody takes it for a leftover
    char name[PATH_MAX];
} old_file;

// Under a second name, or where it has to go or the file system knows no second names, under that alone. True without one, too.
static bool keep_old(file_writer *w, bool has_to_go, old_file *old)
{
    if (access(w->target, F_OK) != 0) {
        return true;
    }
    if (!name_temporary(old->name, w->target, (long)getpid(), w->number + FILE_NAMES_TRIED)) {
        errno = ENAMETOOLONG;
        return keep_failure(w, false);
    }
    old->fd = open(w->target, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    (void)flock(old->fd, LOCK_EX | LOCK_NB);
    old->kept = (!has_to_go && !must_fail() && link(w->target, old->name) == 0) ||
                (!must_fail() && rename(w->target, old->name) == 0);
    return keep_failure(w, old->kept);
}

// Two names of one file stay two: rename does nothing then.
static void put_back(const file_writer *w, const old_file *old)
{
    if (!old->kept && w->stands) {
        (void)unlink(w->target);
    } else if (old->kept && rename(old->name, w->target) == 0) {
        (void)unlink(old->name);
    }
}

static bool replace_both(file_writer *first, file_writer *second, old_file old[2])
{
    return write_whole(first) && write_whole(second) && keep_old(second, true, &old[1]) &&
           keep_old(first, false, &old[0]) && take_place(first) && take_place(second);
}

hr_status file_writer_commit_both(file_writer *first, file_writer *second, hr_err *err)
{
    old_file old[2] = {{.fd = -1}, {.fd = -1}};
    const bool done = replace_both(first, second, old);
    hr_status status = HR_OK;
    if (done) {
        close_written(first);
        close_written(second);
    } else {
        status = write_failed(first->failure != 0 ? first : second, err);
        put_back(first, &old[0]);
        put_back(second, &old[1]);
        file_writer_abandon(first);
        file_writer_abandon(second);
    }
    for (int k = 0; k < 2; k++) {
        if (done && old[k].kept) {
            (void)unlink(old[k].name);
        }
        file_close(old[k].fd);
    }
    return status;
}

// ---- folders of the person ------------------------------------------------------------------------------------

bool hr_file_xdg(const char *variable, const char *home_default, const char *leaf, char *path, size_t size)
{
    path[0] = '\0';
    const char *slash = leaf[0] == '\0' ? "" : "/";
    const char *base = getenv(variable);
    int length;
    if (base != NULL && base[0] == '/') { // the specification has relative ones ignored
        length = snprintf(path, size, "%s/headroom%s%s", base, slash, leaf);
    } else {
        const char *home = getenv("HOME");
        if (home == NULL || home[0] == '\0') {
            return false;
        }
        length = snprintf(path, size, "%s/%s/headroom%s%s", home, home_default, slash, leaf);
    }
    if (length < 0 || (size_t)length >= size) {
        path[0] = '\0';
        return false;
    }
    return true;
}

bool hr_file_make_folders(const char *path)
{
    char folder[PATH_MAX];
    if (!text_copy(folder, sizeof folder, path)) {
        return false;
    }
    for (char *slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(folder, S_IRWXU) != 0 && errno != EEXIST) {
            return false;
        }
        *slash = '/';
    }
    return true;
}
