// SPDX-License-Identifier: Apache-2.0
#include "data/blob.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/host_mem.h"

static hr_status blob_refuse(const blob *b, const char *had, hr_err *err)
{
    return HR_FAIL(err, DATA, "%s: needed a file that can be read, had: %s", b->name, had);
}

// b.name is the path.
static hr_status blob_open_named(blob *b, hr_err *err)
{
    b->fd = open(b->name, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe under that name must not hold us up
    if (b->fd < 0) {
        return errno == ENOENT || errno == ENOTDIR ? HR_OK : blob_refuse(b, strerror(errno), err);
    }
    struct stat facts;
    if (fstat(b->fd, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        close(b->fd);
        b->fd = -1;
        return blob_refuse(b, "something that is not a plain file", err);
    }
    b->size_bytes = (uint64_t)facts.st_size;
    b->mtime = facts.st_mtim;
    (void)posix_fadvise(b->fd, 0, 0, POSIX_FADV_WILLNEED); // only a hint: shuffled reads find it in the cache
    return HR_OK;
}

static hr_status blob_open_as(blob *b, int length, blob *out, hr_err *err)
{
    *out = BLOB_NONE;
    if (length < 0 || (size_t)length >= sizeof b->name) {
        return blob_refuse(b, strerror(ENAMETOOLONG), err);
    }
    HR_TRY(blob_open_named(b, err));
    *out = *b;
    return HR_OK;
}

hr_status blob_open(const char *folder, const char *leaf, blob *out, hr_err *err)
{
    blob b = BLOB_NONE;
    return blob_open_as(&b, snprintf(b.name, sizeof b.name, "%s/%s", folder, leaf), out, err);
}

hr_status blob_open_path(const char *path, blob *out, hr_err *err)
{
    blob b = BLOB_NONE;
    return blob_open_as(&b, snprintf(b.name, sizeof b.name, "%s", path), out, err);
}

hr_status blob_open_again(const blob *from, const char *leaf, blob *out, hr_err *err)
{
    blob b = *from;
    *out = BLOB_NONE;
    (void)snprintf(b.name, sizeof b.name, "%.300s: %s", from->name, leaf);
    b.fd = fcntl(from->fd, F_DUPFD_CLOEXEC, 0);
    if (b.fd < 0) {
        return blob_refuse(&b, strerror(errno), err);
    }
    *out = b;
    return HR_OK;
}

hr_status blob_hold(const char *from, const char *leaf, uint64_t size_bytes, uint64_t *held_bytes, blob *out,
                    hr_err *err)
{
    blob b = BLOB_NONE;
    *out = b;
    (void)snprintf(b.name, sizeof b.name, leaf == NULL ? "%s" : "%s: %s", from, leaf);
    uint64_t most_bytes = BLOB_MOST_HELD_BYTES - *held_bytes;
    if (size_bytes > most_bytes) {
        hr_status status = HR_FAIL(err, DATA, "%s: needed at most %" PRIu64 " bytes, had %" PRIu64, b.name,
                                   most_bytes, size_bytes);
        hr_err_try(err, "unpack it and give the folder: -s pipeline.path=FOLDER");
        return status;
    }
    b.size_bytes = size_bytes;
    b.held = hr_calloc(size_bytes > 0 ? size_bytes : 1, 1);
    if (b.held == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %" PRIu64 " bytes, had less", b.name, size_bytes);
    }
    *held_bytes += size_bytes;
    *out = b;
    return HR_OK;
}

void blob_close(blob *b)
{
    hr_free(b->held);
    if (b->fd >= 0) {
        close(b->fd);
    }
    *b = BLOB_NONE;
}

bool blob_is_open(const blob *b)
{
    return b->held != NULL || b->fd >= 0;
}

hr_status blob_check_same(const blob *b, hr_err *err)
{
    struct stat facts;
    if (b->fd < 0) {
        return HR_OK;
    }
    if (fstat(b->fd, &facts) != 0) {
        return blob_refuse(b, strerror(errno), err);
    }
    if ((uint64_t)facts.st_size == b->size_bytes && facts.st_mtim.tv_sec == b->mtime.tv_sec &&
        facts.st_mtim.tv_nsec == b->mtime.tv_nsec) {
        return HR_OK;
    }
    const hr_status status = HR_FAIL(
        err, DATA, "%s: needed the file of %" PRIu64 " bytes that was opened, had one of %" PRIu64 " bytes",
        b->name, b->size_bytes, (uint64_t)facts.st_size);
    hr_err_try(err, "start again: files that are trained on must stay as they are");
    return status;
}

// Fills to[0..count); returns how many bytes there were, with errno of a failed read in *error.
static uint32_t read_from(int fd, uint64_t offset, uint32_t count, uint8_t *to, int *error)
{
    uint32_t done = 0;
    *error = 0;
    while (done < count) {
        ssize_t got = pread(fd, to + done, count - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            *error = got < 0 ? errno : 0;
            break;
        }
        done += (uint32_t)got;
    }
    return done;
}

hr_status blob_at(const blob *b, uint64_t offset, uint32_t count, uint8_t *scratch, const uint8_t **out,
                  hr_err *err)
{
    uint64_t had = offset < b->size_bytes ? b->size_bytes - offset : 0;
    int error = 0;
    *out = NULL;
    if (had >= count && b->held == NULL) {
        had = read_from(b->fd, offset, count, scratch, &error);
    }
    if (had < count) {
        return HR_FAIL(err, DATA, "%s, offset %" PRIu64 ": needed %u bytes, had %" PRIu64 "%s%s", b->name,
                       offset, count, had, error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
    }
    *out = b->held != NULL ? b->held + offset : scratch;
    return HR_OK;
}
