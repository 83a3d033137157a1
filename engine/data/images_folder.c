// SPDX-License-Identifier: Apache-2.0
// Images in a folder with one folder per class, or in train and val (or test) folders of such folders. What lies deeper belongs
// to its class too.
//
// The pool of names: the folder's own path, the two sets' folders, the classes, then each file from its class on.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/host_mem.h"
#include "data/image.h"
#include "data/image_index.h"
#include "data/listing.h"
#include "data/same_file.h"

enum { DEPTH_MOST = 4, LOOK_BYTES = 8 };

typedef struct image_folder {
    uint32_t set_name[DATA_SET_COUNT]; // in the pool; that of the root is ""
} image_folder;

typedef struct folder_walk {
    const image_options *options;
    image_index *index;
    bool fills;     // the second pass
    uint64_t files; // passed
    uint64_t names_bytes;
    char path[IMAGE_PATH_MAX];
    size_t length;      // of path
    size_t class_bytes; // of path, up to the name of a file of the class
    uint32_t label;
    const char *set_name[DATA_SET_COUNT]; // NULL: there is none
    listing in_set[DATA_SET_COUNT];
    listing classes;
} folder_walk;

static hr_status go_into(folder_walk *w, const char *name, hr_err *err)
{
    const size_t length = strlen(name);
    if (w->length + length + 2 > sizeof w->path) {
        return HR_FAIL(err, DATA, "%.200s…: needed a path below %d bytes, had more", w->path, IMAGE_PATH_MAX);
    }
    if (length > 0) {
        w->path[w->length++] = '/';
        memcpy(w->path + w->length, name, length + 1);
        w->length += length;
    }
    return HR_OK;
}

static void go_back(folder_walk *w, size_t length)
{
    w->length = length;
    w->path[length] = '\0';
}

static hr_status refuse_change(const folder_walk *w, hr_err *err)
{
    return HR_FAIL(err, DATA, "%s: needed a folder that stays as it is, had other files than before",
                   w->path);
}

// Is a name that tells nothing that of a JPEG or PNG?
static bool holds_image(const char *path)
{
    uint8_t bytes[LOOK_BYTES];
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const ssize_t got = fd >= 0 ? pread(fd, bytes, sizeof bytes, 0) : 0;
    if (fd >= 0) {
        close(fd);
    }
    return got > 0 && image_is_likely(bytes, (uint64_t)got);
}

// ---- the two passes -------------------------------------------------------------------------------------------

// Keeps text in the pool; false when there is no room for it.
static bool keep_name(folder_walk *w, const char *text, uint32_t *where)
{
    const size_t bytes = strlen(text) + 1;
    const bool fits = w->names_bytes + bytes <= w->index->names_bytes;
    if (fits) {
        memcpy(w->index->names + w->names_bytes, text, bytes);
        *where = (uint32_t)w->names_bytes;
        w->names_bytes += bytes;
    }
    return fits;
}

// The file at path. One that cannot be looked at is an image that cannot be read.
static hr_status file_was_found(folder_walk *w, hr_err *err)
{
    const char *name = w->path + w->class_bytes;
    if (!w->fills) {
        w->files++;
        w->names_bytes += strlen(name) + 1;
        return HR_OK;
    }
    image_entry e = {.label = w->label};
    struct stat facts;
    if (w->files == w->index->count[DATA_TRAIN] + w->index->count[DATA_EVAL] ||
        !keep_name(w, name, &e.file)) {
        return refuse_change(w, err);
    }
    if (stat(w->path, &facts) == 0 && S_ISREG(facts.st_mode)) {
        e.size_bytes = facts.st_size > IMAGE_FILE_MOST_BYTES ? IMAGE_TOO_LARGE : (uint32_t)facts.st_size;
        e.at = file_facts_of(&facts).mark;
    }
    w->index->entry[w->files++] = e;
    return HR_OK;
}

static hr_status walk_folder(folder_walk *w, uint32_t depth, hr_err *err);

static hr_status walk_one(folder_walk *w, const char *name, uint32_t depth, hr_err *err)
{
    struct stat facts;
    if (image_is_named(name)) {
        return file_was_found(w, err);
    }
    if (lstat(w->path, &facts) == 0 && S_ISDIR(facts.st_mode)) {
        return depth < DEPTH_MOST ? walk_folder(w, depth + 1, err) : HR_OK;
    }
    return stat(w->path, &facts) == 0 && S_ISREG(facts.st_mode) && holds_image(w->path)
               ? file_was_found(w, err)
               : HR_OK;
}

// The names in the folder at path. One that cannot be read is passed over, if that is wanted.
static hr_status read_names(folder_walk *w, listing *out, hr_err *err)
{
    hr_err failure = {0};
    const hr_status status = listing_read(w->path, "", out, &failure);
    if (status == HR_DATA && w->options->leave_out) {
        w->index->left_out += w->fills;
        return HR_OK;
    }
    if (status != HR_OK && err != NULL) {
        *err = failure;
    }
    return status;
}

// The folder at path, deeper ones too.
static hr_status walk_folder(folder_walk *w, uint32_t depth, hr_err *err)
{
    const size_t length = w->length;
    listing names;
    hr_status status = read_names(w, &names, err);
    for (uint32_t k = 0; k < names.count && status == HR_OK; k++) {
        const char *name = listing_name(&names, k);
        status = go_into(w, name, err);
        status = status == HR_OK ? walk_one(w, name, depth, err) : status;
        go_back(w, length);
    }
    listing_free(&names);
    return status;
}

static bool has_name(const listing *l, const char *name)
{
    bool has = false;
    for (uint32_t k = 0; k < l->count && !has; k++) {
        has = strcmp(listing_name(l, k), name) == 0;
    }
    return has;
}

static hr_status walk_class(folder_walk *w, data_set set, uint32_t label, hr_err *err)
{
    const size_t length = w->length;
    const char *name = listing_name(&w->classes, label);
    hr_status status = HR_OK;
    w->label = label;
    if (has_name(&w->in_set[set], name)) {
        status = go_into(w, name, err);
        w->class_bytes = w->length + 1;
        status = status == HR_OK ? walk_folder(w, 0, err) : status;
    }
    go_back(w, length);
    return status;
}

static hr_status walk_sets(folder_walk *w, hr_err *err)
{
    const size_t length = w->length;
    w->files = 0;
    for (data_set set = 0; set < DATA_SET_COUNT; set++) {
        const uint64_t before = w->files;
        for (uint32_t k = 0; w->set_name[set] != NULL && k < w->classes.count; k++) {
            HR_TRY(go_into(w, w->set_name[set], err));
            HR_TRY(walk_class(w, set, k, err));
            go_back(w, length);
        }
        if (!w->fills) {
            w->index->count[set] = w->files - before;
        } else if (w->index->count[set] != w->files - before) {
            return refuse_change(w, err);
        }
    }
    return HR_OK;
}

// ---- sets and classes -----------------------------------------------------------------------------------------

// Leaves only the names of folders in `l`.
static hr_status keep_folders(folder_walk *w, listing *l, hr_err *err)
{
    const size_t length = w->length;
    uint32_t kept = 0;
    for (uint32_t k = 0; k < l->count; k++) {
        HR_TRY(go_into(w, listing_name(l, k), err));
        l->name[kept] = l->name[k];
        kept += folder_is_at(w->path);
        go_back(w, length);
    }
    l->count = kept;
    return HR_OK;
}

static hr_status read_folders(folder_walk *w, const char *name, listing *out, hr_err *err)
{
    const size_t length = w->length;
    HR_TRY(go_into(w, name, err));
    HR_TRY(listing_read(w->path, "", out, err));
    HR_TRY(keep_folders(w, out, err));
    go_back(w, length);
    return HR_OK;
}

// The first of `words` that is there, without regard to case.
static const char *find_name(const listing *l, const char *const *words)
{
    for (; *words != NULL; words++) {
        for (uint32_t k = 0; k < l->count; k++) {
            if (strcasecmp(listing_name(l, k), *words) == 0) {
                return listing_name(l, k);
            }
        }
    }
    return NULL;
}

// One listing of the names in both, in byte order.
static hr_status join(const listing *a, const listing *b, listing *out, hr_err *err)
{
    out->names = hr_calloc((uint64_t)a->names_bytes + b->names_bytes + 1, 1);
    out->name = hr_calloc((uint64_t)a->count + b->count + 1, sizeof *out->name);
    if (out->names == NULL || out->name == NULL) {
        return HR_FAIL(err, NOMEM, "the names of %u classes: needed %u bytes, had less", a->count + b->count,
                       a->names_bytes + b->names_bytes);
    }
    for (uint32_t i = 0, j = 0; i < a->count || j < b->count;) {
        const char *x = i < a->count ? listing_name(a, i) : NULL;
        const char *y = j < b->count ? listing_name(b, j) : NULL;
        const int order = x == NULL ? 1 : y == NULL ? -1 : strcmp(x, y);
        const char *first = order <= 0 ? x : y;
        i += order <= 0;
        j += order >= 0;
        out->name[out->count++] = out->names_bytes;
        memcpy(out->names + out->names_bytes, first, strlen(first) + 1);
        out->names_bytes += (uint32_t)strlen(first) + 1;
    }
    return HR_OK;
}

static hr_status find_classes(folder_walk *w, const listing *root, hr_err *err)
{
    static const char *const training[] = {"train", "training", NULL};
    static const char *const held_out[] = {"val",  "valid", "validation", "dev",
                                           "eval", "test",  "testing",    NULL};
    const char *train = find_name(root, training);
    w->set_name[DATA_TRAIN] = train != NULL ? train : "";
    w->set_name[DATA_EVAL] = train != NULL ? find_name(root, held_out) : NULL;
    for (data_set set = 0; set < DATA_SET_COUNT; set++) {
        if (w->set_name[set] != NULL) {
            HR_TRY(read_folders(w, w->set_name[set], &w->in_set[set], err));
        }
    }
    HR_TRY(join(&w->in_set[DATA_TRAIN], &w->in_set[DATA_EVAL], &w->classes, err));
    if (w->classes.count == 0) {
        const hr_status status =
            HR_FAIL(err, DATA, "%s: needed one folder per class with images in it, had no folder", w->path);
        hr_err_try(err,
                   "put the images of each class into a folder of its own, or -s pipeline.source=generated");
        return status;
    }
    return HR_OK;
}

// ---- opening --------------------------------------------------------------------------------------------------

static hr_status keep_text(folder_walk *w, const char *text, uint32_t *where, hr_err *err)
{
    return keep_name(w, text, where) ? HR_OK : refuse_change(w, err);
}

static hr_status keep_names(folder_walk *w, image_folder *f, hr_err *err)
{
    uint32_t root;
    HR_TRY(keep_text(w, w->path, &root, err));
    for (data_set set = 0; set < DATA_SET_COUNT; set++) {
        if (w->set_name[set] != NULL) {
            HR_TRY(keep_text(w, w->set_name[set], &f->set_name[set], err));
        }
    }
    for (uint32_t k = 0; k < w->classes.count; k++) {
        HR_TRY(keep_text(w, listing_name(&w->classes, k), &w->index->class_name[k], err));
    }
    return HR_OK;
}

static hr_status walk_twice(folder_walk *w, image_folder *f, hr_err *err)
{
    image_index *index = w->index;
    w->names_bytes = w->length + 1 + w->classes.names_bytes;
    for (data_set set = 0; set < DATA_SET_COUNT; set++) {
        w->names_bytes += w->set_name[set] != NULL ? strlen(w->set_name[set]) + 1 : 0;
    }
    HR_TRY(walk_sets(w, err));
    index->names_bytes = w->names_bytes;
    index->classes = w->classes.count;
    HR_TRY(image_index_take(index, w->path, index->classes, err));
    index->held_bytes += sizeof *f;
    w->names_bytes = 0;
    w->fills = true;
    HR_TRY(keep_names(w, f, err));
    HR_TRY(walk_sets(w, err));
    return w->names_bytes == index->names_bytes ? HR_OK : refuse_change(w, err);
}

static hr_status open_sets(folder_walk *w, image_folder *f, hr_err *err)
{
    listing root;
    HR_TRY(listing_read(w->path, "", &root, err));
    hr_status status = keep_folders(w, &root, err);
    status = status == HR_OK ? find_classes(w, &root, err) : status;
    status = status == HR_OK ? walk_twice(w, f, err) : status;
    listing_free(&root);
    return status;
}

// ---- reading --------------------------------------------------------------------------------------------------

static const char *folder_name(const void *store, const image_index *index, data_set set,
                               const image_entry *e, char text[IMAGE_PATH_MAX])
{
    const image_folder *f = store;
    const char *part = index->names + f->set_name[set];
    (void)snprintf(text, IMAGE_PATH_MAX, "%s%s%s/%s/%s", index->names, *part == '\0' ? "" : "/", part,
                   index->names + index->class_name[e->label], index->names + e->file);
    return text;
}

static hr_status folder_fetch(const void *store, const image_index *index, data_set set, const image_entry *e,
                              uint8_t *room, const uint8_t **bytes, hr_err *err)
{
    char path[IMAGE_PATH_MAX];
    const file_facts facts = {.size_bytes = e->size_bytes, .mark = e->at};
    *bytes = room;
    return file_read_same(folder_name(store, index, set, e, path), &facts, 0, e->size_bytes, room, err);
}

static void folder_close(void *store)
{
    hr_free(store);
}

static const image_store_ops folder_ops = {.fetch = folder_fetch, .name = folder_name, .close = folder_close};

hr_status image_folder_open(const char *path, const image_options *options, image_place *out, hr_err *err)
{
    *out = (image_place){.ops = NULL};
    image_folder *f = hr_calloc(1, sizeof *f);
    folder_walk *w = hr_calloc(1, sizeof *w);
    hr_status status = HR_OK;
    if (f == NULL || w == NULL) {
        hr_free(f);
        hr_free(w);
        return HR_FAIL(err, NOMEM, "%s: needed %zu bytes, had less", path, sizeof *f + sizeof *w);
    }
    out->ops = &folder_ops;
    out->store = f;
    *w = (folder_walk){.options = options, .index = &out->index};
    w->length = strlen(path);
    while (w->length > 1 && path[w->length - 1] == '/') {
        w->length--;
    }
    if (w->length + 1 > sizeof w->path) {
        status = HR_FAIL(err, DATA, "%.200s…: needed a path below %d bytes, had more", path, IMAGE_PATH_MAX);
    } else {
        memcpy(w->path, path, w->length);
        status = open_sets(w, f, err);
    }
    for (data_set set = 0; set < DATA_SET_COUNT; set++) {
        listing_free(&w->in_set[set]);
    }
    listing_free(&w->classes);
    hr_free(w);
    return status;
}

enum { LOOK_FOLDERS = 4, LOOK_NAMES = 64 };

// Is one of its first names that of an image?
static bool has_images(const char *path)
{
    listing names;
    bool has = false;
    if (listing_read(path, "", &names, NULL) != HR_OK) {
        return false;
    }
    for (uint32_t k = 0; k < names.count && k < LOOK_NAMES && !has; k++) {
        has = image_is_named(listing_name(&names, k));
    }
    listing_free(&names);
    return has;
}

// Among its first folders.
static bool has_classes(const char *path)
{
    listing names;
    bool found = false;
    if (listing_read(path, "", &names, NULL) != HR_OK) {
        return false;
    }
    for (uint32_t k = 0, folders = 0; k < names.count && folders < LOOK_FOLDERS && !found; k++) {
        char deeper[IMAGE_PATH_MAX];
        const int length = snprintf(deeper, sizeof deeper, "%s/%s", path, listing_name(&names, k));
        if (length > 0 && length < IMAGE_PATH_MAX && folder_is_at(deeper)) {
            folders++;
            found = has_images(deeper);
        }
    }
    listing_free(&names);
    return found;
}

bool image_folder_is_at(const char *path)
{
    char train[IMAGE_PATH_MAX];
    const int length = snprintf(train, sizeof train, "%s/train", path);
    return has_classes(path) || (length > 0 && length < IMAGE_PATH_MAX && has_classes(train));
}
