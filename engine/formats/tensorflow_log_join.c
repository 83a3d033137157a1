// SPDX-License-Identifier: Apache-2.0
#include "formats/tensorflow_log_join.h"

#include <string.h>

enum { BEGINNING = 8, JOINED_MAX = 64 << 10 };

void log_joiner_deinit(log_joiner *j)
{
    text_deinit(&j->joined);
    *j = (log_joiner){0};
}

static void begin(log_joiner *j)
{
    if (j->given) {
        j->joined.length = 0;
        j->given = false;
    }
}

bool log_begins_anew(const log_joiner *j, log_span line)
{
    return !j->given && j->joined.length >= BEGINNING && line.length >= BEGINNING &&
           memcmp(j->joined.data, line.text, BEGINNING) == 0;
}

bool log_join(log_joiner *j, log_span *line)
{
    begin(j);
    j->width +=
        j->width > 0 && line->length == j->width + 1;     // the line that told the width had lost its blank
    const bool blank_lost = line->length + 1 == j->width; // at the end of a line it is not copied
    const bool is_broken =
        j->width > 0 && (blank_lost || line->length == j->width) && j->joined.length < JOINED_MAX;
    if (!is_broken && j->joined.length == 0) {
        return true;
    }
    text_append_bytes(&j->joined, line->text, line->length);
    text_append_bytes(&j->joined, " ", is_broken && blank_lost);
    if (!is_broken) {
        *line = log_joined(j);
    }
    return !is_broken;
}

log_span log_joined(log_joiner *j)
{
    begin(j);
    j->given = true;
    return (log_span){j->joined.data, j->joined.length};
}
