// SPDX-License-Identifier: Apache-2.0
// Where the members of a zip file lie (PKWARE's APPNOTE 6.3.10, with 64-bit sizes), so that a stored one can be read in
// place. Only its directory is read; sums are not checked.
#ifndef DATA_ZIP_H
#define DATA_ZIP_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#include "data/blob.h"

enum { ZIP_MOST_DIRECTORY_BYTES = 1 << 20 };

// The directory, held until zip_close.
typedef struct zip {
    blob file;
    uint8_t *directory;
    uint32_t directory_bytes;
} zip;

typedef struct zip_member {
    uint64_t offset; // in the file, where a stored member's bytes begin
    uint64_t size_bytes;
    bool is_stored; // else it is packed in some way
} zip_member;

// DATA errors name file and offset. zip_close also after an error.
HR_MUST_CHECK hr_status zip_open(const char *path, zip *z, hr_err *err);
void zip_close(zip *z);

// The member with that leaf name; *found is false when there is none. DATA error when there are two, and when it is
// encrypted or does not lie in the file.
HR_MUST_CHECK hr_status zip_find(const zip *z, const char *leaf, zip_member *out, bool *found, hr_err *err);

#endif
