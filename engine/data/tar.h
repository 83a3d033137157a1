// SPDX-License-Identifier: Apache-2.0
// A tar read in place, header by header: ustar and what came before it, long names of GNU and of POSIX (pax). Nothing
// of a member's bytes is read.
#ifndef DATA_TAR_H
#define DATA_TAR_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#include "data/blob.h"

enum { TAR_BLOCK_BYTES = 512, TAR_NAME_MAX = 1024 };

typedef struct tar_member {
    char name[TAR_NAME_MAX]; // the whole path
    uint64_t offset;         // of its bytes: a multiple of TAR_BLOCK_BYTES
    uint64_t size_bytes;
    bool is_file; // a plain one
} tar_member;

// Starts at 0: the next header.
typedef struct tar_walk {
    const blob *file; // borrowed
    uint64_t next;
} tar_walk;

// The next member; *found false behind the last. DATA errors name file and offset; after one the walk is over.
HR_MUST_CHECK hr_status tar_next(tar_walk *w, tar_member *out, bool *found, hr_err *err);
// Do these look like the first block of a tar?
bool tar_is_likely(const uint8_t block[TAR_BLOCK_BYTES]);

#endif
