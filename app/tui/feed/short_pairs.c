// SPDX-License-Identifier: Apache-2.0
#include "app/tui/feed/short_pairs.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "headroom/knobs.h"

static bool takes(const hr_knob_row *row, const char *value, size_t length)
{
    bool found = row->type != HR_KNOB_CHOICE;
    for (size_t k = 0; !found && row->choices[k] != NULL; k++) {
        found = strlen(row->choices[k]) == length && strncmp(row->choices[k], value, length) == 0;
    }
    return found;
}

// The pair from what stands behind its key's dot, where no other key ends so and takes its value: "size=128" of batch.size=128.
static const char *shortest(const char *pair, size_t key_length, size_t length)
{
    const char *dot = memchr(pair, '.', key_length), *value = pair + key_length + 1;
    size_t count, same = 0;
    const hr_knob_row *rows = hr_knob_rows(&count);
    for (size_t i = 0; dot != NULL && i < count; i++) {
        const char *other = strchr(rows[i].key, '.');
        const size_t word = (size_t)(pair + key_length - dot);
        same += other != NULL && strlen(other) == word && strncmp(other, dot, word) == 0 &&
                takes(&rows[i], value, length - key_length - 1);
    }
    return same == 1 ? dot + 1 : pair;
}

const char *short_pairs(const char *pairs, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    while (*pairs != '\0' && used < size) {
        const size_t length = strcspn(pairs, " "), key = strcspn(pairs, "=");
        const char *word = key < length ? shortest(pairs, key, length) : pairs;
        const int put = snprintf(text + used, size - used, "%s%.*s", used > 0 ? " " : "",
                                 (int)(pairs + length - word), word);
        used += put > 0 ? (size_t)put : 0;
        pairs += length + (pairs[length] == ' ');
    }
    return text;
}
