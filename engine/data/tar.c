// SPDX-License-Identifier: Apache-2.0
// The form: https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html, "ustar Interchange Format".
#include "data/tar.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

enum {
    NAME_BYTES = 100,
    SIZE_AT = 124,
    SIZE_BYTES = 12,
    CHECKSUM_AT = 148,
    CHECKSUM_BYTES = 8,
    KIND_AT = 156,
    MAGIC_AT = 257,
    PREFIX_AT = 345,
    PREFIX_BYTES = 155,
    EXTRA_MOST_BYTES = 4096, // of long names and of what pax says
};

// Octal digits, with blanks before them and a blank or NUL behind; false when there are none.
static bool read_octal(const uint8_t *bytes, uint32_t count, uint64_t *out)
{
    uint32_t k = 0;
    uint64_t value = 0;
    while (k < count && bytes[k] == ' ') {
        k++;
    }
    const uint32_t first = k;
    for (; k < count && bytes[k] >= '0' && bytes[k] <= '7'; k++) {
        value = value << 3 | (uint64_t)(bytes[k] - '0');
    }
    *out = value;
    return k > first && (k == count || bytes[k] == ' ' || bytes[k] == '\0');
}

// Octal, or with the highest bit set a big-endian number, as GNU writes what is too large.
static bool read_size(const uint8_t *bytes, uint64_t *out)
{
    if ((bytes[0] & 0x80) == 0) {
        return read_octal(bytes, SIZE_BYTES, out);
    }
    *out = 0;
    for (uint32_t k = 1; k < SIZE_BYTES; k++) {
        if (*out >> 55 != 0) {
            return false;
        }
        *out = *out << 8 | bytes[k];
    }
    return bytes[0] == 0x80;
}

static bool is_zero(const uint8_t *block)
{
    bool zero = true;
    for (uint32_t k = 0; k < TAR_BLOCK_BYTES; k++) {
        zero = zero && block[k] == 0;
    }
    return zero;
}

bool tar_is_likely(const uint8_t block[TAR_BLOCK_BYTES])
{
    uint64_t wanted, sum = UINT64_C(32) * CHECKSUM_BYTES;
    for (uint32_t k = 0; k < TAR_BLOCK_BYTES; k++) {
        sum += k < CHECKSUM_AT || k >= CHECKSUM_AT + CHECKSUM_BYTES ? block[k] : 0;
    }
    return !is_zero(block) && read_octal(block + CHECKSUM_AT, CHECKSUM_BYTES, &wanted) && wanted == sum;
}

static hr_status refuse(const tar_walk *w, const char *needed, hr_err *err)
{
    const hr_status status = HR_FAIL(err, DATA, "%s, offset %" PRIu64 ": needed %s of a tar, had other bytes",
                                     w->file->name, w->next, needed);
    hr_err_try(err, "tar -tf on the file; pack or download it again if that complains");
    return status;
}

// What stands before a member and says more of it.
typedef struct extras {
    bool has_name, has_size;
    uint64_t size_bytes;
    char name[TAR_NAME_MAX];
} extras;

static void set_name(extras *x, const char *text, uint32_t count)
{
    const uint32_t kept = count < TAR_NAME_MAX ? count : TAR_NAME_MAX - 1;
    memcpy(x->name, text, kept);
    x->name[kept] = '\0';
    x->has_name = true;
}

// Records "LENGTH KEY=VALUE\n" of pax. False where they are none.
static bool read_pax(extras *x, const char *text, uint32_t count)
{
    for (uint32_t at = 0; at < count;) {
        uint32_t length = 0, k = at;
        for (; k < count && text[k] >= '0' && text[k] <= '9' && length <= EXTRA_MOST_BYTES; k++) {
            length = length * 10 + (uint32_t)(text[k] - '0');
        }
        if (k == at || k == count || text[k] != ' ' || length > count - at || at + length <= k + 2 ||
            text[at + length - 1] != '\n') {
            return false;
        }
        const char *key = text + k + 1;
        const uint32_t left = at + length - 1 - (k + 1);
        if (left > 5 && memcmp(key, "path=", 5) == 0) {
            set_name(x, key + 5, left - 5);
        } else if (left > 5 && memcmp(key, "size=", 5) == 0) {
            x->size_bytes = strtoull(key + 5, NULL, 10);
            x->has_size = true;
        }
        at += length;
    }
    return true;
}

static hr_status read_extra(tar_walk *w, char kind, uint64_t size_bytes, extras *x, hr_err *err)
{
    char room[EXTRA_MOST_BYTES + 1];
    const uint8_t *bytes;
    if (size_bytes > EXTRA_MOST_BYTES) {
        return refuse(w, "a name and facts of at most 4096 bytes", err);
    }
    HR_TRY(blob_at(w->file, w->next + TAR_BLOCK_BYTES, (uint32_t)size_bytes, (uint8_t *)room, &bytes, err));
    if (bytes != (uint8_t *)room) {
        memcpy(room, bytes, size_bytes);
    }
    room[size_bytes] = '\0'; // ends a number that ends with the room
    if (kind == 'L') {
        set_name(x, room, (uint32_t)strlen(room));
        return HR_OK;
    }
    return read_pax(x, room, (uint32_t)size_bytes) ? HR_OK : refuse(w, "the facts of a member", err);
}

static void header_name(const uint8_t *block, char name[TAR_NAME_MAX])
{
    const char *prefix = (const char *)block + PREFIX_AT, *leaf = (const char *)block;
    size_t used = 0;
    if (memcmp(block + MAGIC_AT, "ustar\0", 6) == 0 && *prefix != '\0') {
        used = strnlen(prefix, PREFIX_BYTES);
        memcpy(name, prefix, used);
        name[used++] = '/';
    }
    const size_t length = strnlen(leaf, NAME_BYTES);
    memcpy(name + used, leaf, length);
    name[used + length] = '\0';
}

static uint64_t whole_blocks(uint64_t bytes)
{
    return (bytes + TAR_BLOCK_BYTES - 1) / TAR_BLOCK_BYTES * TAR_BLOCK_BYTES;
}

// The header at w->next, less its bytes. *end: there is none any more.
static hr_status read_header(const tar_walk *w, uint8_t room[TAR_BLOCK_BYTES], const uint8_t **block,
                             bool *end, hr_err *err)
{
    *end = w->next >= w->file->size_bytes;
    if (*end) {
        return HR_OK;
    }
    HR_TRY(blob_at(w->file, w->next, TAR_BLOCK_BYTES, room, block, err));
    *end = is_zero(*block);
    return *end || tar_is_likely(*block) ? HR_OK : refuse(w, "the header of a member", err);
}

static hr_status check_bytes(const tar_walk *w, uint64_t size_bytes, hr_err *err)
{
    uint64_t end;
    if (hr_add_bytes(w->next + TAR_BLOCK_BYTES, size_bytes, &end) && end <= w->file->size_bytes) {
        return HR_OK;
    }
    return HR_FAIL(err, DATA,
                   "%s, offset %" PRIu64 ": needed a member of %" PRIu64 " bytes, had a file of %" PRIu64
                   " that ends before",
                   w->file->name, w->next, size_bytes, w->file->size_bytes);
}

static void fill_member(const tar_walk *w, const uint8_t *block, uint64_t size_bytes, const extras *x,
                        tar_member *out)
{
    if (x->has_name) {
        memcpy(out->name, x->name, sizeof out->name);
    } else {
        header_name(block, out->name);
    }
    const size_t length = strlen(out->name);
    const uint8_t kind = block[KIND_AT];
    out->offset = w->next + TAR_BLOCK_BYTES;
    out->size_bytes = size_bytes;
    out->is_file = (kind == '0' || kind == '7' || kind == '\0') && length > 0 && out->name[length - 1] != '/';
}

hr_status tar_next(tar_walk *w, tar_member *out, bool *found, hr_err *err)
{
    extras x = {.has_name = false};
    uint8_t room[TAR_BLOCK_BYTES];
    *found = false;
    for (;;) {
        const uint8_t *block;
        uint64_t size_bytes;
        bool end;
        HR_TRY(read_header(w, room, &block, &end, err));
        if (end) {
            return HR_OK;
        }
        const char kind = (char)block[KIND_AT];
        if (!read_size(block + SIZE_AT, &size_bytes)) {
            return refuse(w, "the size of a member", err);
        }
        const bool is_extra = kind == 'L' || kind == 'x' || kind == 'K' || kind == 'g';
        size_bytes = x.has_size && !is_extra ? x.size_bytes : size_bytes;
        HR_TRY(check_bytes(w, size_bytes, err));
        if (kind == 'L' || kind == 'x') {
            HR_TRY(read_extra(w, kind, size_bytes, &x, err));
        } else if (!is_extra) {
            fill_member(w, block, size_bytes, &x, out);
            *found = true;
        }
        w->next += TAR_BLOCK_BYTES + whole_blocks(size_bytes);
        if (*found) {
            return HR_OK;
        }
    }
}
