// SPDX-License-Identifier: Apache-2.0
#include "session/said.h"

#include <string.h>

// Whole lines go for it.
static void make_room(said_log *said, size_t bytes)
{
    if (said->held + bytes <= SAID_BYTES) {
        return;
    }
    const size_t least = said->held + bytes - SAID_BYTES;
    const char *end = memchr(said->text + least - 1, '\n', said->held - (least - 1));
    const size_t gone = end == NULL ? said->held : (size_t)(end - said->text) + 1;
    memmove(said->text, said->text + gone, said->held - gone);
    said->held -= gone;
}

static void add_line(said_log *said, hr_guest_line kind, const char *text, size_t length)
{
    make_room(said, length + 2);
    char *at = said->text + said->held;
    at[0] = (char)kind;
    memcpy(at + 1, text, length);
    at[length + 1] = '\n';
    said->held += length + 2;
    said->total += length + 2;
}

void said_add(said_log *said, hr_guest_line kind, const char *text, size_t length)
{
    while (length > 0) {
        const char *end = memchr(text, '\n', length);
        const size_t line = end == NULL ? length : (size_t)(end - text);
        const size_t taken = line < SAID_LINE_MAX ? line : SAID_LINE_MAX;
        add_line(said, kind, text, taken);
        const size_t passed = taken + (taken == line && end != NULL);
        text += passed;
        length -= passed;
    }
}

size_t said_read(const said_log *said, uint64_t *cursor, char *out, size_t size)
{
    const uint64_t first = said->total - said->held;
    const uint64_t from = *cursor < first || *cursor > said->total ? first : *cursor;
    const char *text = said->text + (size_t)(from - first);
    const size_t left = (size_t)(said->total - from);
    size_t bytes = left < size - 1 ? left : size - 1;
    while (bytes > 0 && text[bytes - 1] != '\n') {
        bytes--;
    }
    memcpy(out, text, bytes);
    out[bytes] = '\0';
    *cursor = from + bytes;
    return bytes;
}
