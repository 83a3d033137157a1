// SPDX-License-Identifier: Apache-2.0
#include "data/zip.h"

#include <inttypes.h>
#include <string.h>

#include "headroom/units.h"

#include "base/host_mem.h"

enum {
    END_BYTES = 22, // of the end record without its comment
    LOCATOR_BYTES = 20,
    END64_BYTES = 56,
    ENTRY_BYTES = 46,
    LOCAL_BYTES = 30,
    MOST_COMMENT_BYTES = 65535,
    EXTRA_OF_64_BITS = 1,
    FLAG_ENCRYPTED = 1,
    METHOD_STORED = 0,
};

#define END_MARK     UINT32_C(0x06054b50)
#define LOCATOR_MARK UINT32_C(0x07064b50)
#define END64_MARK   UINT32_C(0x06064b50)
#define ENTRY_MARK   UINT32_C(0x02014b50)
#define LOCAL_MARK   UINT32_C(0x04034b50)
#define IN_EXTRA     UINT32_C(0xffffffff)

static uint32_t u16_at(const uint8_t *b)
{
    return b[0] | (uint32_t)b[1] << 8;
}

static uint32_t u32_at(const uint8_t *b)
{
    return u16_at(b) | u16_at(b + 2) << 16;
}

static uint64_t u64_at(const uint8_t *b)
{
    return u32_at(b) | (uint64_t)u32_at(b + 4) << 32;
}

static hr_status zip_refuse(const zip *z, uint64_t offset, const char *wanted, hr_err *err)
{
    const hr_status status =
        HR_FAIL(err, DATA, "%s, offset %" PRIu64 ": needed %s of a zip file, had something else",
                z->file.name, offset, wanted);
    hr_err_try(err, "unzip -t on the file; make it again if that complains");
    return status;
}

// ---- the directory --------------------------------------------------------------------------------------------

typedef struct directory_place {
    uint64_t offset, size_bytes;
} directory_place;

// The end record with 64-bit numbers, where there is one before the end record at `end`.
static hr_status read_end64(const zip *z, uint64_t end, directory_place *place, hr_err *err)
{
    uint8_t room[END64_BYTES];
    const uint8_t *bytes;
    if (end < LOCATOR_BYTES) {
        return HR_OK;
    }
    HR_TRY(blob_at(&z->file, end - LOCATOR_BYTES, LOCATOR_BYTES, room, &bytes, err));
    if (u32_at(bytes) != LOCATOR_MARK) {
        return HR_OK;
    }
    const uint64_t offset = u64_at(bytes + 8);
    HR_TRY(blob_at(&z->file, offset, END64_BYTES, room, &bytes, err));
    if (u32_at(bytes) != END64_MARK) {
        return zip_refuse(z, offset, "the 64-bit end record", err);
    }
    *place = (directory_place){.offset = u64_at(bytes + 48), .size_bytes = u64_at(bytes + 40)};
    return HR_OK;
}

// Fills `place` from the last end record within tail[0..count), which the file ends with.
static hr_status read_end(const zip *z, const uint8_t *tail, uint32_t count, directory_place *place,
                          hr_err *err)
{
    for (uint32_t at = count < END_BYTES ? 0 : count - END_BYTES + 1; at-- > 0;) {
        const uint8_t *b = tail + at;
        if (u32_at(b) == END_MARK && u16_at(b + 20) == count - at - END_BYTES) {
            *place = (directory_place){.offset = u32_at(b + 16), .size_bytes = u32_at(b + 12)};
            return read_end64(z, z->file.size_bytes - count + at, place, err);
        }
    }
    return zip_refuse(z, z->file.size_bytes, "the end record", err);
}

static hr_status find_directory(const zip *z, directory_place *place, hr_err *err)
{
    const uint64_t most = END_BYTES + MOST_COMMENT_BYTES;
    const uint32_t count = (uint32_t)(z->file.size_bytes < most ? z->file.size_bytes : most);
    uint8_t *room = hr_calloc(count > 0 ? count : 1, 1);
    const uint8_t *tail;
    if (room == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %u bytes, had less", z->file.name, count);
    }
    hr_status status = blob_at(&z->file, z->file.size_bytes - count, count, room, &tail, err);
    if (status == HR_OK) {
        status = read_end(z, tail, count, place, err);
    }
    hr_free(room);
    return status;
}

hr_status zip_open(const char *path, zip *z, hr_err *err)
{
    directory_place place = {0};
    const uint8_t *bytes;
    *z = (zip){.file = BLOB_NONE};
    HR_TRY(blob_open_path(path, &z->file, err));
    if (!blob_is_open(&z->file)) {
        return HR_FAIL(err, DATA, "%s: needed a zip file, had no such file", path);
    }
    HR_TRY(find_directory(z, &place, err));
    if (place.size_bytes > ZIP_MOST_DIRECTORY_BYTES) {
        return HR_FAIL(err, DATA, "%s: needed a directory of at most %d bytes, had %" PRIu64, path,
                       ZIP_MOST_DIRECTORY_BYTES, place.size_bytes);
    }
    z->directory_bytes = (uint32_t)place.size_bytes;
    z->directory = hr_calloc(place.size_bytes > 0 ? place.size_bytes : 1, 1);
    if (z->directory == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %u bytes, had less", path, z->directory_bytes);
    }
    return blob_at(&z->file, place.offset, z->directory_bytes, z->directory, &bytes, err);
}

void zip_close(zip *z)
{
    blob_close(&z->file);
    hr_free(z->directory);
    *z = (zip){.file = BLOB_NONE};
}

// ---- members --------------------------------------------------------------------------------------------------

typedef struct zip_entry {
    const char *leaf;
    uint32_t leaf_length, flags, method;
    uint64_t size_bytes, packed_bytes, local_offset;
} zip_entry;

// Numbers that did not fit 32 bits, in their order, from the extra field of an entry.
static bool read_extra(const uint8_t *extra, uint32_t count, zip_entry *e)
{
    uint64_t *const number[] = {&e->size_bytes, &e->packed_bytes, &e->local_offset};
    while (count >= 4 && u16_at(extra) != EXTRA_OF_64_BITS && u16_at(extra + 2) <= count - 4) {
        const uint32_t field_bytes = 4 + u16_at(extra + 2);
        extra += field_bytes;
        count -= field_bytes;
    }
    const bool has_field = count >= 4 && u16_at(extra) == EXTRA_OF_64_BITS && u16_at(extra + 2) <= count - 4;
    uint32_t at = 4;
    const uint32_t end = has_field ? 4 + u16_at(extra + 2) : 4;
    for (uint32_t k = 0; k < 3; k++) {
        if (*number[k] != IN_EXTRA) {
            continue;
        }
        if (at + 8 > end) {
            return false;
        }
        *number[k] = u64_at(extra + at);
        at += 8;
    }
    return true;
}

// The entry at directory[*at ..]; moves *at behind it. False when none stands there.
static bool read_entry(const zip *z, uint32_t *at, zip_entry *e)
{
    const uint32_t left = z->directory_bytes - *at;
    const uint8_t *b = z->directory + *at;
    if (left < ENTRY_BYTES || u32_at(b) != ENTRY_MARK) {
        return false;
    }
    const uint32_t name_bytes = u16_at(b + 28), extra_bytes = u16_at(b + 30);
    const uint32_t whole_bytes = ENTRY_BYTES + name_bytes + extra_bytes + u16_at(b + 32);
    if (whole_bytes > left) {
        return false;
    }
    const char *name = (const char *)b + ENTRY_BYTES;
    const char *slash = name_bytes > 0 ? memrchr(name, '/', name_bytes) : NULL;
    *e = (zip_entry){.leaf = slash != NULL ? slash + 1 : name,
                     .flags = u16_at(b + 8),
                     .method = u16_at(b + 10),
                     .size_bytes = u32_at(b + 24),
                     .packed_bytes = u32_at(b + 20),
                     .local_offset = u32_at(b + 42)};
    e->leaf_length = (uint32_t)(name + name_bytes - e->leaf);
    *at += whole_bytes;
    return read_extra(b + ENTRY_BYTES + name_bytes, extra_bytes, e);
}

static hr_status locate(const zip *z, const zip_entry *e, zip_member *out, hr_err *err)
{
    uint8_t room[LOCAL_BYTES];
    const uint8_t *local;
    if ((e->flags & FLAG_ENCRYPTED) != 0) {
        return HR_FAIL(err, DATA, "%s: needed a plain member, had %.*s encrypted", z->file.name,
                       (int)e->leaf_length, e->leaf);
    }
    HR_TRY(blob_at(&z->file, e->local_offset, LOCAL_BYTES, room, &local, err));
    if (u32_at(local) != LOCAL_MARK) {
        return zip_refuse(z, e->local_offset, "the head of a member", err);
    }
    const uint64_t begin = e->local_offset + LOCAL_BYTES + u16_at(local + 26) + u16_at(local + 28);
    *out =
        (zip_member){.offset = begin, .size_bytes = e->size_bytes, .is_stored = e->method == METHOD_STORED};
    uint64_t end;
    if (!hr_add_bytes(begin, e->packed_bytes, &end) || end > z->file.size_bytes ||
        (out->is_stored && e->packed_bytes != e->size_bytes)) {
        return HR_FAIL(
            err, DATA, "%s, offset %" PRIu64 ": needed %" PRIu64 " bytes of %.*s, had a file of %" PRIu64,
            z->file.name, begin, e->packed_bytes, (int)e->leaf_length, e->leaf, z->file.size_bytes);
    }
    return HR_OK;
}

hr_status zip_find(const zip *z, const char *leaf, zip_member *out, bool *found, hr_err *err)
{
    *found = false;
    for (uint32_t at = 0; at < z->directory_bytes;) {
        zip_entry e;
        const uint32_t began = at;
        if (!read_entry(z, &at, &e)) {
            return zip_refuse(z, began, "an entry of the directory (offset within that)", err);
        }
        if (e.leaf_length != strlen(leaf) || memcmp(e.leaf, leaf, e.leaf_length) != 0) {
            continue;
        }
        if (*found) {
            return HR_FAIL(err, DATA, "%s: needed %s once, had it twice", z->file.name, leaf);
        }
        HR_TRY(locate(z, &e, out, err));
        *found = true;
    }
    return HR_OK;
}
