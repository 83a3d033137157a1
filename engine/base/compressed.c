// SPDX-License-Identifier: Apache-2.0
#include "base/compressed.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdbool.h>

#include "base/host_mem.h"
#include "base/shared_library.h"

struct compressed {
    struct archive *archive;
    uint64_t bytes;
};

// X(name), without the library's `archive_`
#define ARCHIVE_CALL_MAP(X)                                                                                  \
    X(entry_free)                                                                                            \
    X(entry_new)                                                                                             \
    X(entry_set_filetype)                                                                                    \
    X(error_string)                                                                                          \
    X(write_add_filter_gzip)                                                                                 \
    X(write_add_filter_zstd)                                                                                 \
    X(write_close)                                                                                           \
    X(write_data)                                                                                            \
    X(write_free)                                                                                            \
    X(write_header)                                                                                          \
    X(write_new)                                                                                             \
    X(write_open)                                                                                            \
    X(write_set_bytes_in_last_block)                                                                         \
    X(write_set_format_raw)

static struct archive_calls {
#define X(name) __typeof__(archive_##name) *name;
    ARCHIVE_CALL_MAP(X)
#undef X
} archive;

static const shared_call archive_calls[] = {
#define X(name) {"archive_" #name, offsetof(struct archive_calls, name)},
    ARCHIVE_CALL_MAP(X)
#undef X
};
_Static_assert(sizeof archive == sizeof archive_calls / sizeof *archive_calls * sizeof(void *),
               "nothing but pointers");

static hr_status need_archives(hr_err *err)
{
    static shared_state state = SHARED_STATE_INIT;
    static const shared_library wanted = {.soname = HEADROOM_ARCHIVE_SONAME,
                                          .needed_by = "the size of a compressed file",
                                          .hint = "apt install " HEADROOM_ARCHIVE_PACKAGE,
                                          .calls = archive_calls,
                                          .call_count = sizeof archive_calls / sizeof *archive_calls};
    return shared_library_need(&wanted, &state, &archive, err);
}

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
    HR_TRY(need_archives(err));
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
