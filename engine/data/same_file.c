// SPDX-License-Identifier: Apache-2.0
#include "data/same_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"

uint32_t file_mark(const struct stat *facts)
{
    const uint64_t when[] = {(uint64_t)facts->st_mtim.tv_sec, (uint64_t)facts->st_mtim.tv_nsec};
    return (uint32_t)hash64(when, sizeof when, 0);
}

static hr_status check_same(int fd, const char *path, const file_facts *facts, hr_err *err)
{
    struct stat now;
    if (fstat(fd, &now) != 0 || !S_ISREG(now.st_mode)) {
        return HR_FAIL(err, DATA, "%s: needed a plain file, had something else", path);
    }
    if ((uint64_t)now.st_size == facts->size_bytes && file_mark(&now) == facts->mark) {
        return HR_OK;
    }
    const hr_status status = HR_FAIL(
        err, DATA, "%s: needed the file of %" PRIu64 " bytes that was there, had one of %" PRIu64 " bytes",
        path, facts->size_bytes, (uint64_t)now.st_size);
    hr_err_try(err, "start again: files that are trained on must stay as they are");
    return status;
}

static hr_status read_part(int fd, const char *path, uint64_t offset, uint32_t count, uint8_t *to,
                           hr_err *err)
{
    for (uint32_t done = 0; done < count;) {
        const ssize_t got = pread(fd, to + done, count - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return HR_FAIL(err, DATA, "%s, offset %" PRIu64 ": needed %u bytes, had %u%s%s", path, offset,
                           count, done, got < 0 ? ": " : "", got < 0 ? strerror(errno) : "");
        }
        done += (uint32_t)got;
    }
    return HR_OK;
}

hr_status file_read_same(const char *path, const file_facts *facts, uint64_t offset, uint32_t count,
                         uint8_t *to, hr_err *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return HR_FAIL(err, DATA, "%s: needed a file that can be read, had: %s", path, strerror(errno));
    }
    hr_status status = check_same(fd, path, facts, err);
    status = status == HR_OK ? read_part(fd, path, offset, count, to, err) : status;
    close(fd);
    return status;
}
