// SPDX-License-Identifier: Apache-2.0
// Why a trace ran out: what was recorded of it, else what a replay says.
#include <stdio.h>
#include <string.h>

#include "headroom/card.h"
#include "headroom/units.h"

#include "base/text.h"
#include "insight/diagnose.h"
#include "insight/replay_plan.h"

// ---- what was recorded --------------------------------------------------------------------------------------------

// Of the device's events, without the request that was refused, which a heap alone has behind its blocks.
static uint32_t end_of_record(const trace *t, uint32_t device, bool is_heap)
{
    uint32_t end = t->events.count;
    if (is_heap) {
        return 0;
    }
    while (end > 0 &&
           !(t->events.data[end - 1].kind == TRACE_REFUSED && t->events.data[end - 1].device == device)) {
        end--;
    }
    return end == 0 ? t->events.count : end - 1;
}

static hr_status explain_recorded(const hr_replay *replay, const heap_snapshot *p, hr_report_oom *oom,
                                  hr_err *err)
{
    oom_evidence shown;
    const uint32_t device = replay->about.device;
    const uint32_t end = end_of_record(&replay->trace, device, replay->about.is_heap);
    HR_TRY(evidence_of(&replay->trace, device, end, p, &shown, err));
    diagnose_record(p, &shown, oom);
    return HR_OK;
}

hr_status hr_replay_knobs_at_refusal(const hr_replay *replay, const hr_knobs *set, hr_knobs *knobs,
                                     hr_err *err)
{
    char pair[64], size[HR_BYTES_TEXT_MAX];
    const heap_snapshot *p = replay->recorded == NULL ? NULL : &replay->recorded->snapshot;
    *knobs = *set;
    if (p == NULL || !p->refusal.any || !p->refusal.told || hr_knob_is_set(set, HR_KNOB_DEVICE_VRAM)) {
        return HR_OK;
    }
    const uint64_t bytes = p->counters.pool_bytes + p->refusal.device_free_bytes;
    (void)snprintf(pair, sizeof pair, "device.vram=%s", hr_bytes_exact(bytes, size));
    return hr_knobs_set_pair(knobs, pair, err);
}

static hr_status card_of(const hr_knobs *knobs, heap_snapshot *p, hr_err *err)
{
    hr_card card;
    if (!hr_knob_is_set(knobs, HR_KNOB_DEVICE_CARD)) {
        return HR_OK;
    }
    HR_TRY(hr_card_load(hr_knob_text(knobs, HR_KNOB_DEVICE_CARD), &card, err));
    p->refusal.device_bytes = hr_limit_is_none(card.vram_bytes) ? 0 : card.vram_bytes;
    return HR_OK;
}

// Of a trace that fits: time that was lost, else what will not go on so.
static hr_status explain_fitting(hr_replay *replay, const hr_knobs *knobs, hr_report *out, hr_err *err)
{
    hr_report_oom *oom = &out->oom;
    oom_evidence shown;
    const heap_snapshot none = {0};
    const trace *t = &replay->trace;
    HR_TRY(evidence_of(t, replay->about.device, t->events.count, &none, &shown, err));
    if (shown.retries == 0) {
        HR_TRY(replay_retries(replay, knobs, &shown, err));
    }
    *oom = diagnose_nothing(&out->memory);
    if (diagnose_retries(&shown, oom)) {
        diagnose_lines(&shown, &(heap_room){.any = false}, oom);
        return replay_find_fixes(replay, knobs, HR_NONE, oom, err);
    }
    if (diagnose_near_full(&shown, &out->memory, oom)) {
        diagnose_lines(&shown, &(heap_room){.any = false}, oom);
    }
    return HR_OK;
}

hr_status hr_replay_explain(hr_replay *replay, const hr_knobs *set, const char *name, hr_report *out,
                            hr_err *err)
{
    hr_knobs knobs;
    hr_report_oom recorded = {.cause = HR_OOM_NONE};
    HR_TRY(hr_replay_knobs_at_refusal(replay, set, &knobs, err));
    if (replay->recorded != NULL && replay->recorded->snapshot.refusal.any) {
        heap_snapshot seen = replay->recorded->snapshot; // borrows what it points at
        HR_TRY(card_of(set, &seen, err));
        HR_TRY(explain_recorded(replay, &seen, &recorded, err));
    }
    const bool is_recorded = recorded.cause != HR_OOM_NONE;
    HR_TRY(replay_report_with(replay, &knobs, name, is_recorded ? &recorded : NULL, out, err));
    const hr_status status =
        out->oom.cause == HR_OOM_NONE ? explain_fitting(replay, &knobs, out, err) : HR_OK;
    if (status != HR_OK) {
        hr_report_deinit(out);
    }
    return status;
}
