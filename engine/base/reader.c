// SPDX-License-Identifier: Apache-2.0
#include "base/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headroom/units.h"

#include "base/archives.h"
#include "base/host_mem.h"
#include "base/text.h"

enum {
    DEFLATE_MOST_RATIO = 1032, // https://zlib.net/zlib_tech.html, "Maximum Compression Factor"
    READER_BLOCK_BYTES = 64 << 10,
    READER_NAME_MAX = 320,
    LEAF_MAX = 64,
};

struct reader {
    struct archive *archive;
    int fd;
    reader_kind kind;
    uint64_t most_bytes, passed_bytes; // passed: the members so far, by what they say
    uint64_t offset;                   // within the member
    char path[READER_NAME_MAX];
    char leaf[LEAF_MAX];                       // of the member; longer names are none that is looked for
    char name[READER_NAME_MAX + LEAF_MAX + 2]; // "path: leaf", for sentences
};

// ---- opening and closing ----------------------------------------------------------------------------------

static hr_status reader_complain(const reader *r, hr_err *err)
{
    const char *why = archive.error_string(r->archive);
    hr_status status =
        HR_FAIL(err, DATA, "%s, offset %" PRIu64 ": needed a whole %s file, had: %s", r->name, r->offset,
                r->kind == READER_GZIP ? "gzip" : "tar or zip", why != NULL ? why : "something else");
    hr_err_try(err, "gzip -t on the file; download it again if that complains");
    return status;
}

// Opens the file itself and takes its size. The descriptor stays with r.
static hr_status reader_open_file(reader *r, const char *path, hr_err *err)
{
    struct stat facts;
    r->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (r->fd < 0 || fstat(r->fd, &facts) != 0) {
        return HR_FAIL(err, DATA, "%s: needed a file that can be read, had: %s", path, strerror(errno));
    }
    if (!S_ISREG(facts.st_mode)) {
        return HR_FAIL(err, DATA, "%s: needed a plain file, had something else", path);
    }
    uint64_t size_bytes = (uint64_t)facts.st_size;
    if (!hr_mul_bytes(size_bytes, DEFLATE_MOST_RATIO, &r->most_bytes)) {
        return HR_FAIL(err, DATA, "%s: needed an archive, had %" PRIu64 " bytes", path, size_bytes);
    }
    return HR_OK;
}

static bool reader_support(struct archive *a, reader_kind kind)
{
    int worst = archive.read_support_filter_gzip(a);
    if (kind == READER_GZIP) {
        return worst == ARCHIVE_OK && archive.read_support_format_raw(a) == ARCHIVE_OK;
    }
    return worst == ARCHIVE_OK && archive.read_support_format_tar(a) == ARCHIVE_OK &&
           archive.read_support_format_zip(a) == ARCHIVE_OK;
}

hr_status reader_open(const char *path, reader_kind kind, reader **out, hr_err *err)
{
    *out = NULL;
    HR_TRY(archives_need("a packed file", err));
    reader *r = hr_calloc(1, sizeof *r);
    if (r == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %zu bytes, had less", path, sizeof *r);
    }
    r->kind = kind;
    (void)snprintf(r->path, sizeof r->path, "%s", path);
    (void)snprintf(r->name, sizeof r->name, "%s", path);
    hr_status status = reader_open_file(r, path, err);
    if (status != HR_OK) {
        goto fail;
    }
    r->archive = archive.read_new();
    if (r->archive == NULL || !reader_support(r->archive, kind)) {
        status = HR_FAIL(err, NOMEM, "%s: needed a gzip reader, had none", path);
        goto fail;
    }
    if (archive.read_open_fd(r->archive, r->fd, READER_BLOCK_BYTES) != ARCHIVE_OK) {
        status = reader_complain(r, err);
        goto fail;
    }
    *out = r;
    return HR_OK;
fail:
    reader_close(r);
    return status;
}

void reader_close(reader *r)
{
    if (r == NULL) {
        return;
    }
    if (r->archive != NULL) {
        archive.read_free(r->archive);
    }
    if (r->fd >= 0) {
        close(r->fd);
    }
    hr_free(r);
}

// Keeps the member's leaf name; false when it is not one that can be asked for.
static bool reader_name(reader *r, struct archive_entry *entry)
{
    const char *name = archive.entry_pathname(entry);
    if (name == NULL || archive.entry_filetype(entry) != AE_IFREG || archive.entry_hardlink(entry) != NULL) {
        return false;
    }
    const char *slash = strrchr(name, '/');
    const char *leaf = slash != NULL ? slash + 1 : name;
    return text_copy(r->leaf, sizeof r->leaf, leaf);
}

// Its whole path; false as reader_name says it.
static bool reader_whole_path(struct archive_entry *entry, const char **path)
{
    *path = archive.entry_pathname(entry);
    return *path != NULL && strlen(*path) < READER_PATH_MAX && archive.entry_filetype(entry) == AE_IFREG &&
           archive.entry_hardlink(entry) == NULL;
}

// What the member says its size is, checked against what the whole file can hold.
static hr_status reader_size(reader *r, struct archive_entry *entry, uint64_t *size_bytes, hr_err *err)
{
    *size_bytes = UINT64_MAX;
    if (!archive.entry_size_is_set(entry)) {
        return HR_OK;
    }
    *size_bytes = (uint64_t)archive.entry_size(entry);
    if (!hr_add_bytes(r->passed_bytes, *size_bytes, &r->passed_bytes) || r->passed_bytes > r->most_bytes) {
        return HR_FAIL(err, DATA,
                       "%s: needed members of at most %" PRIu64 " bytes together, had %" PRIu64
                       " and more to come",
                       r->path, r->most_bytes, r->passed_bytes);
    }
    return HR_OK;
}

// The next header; *entry NULL: there is none any more.
static hr_status reader_next_entry(reader *r, struct archive_entry **entry, uint64_t *size_bytes, hr_err *err)
{
    const int result = archive.read_next_header(r->archive, entry);
    if (result == ARCHIVE_EOF) {
        *entry = NULL;
        return HR_OK;
    }
    if (result != ARCHIVE_OK && result != ARCHIVE_WARN) {
        return reader_complain(r, err);
    }
    r->offset = 0;
    return reader_size(r, *entry, size_bytes, err);
}

hr_status reader_next(reader *r, const char **leaf, uint64_t *size_bytes, hr_err *err)
{
    struct archive_entry *entry;
    *leaf = NULL;
    *size_bytes = 0;
    for (;;) {
        HR_TRY(reader_next_entry(r, &entry, size_bytes, err));
        if (entry == NULL) {
            return HR_OK;
        }
        if (reader_name(r, entry)) {
            bool alone = r->kind == READER_GZIP;
            (void)snprintf(r->name, sizeof r->name, "%s%s%s", r->path, alone ? "" : ": ",
                           alone ? "" : r->leaf);
            *leaf = r->leaf;
            return HR_OK;
        }
    }
}

hr_status reader_next_path(reader *r, const char **path, uint64_t *size_bytes, hr_err *err)
{
    struct archive_entry *entry;
    *path = NULL;
    *size_bytes = 0;
    for (;;) {
        HR_TRY(reader_next_entry(r, &entry, size_bytes, err));
        if (entry == NULL || reader_whole_path(entry, path)) {
            return HR_OK;
        }
        *path = NULL;
    }
}

hr_status reader_take(reader *r, void *to, uint64_t bytes, hr_err *err)
{
    uint8_t *next = to;
    for (uint64_t left = bytes; left > 0;) {
        ssize_t got = archive.read_data(r->archive, next, left);
        if (got == ARCHIVE_RETRY) {
            continue;
        }
        if (got < 0) {
            return reader_complain(r, err);
        }
        if (got == 0) {
            return HR_FAIL(err, DATA,
                           "%s: needed %" PRIu64 " bytes, had %" PRIu64 " (truncated at offset %" PRIu64 ")",
                           r->name, r->offset + left, r->offset, r->offset);
        }
        next += got;
        left -= (uint64_t)got;
        r->offset += (uint64_t)got;
    }
    return HR_OK;
}

hr_status reader_expect_end(reader *r, hr_err *err)
{
    uint8_t more;
    ssize_t got = archive.read_data(r->archive, &more, sizeof more);
    if (got < 0) {
        return reader_complain(r, err);
    }
    if (got > 0) {
        return HR_FAIL(err, DATA, "%s: needed %" PRIu64 " bytes, had more", r->name, r->offset);
    }
    return HR_OK;
}

bool reader_is_of(const reader *r, int fd)
{
    struct stat one, other;
    return fstat(r->fd, &one) == 0 && fstat(fd, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino && one.st_size == other.st_size;
}

uint64_t reader_most_bytes(const reader *r)
{
    return r->most_bytes;
}
