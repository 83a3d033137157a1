// SPDX-License-Identifier: Apache-2.0
#include "app/tui/feed/short_pairs.h"

#include <stdio.h>
#include <string.h>

#include "headroom/knobs.h"

// What stands behind the dot of a key, where no other key ends so: "size" of batch.size.
static const char *last_word(const char *key, size_t length)
{
    const char *dot = memchr(key, '.', length);
    size_t count, same = 0;
    const hr_knob_row *rows = hr_knob_rows(&count);
    for (size_t i = 0; dot != NULL && i < count; i++) {
        const char *other = strchr(rows[i].key, '.');
        const size_t word = (size_t)(key + length - dot);
        same += other != NULL && strlen(other) == word && strncmp(other, dot, word) == 0;
    }
    return same == 1 ? dot + 1 : key;
}

const char *short_pairs(const char *pairs, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    while (*pairs != '\0' && used < size) {
        const size_t length = strcspn(pairs, " "), key = strcspn(pairs, "=");
        const char *word = key < length ? last_word(pairs, key) : pairs;
        const int put = snprintf(text + used, size - used, "%s%.*s", used > 0 ? " " : "",
                                 (int)(pairs + length - word), word);
        used += put > 0 ? (size_t)put : 0;
        pairs += length + (pairs[length] == ' ');
    }
    return text;
}
