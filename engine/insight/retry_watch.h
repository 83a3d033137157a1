// SPDX-License-Identifier: Apache-2.0
// A pool that goes back to its device: what it gives back and asks for again before anything else happens was for one request.
#ifndef INSIGHT_RETRY_WATCH_H
#define INSIGHT_RETRY_WATCH_H

#include "headroom/event.h"

// Starts zeroed.
typedef struct retry_watch {
    uint64_t retries, retry_bytes; // so far
    uint64_t shrunk_bytes;         // by the events just before
} retry_watch;

// An hr_event_sink, whose context is the watch.
void retry_watch_event(void *watch, const hr_event *event);

#endif
