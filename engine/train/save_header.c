// SPDX-License-Identifier: Apache-2.0
#include "train/save_header.h"

#include <string.h>

#include "base/file.h"
#include "base/host_mem.h"

static bool read_exactly(int fd, void *to, size_t bytes)
{
    size_t have = 0;
    ptrdiff_t got = 1;
    while (have < bytes && got > 0) {
        got = file_read_some(fd, (char *)to + have, bytes - have);
        have += got > 0 ? (size_t)got : 0;
    }
    return have == bytes;
}

static json_t *read_header(int fd, uint64_t most_bytes)
{
    uint64_t bytes = 0;
    json_t *root = NULL;
    if (!read_exactly(fd, &bytes, sizeof bytes) || bytes == 0 || bytes > most_bytes) {
        return NULL;
    }
    char *header = hr_calloc(bytes, 1);
    if (header != NULL && read_exactly(fd, header, bytes)) {
        root = json_loadb(header, bytes, JSON_REJECT_DUPLICATES, NULL);
    }
    hr_free(header);
    return root;
}

const char *save_text(const json_t *metadata, const char *key)
{
    const char *found = json_string_value(json_object_get(metadata, key));
    return found != NULL ? found : "";
}

// A preset is what people take for a save.
static hr_status refuse(const char *path, hr_err *err)
{
    static const char ending[] = ".yaml";
    const size_t length = strlen(path), least = sizeof ending - 1;
    if (length > least && strcmp(path + length - least, ending) == 0) {
        (void)HR_FAIL(err, SAVE, "%s: needed a save of headroom, had a preset", path);
        hr_err_try(err, "headroom run %s, or -s train.resume=FILE with what train.save=FILE wrote", path);
        return HR_SAVE;
    }
    return HR_FAIL(err, SAVE, "%s: needed a save of headroom, had something else or a part of one", path);
}

hr_status save_open(const char *path, uint64_t most_bytes, int *fd, json_t **root, hr_err *err)
{
    *root = NULL;
    HR_TRY(file_open(path, fd, err));
    *root = read_header(*fd, most_bytes);
    const char *format = save_text(json_object_get(*root, "__metadata__"), "format");
    if (strncmp(format, SAVE_FAMILY, strlen(SAVE_FAMILY)) == 0) {
        return HR_OK;
    }
    json_decref(*root);
    file_close(*fd);
    *root = NULL;
    *fd = -1;
    return refuse(path, err);
}
