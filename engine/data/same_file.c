// SPDX-License-Identifier: Apache-2.0
#include "data/same_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"

file_facts file_facts_of(const struct stat *now)
{
    const uint64_t when[] = {(uint64_t)now->st_mtim.tv_sec, (uint64_t)now->st_mtim.tv_nsec};
    return (file_facts){.size_bytes = (uint64_t)now->st_size, .mark = (uint32_t)hash64(when, sizeof when, 0)};
}

static hr_status plain_facts(int fd, const char *path, file_facts *facts, hr_err *err)
{
    struct stat now;
    if (fstat(fd, &now) != 0) {
        return HR_FAIL(err, DATA, "%s: needed a file that can be read, had: %s", path, strerror(errno));
    }
    *facts = file_facts_of(&now);
    return S_ISREG(now.st_mode) ? HR_OK
                                : HR_FAIL(err, DATA, "%s: needed a plain file, had something else", path);
}

hr_status file_open_plain(const char *path, int *fd, file_facts *facts, hr_err *err)
{
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe under that name must not hold us up
    if (*fd < 0) {
        return HR_FAIL(err, DATA, "%s: needed a file that can be read, had: %s", path, strerror(errno));
    }
    const hr_status status = plain_facts(*fd, path, facts, err);
    if (status != HR_OK) {
        close(*fd);
        *fd = -1;
    }
    return status;
}

static hr_status check_facts(const char *path, const file_facts *then, const file_facts *now, hr_err *err)
{
    if (now->size_bytes == then->size_bytes && now->mark == then->mark) {
        return HR_OK;
    }
    const hr_status status = HR_FAIL(
        err, DATA, "%s: needed the file of %" PRIu64 " bytes that was opened, had one of %" PRIu64 " bytes",
        path, then->size_bytes, now->size_bytes);
    hr_err_try(err, "start again: files that are trained on must stay as they are");
    return status;
}

hr_status file_check_same(int fd, const char *path, const file_facts *facts, hr_err *err)
{
    file_facts now;
    HR_TRY(plain_facts(fd, path, &now, err));
    return check_facts(path, facts, &now, err);
}

hr_status file_read_all(int fd, const char *path, uint64_t offset, uint32_t count, uint8_t *to, hr_err *err)
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
    file_facts now;
    int fd;
    HR_TRY(file_open_plain(path, &fd, &now, err));
    hr_status status = check_facts(path, facts, &now, err);
    status = status == HR_OK ? file_read_all(fd, path, offset, count, to, err) : status;
    close(fd);
    return status;
}
