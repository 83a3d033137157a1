// SPDX-License-Identifier: Apache-2.0
// Reads members of an archive (tar or zip, plain or gzip), or one .gz file, from front to back. Nothing is
// extracted, members are known by their leaf name only, and how much can come out of the file is known before
// anything is taken: deflate cannot make more than 1032 bytes of one.
#ifndef BASE_READER_H
#define BASE_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

typedef enum reader_kind { READER_ARCHIVE, READER_GZIP } reader_kind;

typedef struct reader reader;

// DATA error when the file cannot be read or is no such thing.
HR_MUST_CHECK hr_status reader_open(const char *path, reader_kind kind, reader **out, hr_err *err);
void reader_close(reader *r); // NULL is fine

// The next plain file in it; *leaf is NULL after the last one, borrowed until the next call. *size_bytes is
// checked against what the file can hold; UINT64_MAX when it does not say (READER_GZIP).
HR_MUST_CHECK hr_status reader_next(reader *r, const char **leaf, uint64_t *size_bytes, hr_err *err);

// The same with the whole path; those of READER_PATH_MAX bytes and more are passed over.
enum { READER_PATH_MAX = 1024 };
HR_MUST_CHECK hr_status reader_next_path(reader *r, const char **path, uint64_t *size_bytes, hr_err *err);

// The next `bytes` bytes of the member. DATA error with the offset when it ends before.
HR_MUST_CHECK hr_status reader_take(reader *r, void *to, uint64_t bytes, hr_err *err);
// DATA error unless all of the member was taken.
HR_MUST_CHECK hr_status reader_expect_end(reader *r, hr_err *err);

// Whether it reads the file that is open as `fd`, as that is now.
bool reader_is_of(const reader *r, int fd);

// The most bytes that can come out of the file.
uint64_t reader_most_bytes(const reader *r);

#endif
