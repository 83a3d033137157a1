// SPDX-License-Identifier: Apache-2.0
// The plain names of a folder that end in one of a few ways, in byte order: data that comes in several files.
#ifndef DATA_LISTING_H
#define DATA_LISTING_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

enum { LISTING_MOST_NAMES = 1 << 20 };

typedef struct listing {
    char *names;    // one behind the other, each NUL-terminated
    uint32_t *name; // where each begins
    uint32_t count;
    uint32_t names_bytes;
} listing;

// Names in `folder` that end in `ending` (".txt", or several with blanks between), those with a leading dot left out. DATA error when the folder cannot
// be read or holds more than LISTING_MOST_NAMES.
HR_MUST_CHECK hr_status listing_read(const char *folder, const char *ending, listing *out, hr_err *err);
void listing_free(listing *l);
const char *listing_name(const listing *l, uint32_t k);

// In one of the endings, without regard to case. '#' stands for one digit or more: ".tfrecord -#-of-#".
bool name_ends_in(const char *name, const char *endings);
bool folder_is_at(const char *path);
// Is a plain file that ends so there, or a folder with one?
bool files_are_at(const char *path, const char *ending);

// What a file is for, by the words of its name ("fineweb_val_000000.bin"; letters are a word, case does not matter).
typedef enum name_use {
    NAME_TRAIN,
    NAME_VALIDATION, // val, valid, validation, dev, eval
    NAME_TEST,       // test
} name_use;

name_use name_use_of(const char *name);
// Held out are the files for validation; where there are none, those for testing. Which of the two that is here.
name_use listing_held_out_use(const listing *l);

#endif
