// SPDX-License-Identifier: Apache-2.0
// hr_engine_explain: a report that also says what cost time where nothing was refused, with what loses none.
#include <math.h>

#include "device/cost.h"
#include "events/bus.h"
#include "insight/diagnose_evidence.h"
#include "insight/replay_plan.h"
#include "train/remedy_proof.h"

// With these a step fits, and never goes back to the device.
static bool loses_no_time(const hr_engine *e, const hr_knobs *knobs, hr_report_fix *fix)
{
    play_result played;
    trace_bus bus;
    retry_watch watch = {.retries = 0};
    const build *b = e->build;
    trace_bus_init(&bus);
    bus.simulated = true;
    (void)trace_attach(&bus, retry_watch_event, &watch);
    if (!build_compiles_alike(knobs, &e->knobs) ||
        build_play_watched(b, knobs, &bus, &played, NULL) != HR_OK || !played.fits || watch.retries > 0) {
        return false;
    }
    const uint64_t limit_bytes = played.stats.limit_bytes;
    fix->basis = cost_basis(b->device, b->context);
    fix->peak_bytes = played.peak.in_use_bytes;
    fix->limit_bytes = hr_limit_is_none(limit_bytes) ? HR_NONE : limit_bytes;
    return cost_step_seconds(b->device, b->context, b->programs[BUILD_TRAIN], &fix->seconds, NULL) == HR_OK;
}

static void find_settings(const hr_engine *e, hr_report_oom *oom)
{
    for (int k = 0; k < ALLOCATOR_SETTINGS && oom->fix_count < HR_FIXES_MAX; k++) {
        const char *const pairs[REMEDY_PAIRS] = {allocator_settings[k].pair};
        hr_report_fix fix;
        hr_knobs knobs;
        if (remedy_apply(e, pairs, &knobs, &fix) && loses_no_time(e, &knobs, &fix)) {
            oom->fixes[oom->fix_count++] = fix;
        }
    }
    engine_rank_fixes(e, e->build, oom);
}

hr_status hr_engine_explain(hr_engine *e, hr_report *report, hr_err *err)
{
    const oom_evidence shown = {.retries = e->retries.retries, .retry_bytes = e->retries.retry_bytes};
    HR_TRY(hr_engine_report(e, report, err));
    if (report->oom.cause != HR_OOM_NONE || e->build == NULL) {
        return HR_OK;
    }
    hr_report_oom oom = diagnose_nothing(&report->memory);
    if (diagnose_retries(&shown, &oom)) {
        diagnose_lines(&shown, &(heap_room){.any = false}, &oom);
        find_settings(e, &oom);
        report->oom = oom;
    }
    return HR_OK;
}
