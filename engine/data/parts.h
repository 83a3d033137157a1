// SPDX-License-Identifier: Apache-2.0
// Files one behind the other as one run of bytes. A file is opened when bytes of it are asked for, so that thousands
// are no more than their names, and must then be what it was: one that was cut, replaced or written to is an error.
#ifndef DATA_PARTS_H
#define DATA_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#include "data/listing.h"
#include "data/same_file.h"

typedef struct part {
    uint64_t start;      // of its bytes, in the run
    file_facts facts;    // of the file when it was opened first
    uint32_t name;       // its place in names
    uint32_t skip_bytes; // what the file begins with and is not in the run
} part;

typedef struct parts {
    bool in_folder; // names begin with its path; else the one name is a whole path
    char *names;
    part *part;
    uint32_t count;
    uint64_t size_bytes; // of the run
    uint64_t held_bytes; // of names and part
} parts;

// What a file's own beginning says: bytes[0..count) of a file of size_bytes. DATA errors name the file as `name`.
typedef hr_status (*parts_head)(void *context, const char *name, const uint8_t *bytes, uint32_t count,
                                part *p, hr_err *err);
enum { PARTS_HEAD_BYTES = 1024, PARTS_PLACE_MAX = 384 };

// The names of `from` (in `folder`) that are for `use`; NULL: `folder` itself is the path of one file. `head` sees each.
// None is no error: count is 0 then. parts_close also after an error.
HR_MUST_CHECK hr_status parts_open(const char *folder, const listing *from, name_use use, parts_head head,
                                   void *context, parts *out, hr_err *err);
void parts_close(parts *p);

// Fills to[0..count) with the run's bytes from `offset`. DATA error when they are not there, or a file has changed.
// Thread-safe.
HR_MUST_CHECK hr_status parts_at(const parts *p, uint64_t offset, uint32_t count, uint8_t *to, hr_err *err);
// "FILE, offset N" of the run's byte `offset`. Returns text.
const char *parts_place(const parts *p, uint64_t offset, char *text, uint32_t size);

#endif
