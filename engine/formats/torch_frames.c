// SPDX-License-Identifier: Apache-2.0
// Frames and streams of a snapshot: many values, few different ones.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/text.h"
#include "formats/row_file.h"
#include "formats/torch_parts.h"

enum { NAME_MAX_BYTES = 160 };

// Frames of C++ come first in a stack, then PyTorch's Python, then the line that a person wrote.
static uint8_t rank_of(const char *file)
{
    if (file == NULL) {
        return 2;
    }
    if (file[0] ==
        '<') { // "<ipython-input-3-…>" is a notebook's cell; "<eval_with_key>", "<frozen …>" are not
        return strncmp(file, "<ipython", 8) == 0 ? 0 : 1;
    }
    if (!text_ends_in(file, ".py")) {
        return 2;
    }
    return strstr(file, "/torch/") != NULL || strncmp(file, "torch/", 6) == 0 ? 1 : 0;
}

bool torch_frame_add(torch_parts *parts, uint32_t name, uint32_t file, int64_t line, uint32_t *frame)
{
    char key[64];
    int length = snprintf(key, sizeof key, "%" PRIx32 " %" PRIx32 " %" PRIx64, name, file, (uint64_t)line);
    bool full = parts->frames.count >= TORCH_FRAMES_MAX;
    *frame = full ? intern_find(&parts->frame_keys, key, (size_t)length)
                  : intern_add(&parts->frame_keys, key, (size_t)length);
    if (*frame == INTERN_NONE) {
        return full;
    }
    if (*frame < parts->frames.count) {
        return true;
    }
    torch_frame *added = vec_push(&parts->frames);
    if (added == NULL) {
        return false;
    }
    *added = (torch_frame){.name = name,
                           .file = file,
                           .line = line > 0 && line < INT32_MAX ? (uint32_t)line : 0,
                           .in_trace = INTERN_NONE,
                           .rank = rank_of(intern_text(&parts->texts, file))};
    return true;
}

// A terminal may come to see it, and a JSON file: neither may find a control character or half a letter.
uint32_t torch_text_name(torch_parts *parts, const char *words)
{
    char start[NAME_MAX_BYTES];
    text name = {0};
    (void)text_copy(start, sizeof start, words);
    row_append_utf8(&name, start);
    for (size_t k = 0; !name.failed && k < name.length; k++) {
        unsigned char *c = (unsigned char *)&name.data[k];
        if (*c < ' ' || *c == 0x7f) {
            *c = '?';
        } else if (*c == 0xc2 && c[1] < 0xa0) { // U+0080 to U+009F
            c[0] = c[1] = '?';
        }
    }
    const char *said = name.length == 0 ? "" : name.data;
    uint32_t number = name.failed ? INTERN_NONE : intern_add(&parts->t->names, said, name.length);
    text_deinit(&name);
    return number;
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *other = strrchr(path, '\\');
    const char *last = slash == NULL || (other != NULL && other > slash) ? other : slash;
    return last == NULL ? path : last + 1;
}

uint32_t torch_frame_name(torch_parts *parts, uint32_t frame)
{
    torch_frame *f = &parts->frames.data[frame];
    if (f->in_trace != INTERN_NONE) {
        return f->in_trace;
    }
    const char *name = intern_text(&parts->texts, f->name), *file = intern_text(&parts->texts, f->file);
    char words[2 * NAME_MAX_BYTES];
    if (f->rank == 2 || file == NULL) { // of C++ the function says it all
        snprintf(words, sizeof words, "%s", name == NULL ? "?" : name);
    } else {
        snprintf(words, sizeof words, "%.*s:%" PRIu32 " %s", NAME_MAX_BYTES / 2, base_of(file), f->line,
                 name == NULL ? "?" : name);
    }
    f->in_trace = torch_text_name(parts, words);
    return f->in_trace;
}

hr_status torch_stream_number(torch_parts *parts, int64_t stream, uint16_t *number, hr_err *err)
{
    uint64_t slot = hash64_mix((uint64_t)stream, 0) % TORCH_RECENT;
    if (!parts->recent_streams[slot].known || parts->recent_streams[slot].stream != stream) {
        char words[32];
        int length = snprintf(words, sizeof words, "%" PRId64, stream);
        uint32_t found = intern_add(&parts->streams, words, (size_t)length);
        if (found == INTERN_NONE) {
            return HR_FAIL(err, NOMEM, "snapshot: needed host memory for a stream, had none");
        }
        if (found > UINT16_MAX) {
            return HR_FAIL(err, READ, "snapshot: needed at most %d streams, has more", UINT16_MAX + 1);
        }
        parts->recent_streams[slot].stream = stream;
        parts->recent_streams[slot].number = (uint16_t)found;
        parts->recent_streams[slot].known = true;
    }
    *number = parts->recent_streams[slot].number;
    return HR_OK;
}
