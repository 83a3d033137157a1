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
    b->facts = file_facts_of(&facts);
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
    return b->fd < 0 ? HR_OK : file_check_same(b->fd, b->name, &b->facts, err);
}

hr_status blob_at(const blob *b, uint64_t offset, uint32_t count, uint8_t *scratch, const uint8_t **out,
                  hr_err *err)
{
    const uint64_t had = offset < b->size_bytes ? b->size_bytes - offset : 0;
    *out = NULL;
    if (had < count) {
        return HR_FAIL(err, DATA, "%s, offset %" PRIu64 ": needed %u bytes, had %" PRIu64, b->name, offset,
                       count, had);
    }
    HR_TRY(b->held == NULL ? file_read_all(b->fd, b->name, offset, count, scratch, err) : HR_OK);
    *out = b->held != NULL ? b->held + offset : scratch;
    return HR_OK;
}
