// SPDX-License-Identifier: Apache-2.0
#include "headroom/file_kind.h"

#include <string.h>
#include <sys/stat.h>

#include "base/file_name.h"
#include "base/text.h"
#include "base/torch_file.h"
#include "formats/formats.h"
#include "knobs/preset_import.h"

static bool is_file(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

hr_file_kind hr_file_kind_of(const char *word)
{
    const hr_file_kind named = file_kind_named(word);
    if (!is_file(word)) {
        return named;
    }
    if (trace_recognises(word)) {
        return HR_FILE_TRACE;
    }
    if (named == HR_FILE_JSON || named == HR_FILE_CONFIG) {
        return preset_import_json_kind(word);
    }
    if (named != HR_FILE_PRESET || text_ends_in(word, ".yaml")) {
        return named;
    }
    return torch_file_is_one(word)       ? HR_FILE_CHECKPOINT
           : strpbrk(word, "./") == NULL ? HR_FILE_PRESET
                                         : HR_FILE_OTHER;
}
