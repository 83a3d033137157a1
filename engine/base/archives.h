// SPDX-License-Identifier: Apache-2.0
// libarchive's functions, for who reads packed files and who weighs compressed ones. It is opened when the first of them needs
// it: it brings a dozen libraries along. Any thread.
#ifndef BASE_ARCHIVES_H
#define BASE_ARCHIVES_H

#include <archive.h>
#include <archive_entry.h>

#include "headroom/status.h"

// X(name), without the library's `archive_`
#define ARCHIVE_CALL_MAP(X)                                                                                  \
    X(entry_filetype)                                                                                        \
    X(entry_free)                                                                                            \
    X(entry_hardlink)                                                                                        \
    X(entry_new)                                                                                             \
    X(entry_pathname)                                                                                        \
    X(entry_set_filetype)                                                                                    \
    X(entry_size)                                                                                            \
    X(entry_size_is_set)                                                                                     \
    X(error_string)                                                                                          \
    X(read_data)                                                                                             \
    X(read_free)                                                                                             \
    X(read_new)                                                                                              \
    X(read_next_header)                                                                                      \
    X(read_open_fd)                                                                                          \
    X(read_support_filter_gzip)                                                                              \
    X(read_support_format_raw)                                                                               \
    X(read_support_format_tar)                                                                               \
    X(read_support_format_zip)                                                                               \
    X(write_add_filter_gzip)                                                                                 \
    X(write_add_filter_zstd)                                                                                 \
    X(write_close)                                                                                           \
    X(write_data)                                                                                            \
    X(write_free)                                                                                            \
    X(write_header)                                                                                          \
    X(write_new)                                                                                             \
    X(write_open)                                                                                            \
    X(write_set_bytes_in_last_block)                                                                         \
    X(write_set_format_raw)

typedef struct archive_calls {
#define X(name) __typeof__(archive_##name) *name;
    ARCHIVE_CALL_MAP(X)
#undef X
} archive_calls;

// To be called before `archive` is used. DEPENDENCY error without the library, on behalf of `needed_by` ("a packed
// file").
HR_MUST_CHECK hr_status archives_need(const char *needed_by, hr_err *err);
extern archive_calls archive;

#endif
