// SPDX-License-Identifier: Apache-2.0
// Traces as streams of events, for sessions that play them.
#ifndef SESSION_PLAYED_H
#define SESSION_PLAYED_H

#include "headroom/event.h"

#include "base/input.h"
#include "base/vec.h"

enum { PLAYED_EVENTS_MAX = 1 << 23 }; // 800 MB

typedef VEC(hr_event) played_events;

// Appends a zeroed event; NULL with READ (too many) or NOMEM in *err.
hr_event *played_push(played_events *events, const input *in, hr_status *status, hr_err *err);

// played_csv.c: our own CSV (formats/csv.h). What rows do not say, counters in use and of the pool, is added up.
bool played_is_csv(const char *start, size_t bytes);
HR_MUST_CHECK hr_status played_read_csv(input *in, played_events *events, hr_err *err);

#endif
