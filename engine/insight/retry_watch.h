// SPDX-License-Identifier: Apache-2.0
// A pool that goes back to its device: what it gives back and asks for again before anything else happens was for one request.
#ifndef INSIGHT_RETRY_WATCH_H
#define INSIGHT_RETRY_WATCH_H

#include <stdbool.h>

#include "headroom/event.h"

// Starts zeroed.
typedef struct retry_watch {
    uint64_t retries, retry_bytes, retry_ns; // so far
    uint64_t shrunk_bytes, since_ns;         // by the events just before, and when the first of them was
} retry_watch;

// The next event of the pool.
void retry_watch_shrink(retry_watch *w, uint64_t bytes, uint64_t time_ns);
void retry_watch_other(retry_watch *w, bool grows, uint64_t time_ns);

// An hr_event_sink, whose context is the watch.
void retry_watch_event(void *watch, const hr_event *event);

#endif
