// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "headroom/save.h"

#include "base/file.h"
#include "base/text.h"
#include "train/save_header.h"

enum { HEADER_BYTES_MAX = 64 << 20 };

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
    json_t *root = NULL;
    *out = (hr_save_about){.steps = 0};
    HR_TRY(save_open(path, HEADER_BYTES_MAX, &fd, &root, err));
    file_close(fd);
    const json_t *metadata = json_object_get(root, "__metadata__");
    const bool known = text_to_int(save_text(metadata, "steps"), &steps) && steps >= 0;
    out->steps = known ? (uint64_t)steps : 0;
    out->trusts = strcmp(save_text(metadata, "trusts"), "1") == 0;
    (void)text_copy(out->model, sizeof out->model, save_text(metadata, "model"));
    (void)text_copy(out->preset, sizeof out->preset, save_text(metadata, "preset"));
    read_knobs(save_text(metadata, "knobs"), &out->knobs);
    json_decref(root);
    return known ? HR_OK : HR_FAIL(err, SAVE, "%s is damaged: it does not say its steps", path);
}
