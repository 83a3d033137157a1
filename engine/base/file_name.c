// SPDX-License-Identifier: Apache-2.0
#include "base/file_name.h"

#include <stddef.h>
#include <string.h>

#include "base/text.h"

static const struct {
    const char *ending;
    hr_file_kind kind;
} endings[] = {
    {".onnx", HR_FILE_ONNX},         {".gguf", HR_FILE_GGUF},       {".safetensors", HR_FILE_SAFETENSORS},
    {".keras", HR_FILE_KERAS},       {".json", HR_FILE_JSON},       {".pt", HR_FILE_CHECKPOINT},
    {".pth", HR_FILE_CHECKPOINT},    {".ckpt", HR_FILE_CHECKPOINT}, {".bin", HR_FILE_CHECKPOINT},
    {".pickle", HR_FILE_CHECKPOINT}, {".pkl", HR_FILE_CHECKPOINT},  {".csv", HR_FILE_TRACE},
    {".hrt", HR_FILE_TRACE},         {".pb", HR_FILE_TRACE},        {".log", HR_FILE_TRACE},
};

hr_file_kind file_kind_named(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (strcmp(slash == NULL ? path : slash + 1, "config.json") == 0) {
        return HR_FILE_CONFIG;
    }
    for (size_t k = 0; k < sizeof endings / sizeof *endings; k++) {
        if (text_ends_in(path, endings[k].ending)) {
            return endings[k].kind;
        }
    }
    return HR_FILE_PRESET;
}

bool file_kind_is_import(hr_file_kind kind)
{
    return kind != HR_FILE_PRESET && kind != HR_FILE_REPORT && kind != HR_FILE_TRACE;
}
