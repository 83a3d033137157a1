// SPDX-License-Identifier: Apache-2.0
// The bytes of one data file. A plain file is read when asked, piece by piece, so that its bytes are in the
// system's cache only and a file cut while in use is an error, not a crash; what came out of an archive is held.
#ifndef DATA_BLOB_H
#define DATA_BLOB_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#include "data/same_file.h"

enum { BLOB_NAME_MAX = 384 };

// Of one source. What comes out of an archive is held in memory; a stranger's archive must not take all there is.
#define BLOB_MOST_HELD_BYTES (UINT64_C(1) << 30)

typedef struct blob {
    char name[BLOB_NAME_MAX]; // "folder/test_batch.bin", "cifar.tar.gz: test_batch.bin": for sentences
    uint64_t size_bytes;
    file_facts facts; // of the file when it was opened
    uint8_t *held;    // the bytes; NULL: they are behind fd
    int fd;           // -1: none
} blob;

#define BLOB_NONE ((blob){.fd = -1})

// Opens folder/leaf. A file that is not there is no error: blob_is_open is then false. DATA error when it cannot
// be read or is not a plain file.
HR_MUST_CHECK hr_status blob_open(const char *folder, const char *leaf, blob *out, hr_err *err);
// The same of a whole path.
HR_MUST_CHECK hr_status blob_open_path(const char *path, blob *out, hr_err *err);

// The same file once more, under another name: whatever lies at its path by now. DATA error when there is no descriptor for it.
HR_MUST_CHECK hr_status blob_open_again(const blob *from, const char *leaf, blob *out, hr_err *err);

// Zeroed bytes to fill, for what comes out of `from` under the name `leaf` (NULL: the name is `from`). Adds them
// to *held_bytes, which may come to BLOB_MOST_HELD_BYTES: more is a DATA error and takes nothing.
HR_MUST_CHECK hr_status blob_hold(const char *from, const char *leaf, uint64_t size_bytes,
                                  uint64_t *held_bytes, blob *out, hr_err *err);
void blob_close(blob *b); // back to BLOB_NONE

bool blob_is_open(const blob *b);

// DATA error when the file that is behind it was cut or written to since. Thread-safe.
HR_MUST_CHECK hr_status blob_check_same(const blob *b, hr_err *err);

// *out points at `count` bytes from `offset`, in the blob or in scratch[0..count). DATA error when the file ends
// before. Thread-safe.
HR_MUST_CHECK hr_status blob_at(const blob *b, uint64_t offset, uint32_t count, uint8_t *scratch,
                                const uint8_t **out, hr_err *err);

#endif
