// SPDX-License-Identifier: Apache-2.0
#include "data/arrays.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/reader.h"
#include "data/listing.h"

enum { LEAF_TEXT_MAX = 64 };

hr_status arrays_open(const char *path, array_store *store, hr_err *err)
{
    *store = (array_store){.path = path, .is_packed = !folder_is_at(path), .zip = {.file = BLOB_NONE}};
    return store->is_packed ? zip_open(path, &store->zip, err) : HR_OK;
}

void arrays_close(array_store *store)
{
    zip_close(&store->zip);
}

// Reads the header at `begin`; `size_bytes` are the array's, header included.
static hr_status read_header(array *a, uint64_t begin, uint64_t size_bytes, hr_err *err)
{
    uint8_t room[NPY_MOST_HEADER_BYTES];
    const uint8_t *bytes;
    uint32_t header_bytes = 0;
    uint64_t data_bytes = 0;
    HR_TRY(blob_at(&a->file, begin, NPY_PREFIX_BYTES, room, &bytes, err));
    HR_TRY(npy_header_size(a->file.name, bytes, &header_bytes, err));
    HR_TRY(blob_at(&a->file, begin, header_bytes, room, &bytes, err));
    HR_TRY(npy_parse(a->file.name, bytes, header_bytes, &a->npy, err));
    (void)npy_data_bytes(&a->npy, &data_bytes);
    const uint64_t had = size_bytes - header_bytes;
    if (size_bytes < header_bytes || had != data_bytes) {
        char text[128];
        return HR_FAIL(err, DATA, "%s, offset %u: needed %" PRIu64 " bytes for %s, had %" PRIu64,
                       a->file.name, header_bytes, data_bytes, npy_text(&a->npy, text, sizeof text),
                       size_bytes < header_bytes ? 0 : had);
    }
    a->offset = begin + header_bytes;
    return HR_OK;
}

// ---- members of an .npz ---------------------------------------------------------------------------------------

static hr_status hold_member(reader *r, const char *path, const char *wanted, uint64_t *held_bytes, array *a,
                             hr_err *err)
{
    const char *leaf;
    uint64_t size_bytes = 0;
    do {
        HR_TRY(reader_next(r, &leaf, &size_bytes, err));
    } while (leaf != NULL && strcmp(leaf, wanted) != 0);
    if (leaf == NULL) {
        return HR_FAIL(err, DATA, "%s: needed %s, which its directory names, had no such member", path,
                       wanted);
    }
    HR_TRY(blob_hold(path, wanted, size_bytes, held_bytes, &a->file, err));
    HR_TRY(reader_take(r, a->file.held, size_bytes, err));
    return read_header(a, 0, size_bytes, err);
}

// From the file whose directory was read: another may lie under its name by now.
static hr_status unpack_member(const array_store *store, const char *leaf, uint64_t *held_bytes, array *a,
                               hr_err *err)
{
    reader *r;
    HR_TRY(reader_open(store->path, READER_ARCHIVE, &r, err));
    hr_status status = HR_OK;
    if (!reader_is_of(r, store->zip.file.fd)) {
        status = HR_FAIL(err, DATA, "%s: needed the file that was opened first, had another under its name",
                         store->path);
        hr_err_try(err, "start again: files that are trained on must stay as they are");
    }
    if (status == HR_OK) {
        status = hold_member(r, store->path, leaf, held_bytes, a, err);
    }
    reader_close(r);
    return status;
}

static hr_status take_member(const array_store *store, const char *leaf, uint64_t *held_bytes, array *a,
                             hr_err *err)
{
    zip_member m;
    bool found;
    HR_TRY(zip_find(&store->zip, leaf, &m, &found, err));
    if (!found) {
        return HR_OK;
    }
    if (!m.is_stored) {
        return unpack_member(store, leaf, held_bytes, a, err);
    }
    HR_TRY(blob_open_again(&store->zip.file, leaf, &a->file, err));
    return read_header(a, m.offset, m.size_bytes, err);
}

hr_status arrays_take(const array_store *store, const char *name, uint64_t *held_bytes, array *a, hr_err *err)
{
    char leaf[LEAF_TEXT_MAX];
    *a = (array){.file = BLOB_NONE};
    (void)snprintf(leaf, sizeof leaf, "%s.npy", name);
    if (store->is_packed) {
        return take_member(store, leaf, held_bytes, a, err);
    }
    HR_TRY(blob_open(store->path, leaf, &a->file, err));
    return blob_is_open(&a->file) ? read_header(a, 0, a->file.size_bytes, err) : HR_OK;
}
