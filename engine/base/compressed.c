// SPDX-License-Identifier: Apache-2.0
#include "base/compressed.h"

#include <stdbool.h>

#include "base/archives.h"
#include "base/host_mem.h"

struct compressed {
    struct archive *archive;
    uint64_t bytes;
};

static la_ssize_t count_bytes(struct archive *a, void *context, const void *data, size_t bytes)
{
    compressed *c = context;
    (void)a, (void)data;
    c->bytes += bytes;
    return (la_ssize_t)bytes;
}

static hr_status complain(const compressed *c, hr_err *err)
{
    const char *why = c->archive == NULL ? NULL : archive.error_string(c->archive);
    return HR_FAIL(err, DEPENDENCY, "libarchive: needed gzip and zstd to compress with, had: %s",
                   why != NULL ? why : "no host memory");
}

static bool begin(compressed *c, compressed_kind kind)
{
    c->archive = archive.write_new();
    struct archive_entry *entry = c->archive == NULL ? NULL : archive.entry_new();
    if (entry == NULL) {
        return false;
    }
    archive.entry_set_filetype(entry, AE_IFREG);
    const bool ok = archive.write_set_format_raw(c->archive) == ARCHIVE_OK &&
                    (kind == COMPRESSED_GZIP ? archive.write_add_filter_gzip(c->archive)
                                             : archive.write_add_filter_zstd(c->archive)) == ARCHIVE_OK &&
                    archive.write_set_bytes_in_last_block(c->archive, 1) == ARCHIVE_OK &&
                    archive.write_open(c->archive, c, NULL, count_bytes, NULL) == ARCHIVE_OK &&
                    archive.write_header(c->archive, entry) == ARCHIVE_OK;
    archive.entry_free(entry);
    return ok;
}

hr_status compressed_open(compressed_kind kind, compressed **out, hr_err *err)
{
    *out = NULL;
    HR_TRY(archives_need("the size of a compressed file", err));
    compressed *c = hr_calloc(1, sizeof *c);
    if (c == NULL) {
        return HR_FAIL(err, NOMEM, "no host memory for a compressed file's size");
    }
    if (!begin(c, kind)) {
        const hr_status status = complain(c, err);
        compressed_abandon(c);
        return status;
    }
    *out = c;
    return HR_OK;
}

hr_status compressed_add(compressed *c, const void *data, size_t bytes, hr_err *err)
{
    return archive.write_data(c->archive, data, bytes) == (la_ssize_t)bytes ? HR_OK : complain(c, err);
}

hr_status compressed_end(compressed *c, uint64_t *bytes, hr_err *err)
{
    const hr_status status = archive.write_close(c->archive) == ARCHIVE_OK ? HR_OK : complain(c, err);
    *bytes = c->bytes;
    compressed_abandon(c);
    return status;
}

void compressed_abandon(compressed *c)
{
    if (c != NULL && c->archive != NULL) {
        (void)archive.write_free(c->archive);
    }
    hr_free(c);
}
