// SPDX-License-Identifier: Apache-2.0
#include "insight/retry_watch.h"

void retry_watch_event(void *watch, const hr_event *event)
{
    retry_watch *w = watch;
    if (event->kind == HR_EVENT_SHRINK) {
        w->shrunk_bytes += event->u.memory.allocated_bytes;
        return;
    }
    if (event->kind == HR_EVENT_GROW && w->shrunk_bytes > 0) {
        w->retries++;
        w->retry_bytes += w->shrunk_bytes;
    }
    w->shrunk_bytes = 0;
}
