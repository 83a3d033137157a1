// SPDX-License-Identifier: Apache-2.0
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "headroom/save.h"

#include "base/file.h"
#include "base/host_mem.h"
#include "base/text.h"

enum { HEADER_BYTES_MAX = 64 << 20 };

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

static json_t *read_header(int fd)
{
    uint64_t bytes = 0;
    json_t *root = NULL;
    if (!read_exactly(fd, &bytes, sizeof bytes) || bytes == 0 || bytes > HEADER_BYTES_MAX) {
        return NULL;
    }
    char *header = hr_calloc(bytes, 1);
    if (header != NULL && read_exactly(fd, header, bytes)) {
        root = json_loadb(header, bytes, JSON_REJECT_DUPLICATES, NULL);
    }
    hr_free(header);
    return root;
}

static const char *text_of(const json_t *metadata, const char *key)
{
    const char *found = json_string_value(json_object_get(metadata, key));
    return found != NULL ? found : "";
}

// "batch.size=128\n…"
static void read_knobs(const char *lines, hr_knobs *knobs)
{
    char pair[HR_KNOB_TEXT_MAX + 64];
    hr_knobs_init(knobs);
    while (*lines != '\0') {
        const size_t length = strcspn(lines, "\n");
        if (length > 0 && length < sizeof pair) {
            memcpy(pair, lines, length);
            pair[length] = '\0';
            (void)!hr_knobs_set_pair(knobs, pair, NULL);
        }
        lines += length + (lines[length] == '\n');
    }
}

hr_status hr_save_look(const char *path, hr_save_about *out, hr_err *err)
{
    int fd = -1;
    int64_t steps = 0;
    *out = (hr_save_about){.steps = 0};
    HR_TRY(file_open(path, &fd, err));
    json_t *root = read_header(fd);
    file_close(fd);
    const json_t *metadata = json_object_get(root, "__metadata__");
    const bool known = strncmp(text_of(metadata, "format"), "headroom.save/", 14) == 0 &&
                       text_to_int(text_of(metadata, "steps"), &steps) && steps >= 0;
    if (known) {
        out->steps = (uint64_t)steps;
        out->trusts = strcmp(text_of(metadata, "trusts"), "1") == 0;
        (void)text_copy(out->model, sizeof out->model, text_of(metadata, "model"));
        (void)text_copy(out->preset, sizeof out->preset, text_of(metadata, "preset"));
        read_knobs(text_of(metadata, "knobs"), &out->knobs);
    }
    json_decref(root);
    return known ? HR_OK : HR_FAIL(err, SAVE, "%s is no save of headroom", path);
}
