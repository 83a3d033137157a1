// SPDX-License-Identifier: Apache-2.0
#include "train/deploy_sizes.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/compressed.h"
#include "base/file.h"

enum { DEPLOY_PIECE_BYTES = 1 << 16 };

static hr_status compress(const text *header, const store *s, compressed_kind kind, uint64_t *bytes,
                          hr_err *err)
{
    compressed *c = NULL;
    HR_TRY(compressed_open(kind, &c, err));
    hr_status status = compressed_add(c, header->data, header->length, err);
    for (uint32_t k = 0; k < s->tensors.count && status == HR_OK; k++) {
        status = compressed_add(c, s->tensors.data[k].data, s->tensors.data[k].bytes, err);
    }
    if (status != HR_OK) {
        compressed_abandon(c);
        return status;
    }
    return compressed_end(c, bytes, err);
}

hr_status deploy_weigh(const text *header, const store *s, hr_deploy_size *out, hr_err *err)
{
    *out = (hr_deploy_size){0};
    for (uint32_t k = 0; k < s->tensors.count; k++) {
        out->ram_bytes += s->tensors.data[k].bytes;
    }
    out->file_bytes = header->length + out->ram_bytes;
    HR_TRY(compress(header, s, COMPRESSED_GZIP, &out->gzip_bytes, err));
    return compress(header, s, COMPRESSED_ZSTD, &out->zstd_bytes, err);
}

static hr_status add_file(compressed *c, int fd, const char *path, hr_err *err)
{
    char piece[DEPLOY_PIECE_BYTES];
    ptrdiff_t got = 0;
    while ((got = file_read_some(fd, piece, sizeof piece)) > 0) {
        HR_TRY(compressed_add(c, piece, (size_t)got, err));
    }
    return got == 0 ? HR_OK : HR_FAIL(err, READ, "%s cannot be read: %s", path, strerror(errno));
}

static hr_status compress_file(const char *path, compressed_kind kind, uint64_t *bytes, hr_err *err)
{
    int fd = -1;
    compressed *c = NULL;
    HR_TRY(file_open(path, &fd, err));
    hr_status status = compressed_open(kind, &c, err);
    if (status == HR_OK) {
        status = add_file(c, fd, path, err);
        if (status == HR_OK) {
            status = compressed_end(c, bytes, err);
        } else {
            compressed_abandon(c);
        }
    }
    file_close(fd);
    return status;
}

// As it lies there: what an engine took of it has been decomposed, or has slots of another optimizer.
hr_status deploy_weigh_file(const char *path, hr_deploy_size *out, hr_err *err)
{
    int fd = -1;
    uint64_t header_bytes = 0;
    struct stat facts = {0};
    HR_TRY(file_open(path, &fd, err));
    const hr_status status = file_read_at(fd, 0, &header_bytes, sizeof header_bytes, path, err);
    const bool known = fstat(fd, &facts) == 0;
    file_close(fd);
    HR_TRY(status);
    if (!known || (uint64_t)facts.st_size - sizeof header_bytes < header_bytes) {
        return HR_FAIL(err, READ, "%s changed while it was read", path);
    }
    out->file_bytes = (uint64_t)facts.st_size;
    out->ram_bytes = out->file_bytes - sizeof header_bytes - header_bytes;
    HR_TRY(compress_file(path, COMPRESSED_GZIP, &out->gzip_bytes, err));
    return compress_file(path, COMPRESSED_ZSTD, &out->zstd_bytes, err);
}
