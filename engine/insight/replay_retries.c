// SPDX-License-Identifier: Apache-2.0
#include "events/bus.h"
#include "insight/replay_plan.h"

// What goes back to the device and is asked for again before anything else happens was for one request.
typedef struct retry_watch {
    oom_evidence *shown;
    uint64_t shrunk_bytes;
} retry_watch;

static void watch_retries(void *context, const hr_event *event)
{
    retry_watch *w = context;
    if (event->kind == HR_EVENT_SHRINK) {
        w->shrunk_bytes += event->u.memory.allocated_bytes;
        return;
    }
    if (event->kind == HR_EVENT_GROW && w->shrunk_bytes > 0) {
        w->shown->retries++;
        w->shown->retry_bytes += w->shrunk_bytes;
    }
    w->shrunk_bytes = 0;
}

hr_status replay_retries(const hr_replay *replay, const hr_knobs *knobs, oom_evidence *shown, hr_err *err)
{
    replay_stage stage;
    replay_player p;
    trace_bus bus;
    retry_watch watch = {.shown = shown};
    HR_TRY(replay_prepare(replay, knobs, &stage, err));
    trace_bus_init(&bus);
    bus.simulated = true;
    (void)trace_attach(&bus, watch_retries, &watch);
    stage.setup.bus = &bus;
    hr_status status = replay_start(&p, &replay->trace, &stage.setup, err);
    status = status == HR_OK ? replay_play(&p, UINT32_MAX, err) : status;
    replay_close(&p);
    return status;
}
