// SPDX-License-Identifier: Apache-2.0
// What an engine's loop needs of the world: somebody who takes what it says and brings what it is told. All functions
// are called on the loop's thread and never wait, `wait` apart.
#ifndef SESSION_CALLBACKS_H
#define SESSION_CALLBACKS_H

#include "headroom/session.h"

#include "events/ring.h"

#define OUTLET_FOREVER UINT64_MAX

typedef struct session_callbacks {
    void *context;
    void (*event)(void *context, const hr_event *event);
    void (*report)(void *context, const hr_report *report); // borrowed for the call, as all below
    void (*error)(void *context, const hr_err *err);
    void (*knobs)(void *context, const hr_knobs *knobs); // they have changed
    void (*heap)(void *context, const hr_session_heap *heap);
    bool (*wants_heap)(void *context); // whether it was asked for since the last time
    bool (*take)(void *context, hr_command *command);
    // Until a command is there (true) or it is `until_ns` by the monotonic clock. With OUTLET_FOREVER also until a heap is
    // asked for. NULL: the loop never waits, and what it tells has the time that the engine gave it.
    bool (*wait)(void *context, uint64_t until_ns);
    // Lines of a guest; with `now` (and perhaps none) what was said before goes out as well.
    void (*said)(void *context, hr_guest_line kind, const char *text, size_t length, bool now);
    // Files are being written: the process must not be ended in the middle. NULL: nothing does.
    void (*writing)(void *context, bool begins);
    trace_heartbeat *heartbeat; // the loop's to write
} session_callbacks;

#endif
