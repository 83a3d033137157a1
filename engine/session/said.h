// SPDX-License-Identifier: Apache-2.0
// What a guest has said: lines, each behind the letter of its kind (headroom/guest.h), the newest SAID_BYTES of them. Whoever
// reads keeps how far it has read of all that was ever said.
#ifndef SESSION_SAID_H
#define SESSION_SAID_H

#include <stdint.h>

#include "headroom/guest.h"

enum { SAID_BYTES = 64 << 10, SAID_LINE_MAX = 1024 };

typedef struct said_log {
    uint64_t total; // bytes ever said
    size_t held;    // the last of them are here
    char text[SAID_BYTES];
} said_log;

// Adds the lines of `text`, what has no line break at its end included; a line beyond SAID_LINE_MAX goes on in the next, at a whole
// character. Bytes that are no UTF-8, and NUL, are kept as U+FFFD: what is held is UTF-8.
void said_add(said_log *said, hr_guest_line kind, const char *text, size_t length);
// Whole lines from *cursor on into `out`, with a NUL behind them, as many as there is room for; what is no longer held is passed over. Moves the
// cursor behind them. Returns their bytes.
size_t said_read(const said_log *said, uint64_t *cursor, char *out, size_t size);

#endif
