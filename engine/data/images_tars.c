// SPDX-License-Identifier: Apache-2.0
// Images in a tar, or in the *.tar of a folder in the order of their names: read in place. The first walk goes
// through all headers, an image is then read where it lies. Tars with val or test in their names are the held-out
// set.
//
// The pool of names: the path of each tar.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/host_mem.h"
#include "data/blob.h"
#include "data/image.h"
#include "data/image_members.h"
#include "data/same_file.h"
#include "data/tar.h"

typedef struct tar_file {
    uint64_t size_bytes;
    uint32_t mark, name; // in the pool
} tar_file;

typedef struct image_tars {
    uint32_t count;
    tar_file file[];
} image_tars;

typedef struct tars_walk {
    image_index *index;
    image_tars *tars;
    image_members *members;
    blob at_hand;
    tar_member member;
} tars_walk;

static uint64_t tars_bytes(uint32_t count)
{
    return sizeof(image_tars) + count * sizeof(tar_file);
}

// ---- members
// ----------------------------------------------------------------------------------------------------

static hr_status tars_text(void *context, const member *m, char *to, hr_err *err)
{
    const tars_walk *w = context;
    const uint8_t *bytes;
    return blob_at(&w->at_hand, w->member.offset, (uint32_t)m->size_bytes, (uint8_t *)to, &bytes, err);
}

static hr_status tars_place(void *context, const member *m, uint32_t *at, hr_err *err)
{
    const tars_walk *w = context;
    const uint64_t block = w->member.offset / TAR_BLOCK_BYTES;
    if (block > UINT32_MAX) {
        return HR_FAIL(err, DATA, "%s: needed a tar of at most 2 TiB, had more", m->archive);
    }
    *at = (uint32_t)block;
    return HR_OK;
}

static bool tars_looks(void *context, const member *m)
{
    const tars_walk *w = context;
    uint8_t begin[8];
    const uint8_t *bytes;
    return m->size_bytes >= sizeof begin &&
           blob_at(&w->at_hand, w->member.offset, sizeof begin, begin, &bytes, NULL) == HR_OK &&
           image_is_likely(bytes, sizeof begin);
}

static hr_status walk_members(tars_walk *w, uint32_t file, const char *path, hr_err *err)
{
    tar_walk walk = {.file = &w->at_hand};
    const char *slash = strrchr(path, '/');
    const name_use use = name_use_of(slash != NULL ? slash + 1 : path);
    for (;;) {
        bool found;
        HR_TRY(tar_next(&walk, &w->member, &found, err));
        if (!found) {
            return members_end(w->members, err);
        }
        if (w->member.is_file) {
            const member one = {.archive = path,
                                .name = w->member.name,
                                .size_bytes = w->member.size_bytes,
                                .use = w->tars->count > 1 ? use : NAME_TRAIN,
                                .file = file};
            HR_TRY(members_show(w->members, &one, err));
        }
    }
}

static hr_status walk_tar(tars_walk *w, uint32_t file, hr_err *err)
{
    tar_file *t = &w->tars->file[file];
    const char *path = w->index->names + t->name;
    struct stat facts;
    HR_TRY(blob_open_path(path, &w->at_hand, err));
    hr_status status = HR_OK;
    if (!blob_is_open(&w->at_hand) || fstat(w->at_hand.fd, &facts) != 0) {
        status = HR_FAIL(err, DATA, "%s: needed a file that can be read, had none", path);
    } else {
        t->size_bytes = (uint64_t)facts.st_size;
        t->mark = file_facts_of(&facts).mark;
        status = walk_members(w, file, path, err);
    }
    blob_close(&w->at_hand);
    return status;
}

static hr_status walk_all(tars_walk *w, hr_err *err)
{
    for (uint32_t k = 0; k < w->tars->count; k++) {
        HR_TRY(walk_tar(w, k, err));
    }
    return HR_OK;
}

// ---- opening
// ----------------------------------------------------------------------------------------------------

// The paths of the tars: `folder` with each name of l, or `folder` itself.
static hr_status keep_paths(const char *folder, const listing *l, image_index *index, image_tars *tars,
                            hr_err *err)
{
    const size_t folder_bytes = strlen(folder) + 1;
    for (uint32_t k = 0; k < tars->count; k++) {
        index->names_bytes += folder_bytes + (l != NULL ? strlen(listing_name(l, k)) + 1 : 0);
    }
    index->names = hr_calloc(index->names_bytes, 1);
    if (index->names == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %" PRIu64 " bytes for names, had less", folder,
                       index->names_bytes);
    }
    size_t used = 0;
    for (uint32_t k = 0; k < tars->count; k++) {
        tars->file[k].name = (uint32_t)used;
        used += 1 + (size_t)snprintf(index->names + used, index->names_bytes - used, "%s%s%s", folder,
                                     l != NULL ? "/" : "", l != NULL ? listing_name(l, k) : "");
    }
    return HR_OK;
}

static const image_store_ops tars_ops;

static hr_status walk_twice(tars_walk *w, const char *path, hr_err *err)
{
    HR_TRY(walk_all(w, err));
    members_learn(w->members);
    HR_TRY(image_index_take(w->index, path, 0, err));
    HR_TRY(walk_all(w, err));
    return members_finish(w->members, path, err);
}

static hr_status open_tars(const char *path, const listing *l, const image_options *options, image_place *out,
                           hr_err *err)
{
    const uint32_t count = l != NULL ? l->count : 1;
    image_tars *tars = hr_calloc(1, tars_bytes(count));
    if (tars == NULL) {
        return HR_FAIL(err, NOMEM, "%s: needed %" PRIu64 " bytes for its tars, had less", path,
                       tars_bytes(count));
    }
    tars->count = count;
    out->ops = &tars_ops;
    out->store = tars;
    HR_TRY(keep_paths(path, l, &out->index, tars, err));
    tars_walk w = {.index = &out->index, .tars = tars, .at_hand = BLOB_NONE};
    const member_reader reader = {.context = &w, .text = tars_text, .place = tars_place, .looks = tars_looks};
    HR_TRY(members_open(options, &reader, w.index, &w.members, err));
    const hr_status status = walk_twice(&w, path, err);
    members_close(w.members);
    out->index.held_bytes += tars_bytes(count);
    return status;
}

hr_status image_tars_open(const char *path, const image_options *options, image_place *out, hr_err *err)
{
    *out = (image_place){.ops = NULL};
    if (!folder_is_at(path)) {
        return open_tars(path, NULL, options, out, err);
    }
    listing l;
    HR_TRY(listing_read(path, ".tar", &l, err));
    const hr_status status = open_tars(path, &l, options, out, err);
    listing_free(&l);
    return status;
}

// ---- reading
// ----------------------------------------------------------------------------------------------------

static hr_status tars_fetch(const void *store, const image_index *index, data_set set, const image_entry *e,
                            uint8_t *room, const uint8_t **bytes, hr_err *err)
{
    const tar_file *t = &((const image_tars *)store)->file[e->file];
    const file_facts facts = {.size_bytes = t->size_bytes, .mark = t->mark};
    (void)set;
    *bytes = room;
    return file_read_same(index->names + t->name, &facts, (uint64_t)e->at * TAR_BLOCK_BYTES, e->size_bytes,
                          room, err);
}

// The header in front of it has its name, or the end of that. Asked for in sentences alone.
static const char *tars_name(const void *store, const image_index *index, data_set set, const image_entry *e,
                             char text[IMAGE_PATH_MAX])
{
    const tar_file *t = &((const image_tars *)store)->file[e->file];
    const char *path = index->names + t->name;
    const file_facts facts = {.size_bytes = t->size_bytes, .mark = t->mark};
    const uint64_t at = (uint64_t)e->at * TAR_BLOCK_BYTES;
    char name[101] = "";
    (void)set;
    if (file_read_same(path, &facts, at - TAR_BLOCK_BYTES, sizeof name - 1, (uint8_t *)name, NULL) != HR_OK) {
        name[0] = '\0';
    }
    for (char *c = name; *c != '\0'; c++) {
        *c = *c < ' ' || *c > '~' ? '?' : *c;
    }
    (void)snprintf(text, IMAGE_PATH_MAX, "%s, offset %" PRIu64 "%s%s", path, at, name[0] != '\0' ? ", " : "",
                   name);
    return text;
}

static void tars_close(void *store)
{
    hr_free(store);
}

static const image_store_ops tars_ops = {.fetch = tars_fetch, .name = tars_name, .close = tars_close};

// ---- looking ----------------------------------------------------------------------------------------------------

bool image_tars_are_meant(const char *path)
{
    uint8_t block[TAR_BLOCK_BYTES];
    const uint8_t *bytes;
    blob b;
    if (folder_is_at(path)) {
        return files_are_at(path, ".tar");
    }
    if (blob_open_path(path, &b, NULL) != HR_OK || !blob_is_open(&b)) {
        return false;
    }
    const bool is_tar = blob_at(&b, 0, sizeof block, block, &bytes, NULL) == HR_OK && tar_is_likely(bytes);
    blob_close(&b);
    return is_tar;
}

enum { LOOK_MEMBERS = 64 };

// Is one of its first members named as images are?
static bool holds_images(const char *path)
{
    blob b;
    if (blob_open_path(path, &b, NULL) != HR_OK || !blob_is_open(&b)) {
        return false;
    }
    tar_walk walk = {.file = &b};
    bool holds = false, found = true;
    for (int k = 0; k < LOOK_MEMBERS && found && !holds; k++) {
        tar_member one;
        found = tar_next(&walk, &one, &found, NULL) == HR_OK && found;
        holds = found && one.is_file && image_is_named(one.name);
    }
    blob_close(&b);
    return holds;
}

bool image_tars_are_at(const char *path)
{
    char first[IMAGE_PATH_MAX];
    listing l;
    if (!folder_is_at(path)) {
        return holds_images(path);
    }
    if (listing_read(path, ".tar", &l, NULL) != HR_OK) {
        return false;
    }
    const int length = l.count > 0 ? snprintf(first, sizeof first, "%s/%s", path, listing_name(&l, 0)) : 0;
    listing_free(&l);
    return length > 0 && length < IMAGE_PATH_MAX && holds_images(first);
}
