// SPDX-License-Identifier: Apache-2.0
#include "headroom/file_kind.h"

#include <sys/stat.h>

#include "base/file_name.h"
#include "base/text.h"
#include "base/torch_file.h"
#include "formats/formats.h"
#include "knobs/preset_import.h"

hr_file_kind hr_file_kind_of(const char *word)
{
    const hr_file_kind named = file_kind_named(word);
    struct stat about = {.st_mode = 0};
    if (stat(word, &about) != 0 || !S_ISREG(about.st_mode)) {
        return S_ISDIR(about.st_mode) ? HR_FILE_PRESET : named;
    }
    if (trace_recognises(word)) {
        return HR_FILE_TRACE;
    }
    if (named == HR_FILE_JSON || named == HR_FILE_CONFIG) {
        return preset_import_json_kind(word);
    }
    return named == HR_FILE_PRESET && !text_ends_in(word, ".yaml") && torch_file_is_one(word)
               ? HR_FILE_CHECKPOINT
               : named;
}
