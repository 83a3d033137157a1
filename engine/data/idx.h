// SPDX-License-Identifier: Apache-2.0
// IDX, the form of MNIST: two zero bytes, a type, the number of dimensions, each dimension as a big-endian 32-bit
// number, and the data. Here: unsigned bytes, plain or .gz.
#ifndef DATA_IDX_H
#define DATA_IDX_H

#include "headroom/status.h"

#include "data/blob.h"

enum { IDX_MOST_DIMENSIONS = 3 };

// One file, opened and checked: it has exactly the bytes its header says. Dimensions are > 0.
typedef struct idx {
    blob file;
    uint32_t header_bytes;
    uint32_t dimension[IDX_MOST_DIMENSIONS];
} idx;

// Opens `leaf` in `folder`, or else `leaf`.gz, which is then held. When there is neither, f->file stays closed.
// *held_bytes as in blob_hold. DATA errors name file and offset. The caller closes f->file, also after an error.
HR_MUST_CHECK hr_status idx_open(const char *folder, const char *leaf, uint32_t dimensions,
                                 uint64_t *held_bytes, idx *f, hr_err *err);

// Takes a plain file's bytes into memory.
HR_MUST_CHECK hr_status idx_hold(idx *f, uint64_t *held_bytes, hr_err *err);

#endif
