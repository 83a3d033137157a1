// SPDX-License-Identifier: Apache-2.0
// Files of the person: a text as a file that is there whole or not at all, and where the program keeps its own. Any thread.
#ifndef HEADROOM_FILES_H
#define HEADROOM_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "headroom/status.h"

// What becomes of what stands there already. A folder, a device, a pipe and a read-only file never give way; a link stays one.
typedef enum hr_file_rule {
    HR_FILE_NEW,      // it stays as it is: WRITE error, also where it came a moment ago
    HR_FILE_REPLACES, // a file gives way, and its mode stays
    HR_FILE_PRIVATE,  // the same; where there is none the new one is this user's alone
} hr_file_rule;

// Writes `bytes` of `data` beside `path`, synchronises and renames. WRITE and NOMEM errors: then everything is as it was.
HR_MUST_CHECK hr_status hr_file_write(const char *path, const void *data, size_t bytes, hr_file_rule rule,
                                      hr_err *err);

// Makes the folders above `path` that are missing, for this user alone. False when one cannot be made.
bool hr_file_make_folders(const char *path);

// XDG base directories with their defaults ("XDG_STATE_HOME", ".local/state"); `leaf` is appended below headroom/. False, and "",
// when HOME is unset too or it is too long. Nothing is created.
bool hr_file_xdg(const char *variable, const char *home_default, const char *leaf, char *path, size_t size);

#endif
