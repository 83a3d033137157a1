// SPDX-License-Identifier: Apache-2.0
// What the name of a file says that it is; what is in it is asked elsewhere (headroom/file_kind.h).
#ifndef BASE_FILE_NAME_H
#define BASE_FILE_NAME_H

#include <stdbool.h>

#include "headroom/file_kind.h"

// KERAS is an archive here; JSON whatever is in it, but CONFIG where it is called config.json; PRESET also a name that ends in
// nothing known.
hr_file_kind file_kind_named(const char *path);
// Another program's file, which is read as a preset or refused as one.
bool file_kind_is_import(hr_file_kind kind);

#endif
