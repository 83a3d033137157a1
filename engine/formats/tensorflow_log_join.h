// SPDX-License-Identifier: Apache-2.0
// Lines that a terminal broke at its width, as they come when a person copies them from it: put together again.
#ifndef FORMATS_TENSORFLOW_LOG_JOIN_H
#define FORMATS_TENSORFLOW_LOG_JOIN_H

#include "formats/tensorflow_log_lines.h"

// Starts zeroed. `joined.failed` says that host memory was short.
typedef struct log_joiner {
    size_t width; // of the terminal, set by whoever finds it out; 0: lines are whole
    text joined;  // the pieces so far
    bool given;   // they have been given away
} log_joiner;

void log_joiner_deinit(log_joiner *j);
// Whether the line cannot go on with what has been joined, because it begins like it: that line was whole, and just as
// long as the terminal is wide.
bool log_begins_anew(const log_joiner *j, log_span line);
// Takes one line. True when there is a whole one, in *line until the next call.
bool log_join(log_joiner *j, log_span *line);
// What has been joined so far, or nothing: as if it were whole. Until the next call.
log_span log_joined(log_joiner *j);

#endif
