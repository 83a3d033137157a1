// SPDX-License-Identifier: Apache-2.0
#include "data/idx.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/reader.h"

enum {
    IDX_TYPE_BYTES = 0x08,
    IDX_MOST_HEADER_BYTES = 4 + 4 * IDX_MOST_DIMENSIONS,
    IDX_MOST_SIDE = 1 << 12,
    IDX_MOST_ITEMS = INT32_MAX,
};

// Fills the dimensions from header[0..4 + 4 × dimensions) and *size_bytes with what the whole file must have.
static hr_status idx_parse(const char *name, const uint8_t *header, uint32_t dimensions, idx *f,
                           uint64_t *size_bytes, hr_err *err)
{
    if (header[0] != 0 || header[1] != 0 || header[2] != IDX_TYPE_BYTES || header[3] != dimensions) {
        return HR_FAIL(err, DATA, "%s, offset 0: needed IDX magic 0x%08X, had 0x%02X%02X%02X%02X", name,
                       (unsigned)IDX_TYPE_BYTES << 8 | dimensions, header[0], header[1], header[2],
                       header[3]);
    }
    uint64_t values = 1;
    for (uint32_t d = 0; d < dimensions; d++) {
        const uint8_t *b = header + 4 + 4 * d;
        f->dimension[d] = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
        uint32_t most = d > 0 ? IDX_MOST_SIDE : IDX_MOST_ITEMS;
        if (f->dimension[d] == 0 || f->dimension[d] > most) {
            return HR_FAIL(err, DATA, "%s, offset %u: needed a dimension from 1 to %u, had %u", name,
                           4 + 4 * d, most, f->dimension[d]);
        }
        values *= f->dimension[d]; // at most 2^31 × 2^12 × 2^12
    }
    f->header_bytes = 4 + 4 * dimensions;
    *size_bytes = f->header_bytes + values;
    return HR_OK;
}

static hr_status idx_wrong_size(const char *name, uint64_t needed, uint64_t had, hr_err *err)
{
    return HR_FAIL(err, DATA, "%s: needed %" PRIu64 " bytes, had %" PRIu64 " (%s at offset %" PRIu64 ")",
                   name, needed, had, had < needed ? "truncated" : "goes on", had < needed ? had : needed);
}

static hr_status idx_check_plain(idx *f, uint32_t dimensions, hr_err *err)
{
    uint8_t scratch[IDX_MOST_HEADER_BYTES];
    const uint8_t *header;
    uint64_t size_bytes = 0;
    HR_TRY(blob_at(&f->file, 0, 4 + 4 * dimensions, scratch, &header, err));
    HR_TRY(idx_parse(f->file.name, header, dimensions, f, &size_bytes, err));
    if (f->file.size_bytes != size_bytes) {
        return idx_wrong_size(f->file.name, size_bytes, f->file.size_bytes, err);
    }
    return HR_OK;
}

// Unpacks the file into memory, no more than its header says and a .gz of this size can hold.
static hr_status idx_unpack(reader *r, const char *path, uint32_t dimensions, uint64_t *held_bytes, idx *f,
                            hr_err *err)
{
    uint8_t header[IDX_MOST_HEADER_BYTES];
    const char *leaf;
    uint64_t size_bytes = 0, unknown = 0;
    HR_TRY(reader_next(r, &leaf, &unknown, err));
    if (leaf == NULL) {
        return idx_wrong_size(path, 4 + 4 * dimensions, 0, err);
    }
    HR_TRY(reader_take(r, header, 4 + 4 * dimensions, err));
    HR_TRY(idx_parse(path, header, dimensions, f, &size_bytes, err));
    if (size_bytes > reader_most_bytes(r)) {
        return idx_wrong_size(path, size_bytes, reader_most_bytes(r), err);
    }
    HR_TRY(blob_hold(path, NULL, size_bytes, held_bytes, &f->file, err));
    memcpy(f->file.held, header, f->header_bytes);
    HR_TRY(reader_take(r, f->file.held + f->header_bytes, size_bytes - f->header_bytes, err));
    return reader_expect_end(r, err);
}

static hr_status idx_open_gzip(const char *path, uint32_t dimensions, uint64_t *held_bytes, idx *f,
                               hr_err *err)
{
    reader *r;
    HR_TRY(reader_open(path, READER_GZIP, &r, err));
    hr_status status = idx_unpack(r, path, dimensions, held_bytes, f, err);
    reader_close(r);
    return status;
}

hr_status idx_open(const char *folder, const char *leaf, uint32_t dimensions, uint64_t *held_bytes, idx *f,
                   hr_err *err)
{
    char packed_leaf[64];
    (void)snprintf(packed_leaf, sizeof packed_leaf, "%s.gz", leaf);
    HR_TRY(blob_open(folder, leaf, &f->file, err));
    if (blob_is_open(&f->file)) {
        return idx_check_plain(f, dimensions, err);
    }
    blob packed;
    HR_TRY(blob_open(folder, packed_leaf, &packed, err));
    if (!blob_is_open(&packed)) {
        return HR_OK;
    }
    hr_status status = idx_open_gzip(packed.name, dimensions, held_bytes, f, err);
    blob_close(&packed);
    return status;
}

hr_status idx_hold(idx *f, uint64_t *held_bytes, hr_err *err)
{
    blob held;
    const uint8_t *bytes;
    HR_TRY(blob_hold(f->file.name, NULL, f->file.size_bytes, held_bytes, &held, err));
    hr_status status = blob_at(&f->file, 0, (uint32_t)f->file.size_bytes, held.held, &bytes, err);
    blob_close(&f->file);
    f->file = held;
    return status;
}
