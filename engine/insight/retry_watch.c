// SPDX-License-Identifier: Apache-2.0
#include "insight/retry_watch.h"

void retry_watch_shrink(retry_watch *w, uint64_t bytes, uint64_t time_ns)
{
    w->since_ns = w->shrunk_bytes == 0 ? time_ns : w->since_ns;
    w->shrunk_bytes += bytes;
}

void retry_watch_other(retry_watch *w, bool grows, uint64_t time_ns)
{
    if (grows && w->shrunk_bytes > 0) {
        w->retries++;
        w->retry_bytes += w->shrunk_bytes;
        w->retry_ns += time_ns - w->since_ns;
    }
    w->shrunk_bytes = 0;
}

void retry_watch_event(void *watch, const hr_event *event)
{
    if (event->kind == HR_EVENT_SHRINK) {
        retry_watch_shrink(watch, event->u.memory.allocated_bytes, event->time_ns);
    } else {
        retry_watch_other(watch, event->kind == HR_EVENT_GROW, event->time_ns);
    }
}
