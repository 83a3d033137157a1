// SPDX-License-Identifier: Apache-2.0
// The images of a data set as a source remembers them, without their bytes: 16 bytes each, and one pool of names. An index
// is made in two passes over the files: the first counts, then all room is taken at once, the second fills it.
#ifndef DATA_IMAGE_INDEX_H
#define DATA_IMAGE_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#include "data/source.h"

enum {
    IMAGE_FILE_MOST_BYTES = 64 << 20, // of a file that is decoded
    IMAGE_PATH_MAX = 4096,
};
#define IMAGE_TOO_LARGE UINT32_MAX // the size of larger ones

typedef struct image_entry {
    uint32_t size_bytes; // of the file; IMAGE_TOO_LARGE
    uint32_t label;
    uint32_t file; // in a folder: its name, in the pool; in archives: the number of the archive
    uint32_t at;   // in a folder: a mark of when it was written; in archives: where its bytes begin
} image_entry;

typedef struct image_index {
    image_entry *entry; // training, then held-out
    uint64_t count[DATA_SET_COUNT];
    char *names;
    uint64_t names_bytes;
    uint32_t *class_name; // in the pool; NULL in archives
    uint32_t classes;
    uint64_t held_bytes;
    uint64_t left_out; // names and folders that were passed over
} image_index;

// Takes entries for index->count, names_bytes unless there are names, and class_name for `named_classes`; 0: none.
// DATA error for what is too much, NOMEM error. image_index_free also after an error.
HR_MUST_CHECK hr_status image_index_take(image_index *index, const char *path, uint32_t named_classes,
                                         hr_err *err);
void image_index_free(image_index *index);

// Where the bytes are. One constant struct a kind; `store` is its own.
typedef struct image_store_ops {
    // As data_source_ops.fetch.
    hr_status (*fetch)(const void *store, const image_index *index, data_set set, const image_entry *e,
                       uint8_t *room, const uint8_t **bytes, hr_err *err);
    // What the image is called in sentences. Returns text.
    const char *(*name)(const void *store, const image_index *index, data_set set, const image_entry *e,
                        char text[IMAGE_PATH_MAX]);
    void (*close)(void *store);
} image_store_ops;

// What was opened. `store` belongs to it.
typedef struct image_place {
    image_index index;
    const image_store_ops *ops;
    void *store;
} image_place;

// What is refused when it is opened is left out instead, and counted.
typedef struct image_options {
    bool leave_out;
} image_options;

// *out is to be closed by image_place_close also after an error.
typedef hr_status image_place_open(const char *path, const image_options *options, image_place *out,
                                   hr_err *err);
HR_MUST_CHECK image_place_open image_folder_open; // one folder per class
HR_MUST_CHECK image_place_open image_tars_open;   // a tar, or a folder of them: read in place
HR_MUST_CHECK image_place_open image_packed_open; // .tar.gz or .zip: held whole
void image_place_close(image_place *p);
// Whether there are images at once where they are looked for: in the first folders.
bool image_folder_is_at(const char *path);
bool image_tars_are_at(const char *path);
bool image_tars_are_meant(const char *path); // whatever is in them
bool image_packed_is_at(const char *path);

// Does the name end as images do, of whatever kind? What does and is none is an image that cannot be read.
bool image_is_named(const char *name);

#endif
