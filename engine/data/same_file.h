// SPDX-License-Identifier: Apache-2.0
// Bytes of files that must stay what they were when they were first looked at. DATA errors name the file. Thread-safe.
#ifndef DATA_SAME_FILE_H
#define DATA_SAME_FILE_H

#include <stdint.h>
#include <sys/stat.h>

#include "headroom/status.h"

typedef struct file_facts {
    uint64_t size_bytes;
    uint32_t mark; // of when it was written
} file_facts;

file_facts file_facts_of(const struct stat *now);

// A descriptor, and what the file is now. DATA error when it cannot be read or is no plain file: *fd is -1 then.
HR_MUST_CHECK hr_status file_open_plain(const char *path, int *fd, file_facts *facts, hr_err *err);
// DATA error when the file is another than `facts` says.
HR_MUST_CHECK hr_status file_check_same(int fd, const char *path, const file_facts *facts, hr_err *err);
// to[0..count) from `offset`. DATA error when the file ends before.
HR_MUST_CHECK hr_status file_read_all(int fd, const char *path, uint64_t offset, uint32_t count, uint8_t *to,
                                      hr_err *err);
// All three: the file is open while it is read, and no longer.
HR_MUST_CHECK hr_status file_read_same(const char *path, const file_facts *facts, uint64_t offset,
                                       uint32_t count, uint8_t *to, hr_err *err);

#endif
