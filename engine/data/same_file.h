// SPDX-License-Identifier: Apache-2.0
// Bytes of files that must stay what they were when they were first looked at. A file is open while it is read, and
// no longer.
#ifndef DATA_SAME_FILE_H
#define DATA_SAME_FILE_H

#include <stdint.h>
#include <sys/stat.h>

#include "headroom/status.h"

// Of when a file was written.
uint32_t file_mark(const struct stat *facts);

typedef struct file_facts {
    uint64_t size_bytes;
    uint32_t mark;
} file_facts;

// to[0..count) from `offset`. DATA error when the file is not there, is another than `facts` says, or no plain file.
HR_MUST_CHECK hr_status file_read_same(const char *path, const file_facts *facts, uint64_t offset,
                                       uint32_t count, uint8_t *to, hr_err *err);

#endif
