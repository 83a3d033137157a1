// SPDX-License-Identifier: Apache-2.0
#include "data/parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "headroom/units.h"

#include "base/host_mem.h"

enum { PATH_TEXT_MAX = 4096 };

static hr_status path_of(const parts *p, const part *one, char path[PATH_TEXT_MAX], hr_err *err)
{
    const char *name = p->names + one->name;
    const int length = p->in_folder ? snprintf(path, PATH_TEXT_MAX, "%s/%s", p->names, name)
                                    : snprintf(path, PATH_TEXT_MAX, "%s", name);
    return length > 0 && length < PATH_TEXT_MAX
               ? HR_OK
               : HR_FAIL(err, DATA, "%.200s: needed a path below %d bytes, had more", name, PATH_TEXT_MAX);
}

// ---- opening --------------------------------------------------------------------------------------------------

static hr_status look_at(parts *p, part *one, parts_head head, void *context, hr_err *err)
{
    char path[PATH_TEXT_MAX];
    uint8_t begin[PARTS_HEAD_BYTES];
    int fd;
    HR_TRY(path_of(p, one, path, err));
    HR_TRY(file_open_plain(path, &fd, &one->facts, err));
    const uint64_t size_bytes = one->facts.size_bytes;
    const uint32_t count = (uint32_t)(size_bytes < sizeof begin ? size_bytes : sizeof begin);
    one->start = p->size_bytes;
    hr_status status = file_read_all(fd, path, 0, count, begin, err);
    if (status == HR_OK) {
        status = head(context, path, begin, count, one, err);
    }
    close(fd);
    p->size_bytes += status == HR_OK ? size_bytes - one->skip_bytes : 0;
    return status;
}

static hr_status take_tables(parts *p, uint32_t count, uint64_t names_bytes, hr_err *err)
{
    p->names = hr_calloc(names_bytes, 1);
    p->part = hr_calloc(count, sizeof *p->part);
    if (p->names == NULL || p->part == NULL) {
        return HR_FAIL(err, NOMEM, "the names of %u files: needed %" PRIu64 " bytes, had less", count,
                       names_bytes + count * sizeof *p->part);
    }
    p->held_bytes = names_bytes + count * sizeof *p->part;
    return HR_OK;
}

// Keeps the folder and the names for `use`, in their order.
static hr_status keep_names(parts *p, const char *folder, const listing *from, name_use use, hr_err *err)
{
    const size_t folder_bytes = strlen(folder) + 1;
    uint32_t count = 0;
    uint64_t bytes = folder_bytes;
    for (uint32_t k = 0; k < from->count; k++) {
        const char *name = listing_name(from, k);
        if (name_use_of(name) == use) {
            count++;
            bytes += strlen(name) + 1;
        }
    }
    if (count == 0) {
        return HR_OK;
    }
    HR_TRY(take_tables(p, count, bytes, err));
    memcpy(p->names, folder, folder_bytes);
    uint32_t at = (uint32_t)folder_bytes;
    for (uint32_t k = 0; k < from->count; k++) {
        const char *name = listing_name(from, k);
        if (name_use_of(name) == use) {
            p->part[p->count++].name = at;
            memcpy(p->names + at, name, strlen(name) + 1);
            at += (uint32_t)strlen(name) + 1;
        }
    }
    return HR_OK;
}

hr_status parts_open(const char *folder, const listing *from, name_use use, parts_head head, void *context,
                     parts *out, hr_err *err)
{
    *out = (parts){.in_folder = from != NULL};
    if (from != NULL) {
        HR_TRY(keep_names(out, folder, from, use, err));
    } else {
        HR_TRY(take_tables(out, 1, strlen(folder) + 1, err));
        memcpy(out->names, folder, strlen(folder) + 1);
        out->count = 1;
    }
    for (uint32_t k = 0; k < out->count; k++) {
        HR_TRY(look_at(out, &out->part[k], head, context, err));
    }
    return HR_OK;
}

void parts_close(parts *p)
{
    hr_free(p->names);
    hr_free(p->part);
    *p = (parts){0};
}

// ---- reading --------------------------------------------------------------------------------------------------

// The last part that begins at or before `offset`: of several that begin there, the one that has bytes.
static const part *part_at(const parts *p, uint64_t offset)
{
    uint32_t below = 0, above = p->count;
    while (above - below > 1) {
        const uint32_t middle = below + (above - below) / 2;
        if (p->part[middle].start <= offset) {
            below = middle;
        } else {
            above = middle;
        }
    }
    return &p->part[below];
}

static hr_status read_part(const parts *p, const part *one, uint64_t within, uint32_t count, uint8_t *to,
                           hr_err *err)
{
    char path[PATH_TEXT_MAX];
    HR_TRY(path_of(p, one, path, err));
    return file_read_same(path, &one->facts, one->skip_bytes + within, count, to, err);
}

hr_status parts_at(const parts *p, uint64_t offset, uint32_t count, uint8_t *to, hr_err *err)
{
    uint64_t end;
    if (!hr_add_bytes(offset, count, &end) || end > p->size_bytes) {
        return HR_FAIL(err, DATA, "offset %" PRIu64 ": needed %u bytes, had %" PRIu64 " in all", offset,
                       count, p->size_bytes);
    }
    for (const part *one = count > 0 ? part_at(p, offset) : NULL; count > 0; one++) {
        const uint64_t within = offset - one->start;
        const uint64_t left = one->facts.size_bytes - one->skip_bytes - within;
        const uint32_t here = left < count ? (uint32_t)left : count;
        if (here > 0) {
            HR_TRY(read_part(p, one, within, here, to, err));
        }
        offset += here;
        to += here;
        count -= here;
    }
    return HR_OK;
}

const char *parts_place(const parts *p, uint64_t offset, char *text, uint32_t size)
{
    const part *one = part_at(p, offset);
    (void)snprintf(text, size, "%s%s%s, offset %" PRIu64, p->in_folder ? p->names : "",
                   p->in_folder ? "/" : "", p->names + one->name, offset - one->start + one->skip_bytes);
    return text;
}
