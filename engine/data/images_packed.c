// SPDX-License-Identifier: Apache-2.0
// Images in a packed archive, .tar.gz or .zip: read twice from front to back, and held whole.
//
// The pool of names: the archive's path, then each image's.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/host_mem.h"
#include "base/reader.h"
#include "data/blob.h"
#include "data/image_members.h"

typedef struct packed_walk {
    image_index *index;
    image_members *members;
    const char *path;
    reader *reader;
    bool fills;
    uint64_t bytes, names_bytes; // of images, so far
    blob *held;
    uint32_t name; // of the image that is shown, in the pool
} packed_walk;

static hr_status packed_text(void *context, const member *m, char *to, hr_err *err)
{
    const packed_walk *w = context;
    return reader_take(w->reader, to, m->size_bytes, err);
}

static hr_status refuse_change(const packed_walk *w, hr_err *err)
{
    return HR_FAIL(err, DATA, "%s: needed an archive that stays as it is, had other members than before",
                   w->path);
}

// What is too large to be decoded has a name and no bytes.
static hr_status packed_place(void *context, const member *m, uint32_t *at, hr_err *err)
{
    packed_walk *w = context;
    const size_t name_bytes = strlen(m->name) + 1;
    const uint64_t size_bytes = m->size_bytes > IMAGE_FILE_MOST_BYTES ? 0 : m->size_bytes;
    if (w->fills) {
        if (size_bytes > w->held->size_bytes - w->bytes ||
            name_bytes > w->index->names_bytes - w->names_bytes) {
            return refuse_change(w, err);
        }
        memcpy(w->index->names + w->names_bytes, m->name, name_bytes);
        *at = (uint32_t)w->bytes;
        HR_TRY(reader_take(w->reader, w->held->held + *at, size_bytes, err));
    }
    w->names_bytes += name_bytes;
    w->bytes += size_bytes;
    return HR_OK;
}

static hr_status walk_members(packed_walk *w, hr_err *err)
{
    for (;;) {
        member one = {.archive = w->path, .use = NAME_TRAIN, .file = (uint32_t)w->names_bytes};
        HR_TRY(reader_next_path(w->reader, &one.name, &one.size_bytes, err));
        if (one.name == NULL) {
            return members_end(w->members, err);
        }
        if (one.size_bytes == UINT64_MAX) {
            return HR_FAIL(err, DATA, "%s: needed members that say their size, had %.200s", w->path,
                           one.name);
        }
        HR_TRY(members_show(w->members, &one, err));
    }
}

static hr_status walk(packed_walk *w, hr_err *err)
{
    w->bytes = 0;
    w->names_bytes = strlen(w->path) + 1;
    HR_TRY(reader_open(w->path, READER_ARCHIVE, &w->reader, err));
    const hr_status status = walk_members(w, err);
    reader_close(w->reader);
    return status;
}

static hr_status walk_twice(packed_walk *w, hr_err *err)
{
    uint64_t held_bytes = 0;
    HR_TRY(walk(w, err));
    members_learn(w->members);
    w->index->names_bytes = w->names_bytes;
    HR_TRY(image_index_take(w->index, w->path, 0, err));
    HR_TRY(blob_hold(w->path, NULL, w->bytes, &held_bytes, w->held, err));
    w->index->held_bytes += sizeof *w->held + (held_bytes > 0 ? held_bytes : 1);
    memcpy(w->index->names, w->path, strlen(w->path) + 1);
    w->fills = true;
    HR_TRY(walk(w, err));
    if (w->names_bytes != w->index->names_bytes || w->bytes != held_bytes) {
        return refuse_change(w, err);
    }
    return members_finish(w->members, w->path, err);
}

static hr_status packed_fetch(const void *store, const image_index *index, data_set set, const image_entry *e,
                              uint8_t *room, const uint8_t **bytes, hr_err *err)
{
    (void)index;
    (void)set;
    return blob_at(store, e->at, e->size_bytes, room, bytes, err);
}

static const char *packed_name(const void *store, const image_index *index, data_set set,
                               const image_entry *e, char text[IMAGE_PATH_MAX])
{
    (void)store;
    (void)set;
    (void)snprintf(text, IMAGE_PATH_MAX, "%s: %s", index->names, index->names + e->file);
    return text;
}

static void packed_close(void *store)
{
    blob_close(store);
    hr_free(store);
}

static const image_store_ops packed_ops = {.fetch = packed_fetch, .name = packed_name, .close = packed_close};

hr_status image_packed_open(const char *path, const image_options *options, image_place *out, hr_err *err)
{
    *out = (image_place){.ops = NULL};
    packed_walk w = {.index = &out->index, .path = path, .held = hr_calloc(1, sizeof *w.held)};
    if (w.held == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %zu bytes, had less", path, sizeof *w.held);
    }
    *w.held = BLOB_NONE;
    out->ops = &packed_ops;
    out->store = w.held;
    const member_reader by = {.context = &w, .text = packed_text, .place = packed_place};
    HR_TRY(members_open(options, &by, w.index, &w.members, err));
    const hr_status status = walk_twice(&w, err);
    members_close(w.members);
    return status;
}

enum { LOOK_MEMBERS = 64 };

// By the first of its members that say something.
static bool holds_images(reader *r)
{
    const char *name = NULL;
    uint64_t size_bytes;
    for (int k = 0; k < LOOK_MEMBERS; k++) {
        if (reader_next_path(r, &name, &size_bytes, NULL) != HR_OK || name == NULL) {
            return false;
        }
        if (image_is_named(name)) {
            return true;
        }
        if (!name_ends_in(name, ".cls") && !name_ends_in(name, ".txt") && !name_ends_in(name, ".json") &&
            !name_ends_in(name, ".md")) {
            return false;
        }
    }
    return false;
}

bool image_packed_is_at(const char *path)
{
    reader *r;
    if (folder_is_at(path) || reader_open(path, READER_ARCHIVE, &r, NULL) != HR_OK) {
        return false;
    }
    const bool holds = holds_images(r);
    reader_close(r);
    return holds;
}
