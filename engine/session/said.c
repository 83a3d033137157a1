// SPDX-License-Identifier: Apache-2.0
#include "session/said.h"

#include <string.h>

#include "base/utf8.h"

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

// As many whole characters as a line has room for, and moves *text behind them.
static size_t take_line(const char **text, const char *end, char line[SAID_LINE_MAX])
{
    size_t length = 0;
    while (*text < end) {
        const size_t bytes = **text == '\0' ? 0 : utf8_bytes(*text, (size_t)(end - *text));
        const char *from = bytes == 0 ? UTF8_REPLACEMENT : *text;
        const size_t put = bytes == 0 ? sizeof UTF8_REPLACEMENT - 1 : bytes;
        if (put > SAID_LINE_MAX - length) {
            break;
        }
        memcpy(line + length, from, put);
        length += put;
        *text += bytes == 0 ? 1 : bytes;
    }
    return length;
}

void said_add(said_log *said, hr_guest_line kind, const char *text, size_t length)
{
    const char *const all_end = text + length;
    char line[SAID_LINE_MAX];
    while (text < all_end) {
        const char *line_break = memchr(text, '\n', (size_t)(all_end - text));
        const char *end = line_break == NULL ? all_end : line_break;
        add_line(said, kind, line, take_line(&text, end, line));
        text += text == end && line_break != NULL;
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
