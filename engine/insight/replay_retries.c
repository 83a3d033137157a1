// SPDX-License-Identifier: Apache-2.0
#include "events/bus.h"
#include "insight/replay_plan.h"
#include "insight/retry_watch.h"

hr_status replay_retries(const hr_replay *replay, const hr_knobs *knobs, oom_evidence *shown, hr_err *err)
{
    replay_stage stage;
    replay_player p;
    trace_bus bus;
    retry_watch watch = {.retries = 0};
    HR_TRY(replay_prepare(replay, knobs, &stage, err));
    trace_bus_init(&bus);
    bus.simulated = true;
    (void)trace_attach(&bus, retry_watch_event, &watch);
    stage.setup.bus = &bus;
    hr_status status = replay_start(&p, &replay->trace, &stage.setup, err);
    status = status == HR_OK ? replay_play(&p, UINT32_MAX, err) : status;
    replay_close(&p);
    shown->retries += watch.retries;
    shown->retry_bytes += watch.retry_bytes;
    return status;
}
