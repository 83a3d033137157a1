// SPDX-License-Identifier: Apache-2.0
#include <math.h>

#include "insight/play_limit.h"
#include "insight/replay_plan.h"

// ---- the smallest limit ---------------------------------------------------------------------------------------

typedef struct limit_play {
    const hr_replay *replay;
    replay_stage stage;
} limit_play;

static uint64_t max_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

// Every device has that limit.
static hr_status play_under(void *context, uint64_t limit_bytes, limit_outcome *out, hr_err *err)
{
    limit_play *l = context;
    const trace *t = &l->replay->trace;
    replay_player p;
    for (uint32_t k = 0; k < t->device_count; k++) {
        l->stage.setup.limit_bytes[k] = limit_bytes;
    }
    hr_status status = replay_start(&p, t, &l->stage.setup, err);
    if (status == HR_OK) {
        status = replay_play(&p, UINT32_MAX, err);
    }
    out->fits = status == HR_OK && p.failure_count == 0;
    for (uint32_t k = 0; status == HR_OK && k < t->device_count; k++) {
        const replay_device *d = &p.devices[k];
        out->in_use_bytes = max_of(out->in_use_bytes, d->peak.in_use_bytes);
        out->pool_bytes = max_of(out->pool_bytes, d->heap == NULL ? 0 : d->heap->counters.peak_pool_bytes);
    }
    replay_close(&p);
    return status;
}

hr_status replay_smallest_limit(hr_replay *replay, const hr_knobs *knobs, uint64_t failed_bytes,
                                uint64_t *fits_bytes, hr_err *err)
{
    limit_play l = {.replay = replay};
    const limit_case c = {.play = play_under,
                          .context = &l,
                          .failed_bytes = failed_bytes,
                          .asked_bytes = replay->about.peak_requested_bytes};
    HR_TRY(replay_prepare(replay, knobs, &l.stage, err));
    l.stage.setup.ends_at_failure = true;
    return limit_smallest(&c, fits_bytes, err);
}

// ---- the answer -----------------------------------------------------------------------------------------------

hr_status replay_whatif(hr_replay *replay, const hr_knobs *knobs, hr_whatif *out, hr_err *err)
{
    hr_replay_result result;
    uint64_t fits_bytes = 0;
    HR_TRY(hr_replay_run(replay, knobs, NULL, &result, err));
    const hr_replay_memory m = result.memory;
    const bool fits = result.failures_total == 0;
    hr_replay_result_deinit(&result);
    *out = (hr_whatif){.fits = fits,
                       .limit_bytes = m.limit_bytes == HR_NONE ? 0 : m.limit_bytes,
                       .peak_in_use_bytes = m.peak_in_use_bytes,
                       .step_seconds = (double)NAN,
                       .step_seconds_low = (double)NAN,
                       .step_seconds_high = (double)NAN,
                       .host_bytes = HR_NONE,
                       .input_seconds = (double)NAN,
                       .stall = (double)NAN};
    if (out->fits) {
        return HR_OK;
    }
    HR_TRY(replay_smallest_limit(replay, knobs, out->limit_bytes, &fits_bytes, err));
    const uint64_t needs_bytes = fits_bytes > 0 ? fits_bytes : replay->about.peak_requested_bytes;
    out->missing_bytes = needs_bytes > out->limit_bytes ? needs_bytes - out->limit_bytes : 1;
    out->peak_in_use_bytes = out->limit_bytes + out->missing_bytes;
    return HR_OK;
}
