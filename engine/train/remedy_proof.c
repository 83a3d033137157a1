// SPDX-License-Identifier: Apache-2.0
#include "train/remedy_proof.h"

#include <stdio.h>
#include <string.h>

#include "device/cost.h"
#include "train/wire.h"

// Instructions that are compiled in search of what fits: half a second of it. What changes least is tried first.
enum { REMEDY_INSTRS = 1 << 19 };

remedy_proof remedy_proof_of(const hr_engine *e, const build *refused)
{
    return (remedy_proof){.e = e,
                          .refused = refused,
                          .instrs_left = REMEDY_INSTRS,
                          .ways_left = REMEDY_INSTRS,
                          .most_limit_bytes = UINT64_MAX};
}

static bool is_sized(const hr_knobs *knobs)
{
    return hr_knob_is_set(knobs, HR_KNOB_DEVICE_VRAM) || hr_knob_is_set(knobs, HR_KNOB_DEVICE_CARD);
}

bool remedy_apply(const hr_engine *e, const char *const pairs[REMEDY_PAIRS], hr_knobs *knobs,
                  hr_report_fix *fix)
{
    const size_t size = sizeof fix->knobs;
    size_t length = 0;
    *knobs = e->knobs;
    *fix = (hr_report_fix){.host_bytes = HR_NONE};
    for (size_t k = 0; k < REMEDY_PAIRS && pairs[k] != NULL; k++) {
        const hr_knobs before = *knobs;
        if (hr_knobs_set_pair(knobs, pairs[k], NULL) != HR_OK) {
            return false;
        }
        if (memcmp(&before, knobs, sizeof before) != 0 && length < size) {
            length +=
                (size_t)snprintf(fix->knobs + length, size - length, "%s%s", length > 0 ? " " : "", pairs[k]);
        }
    }
    // To take the one size away that there is would be no remedy.
    return length > 0 && length < size && is_sized(knobs) == is_sized(&e->knobs) &&
           hr_knobs_validate(knobs, NULL) == HR_OK;
}

// A device that computes may refuse what its card has room for: the host behind it has less.
static bool is_admitted(const hr_engine *e, const build *planned, const play_result *played)
{
    const bool same = e->build != NULL && e->build->device == planned->device;
    const build *b = same ? e->build : planned; // the one that runs knows what it has of the card
    bool computes = !e->plan_only && !b->device->simulated;
    return !computes || b->device->admit == NULL ||
           b->device->admit(b->context, played->peak.in_use_bytes, played->stats.peak_pool_bytes, NULL) ==
               HR_OK;
}

static void charge(remedy_proof *p, const build *b)
{
    for (int k = 0; k < BUILD_PROGRAMS; k++) {
        p->instrs_left -= b->programs[k] == NULL ? 0 : (int64_t)b->programs[k]->instr_count;
        p->ways_left -= b->programs[k] == NULL ? 0 : (int64_t)b->programs[k]->tried_instrs;
    }
}

// A data set that cannot be read is no matter of memory.
static bool host_holds(const hr_engine *e, const build *b, const hr_knobs *knobs, uint64_t *host_bytes)
{
    host_outlook outlook;
    *host_bytes = HR_NONE;
    if (!hr_knob_is_set(knobs, HR_KNOB_PIPELINE_RAM_LIMIT)) {
        return true;
    }
    wire_foresee(b, e->model, knobs, &outlook);
    *host_bytes = outlook.bytes;
    return host_outlook_beyond(&outlook, knobs) == 0;
}

static bool plays(const remedy_proof *p, const build *b, const hr_knobs *knobs, hr_report_fix *fix)
{
    play_result played = {0};
    bool fits =
        host_holds(p->e, b, knobs, &fix->host_bytes) && build_play_full(b, knobs, &played, NULL) == HR_OK &&
        played.fits &&
        cost_step_seconds(b->device, b->context, b->programs[BUILD_TRAIN], &fix->seconds, NULL) == HR_OK;
    const uint64_t limit_bytes = played.stats.limit_bytes;
    fix->basis = cost_basis(b->device, b->context);
    fix->peak_bytes = played.peak.in_use_bytes;
    fix->limit_bytes = hr_limit_is_none(limit_bytes) ? HR_NONE : limit_bytes;
    return fits && limit_bytes <= p->most_limit_bytes && is_admitted(p->e, b, &played);
}

bool remedy_fits(remedy_proof *p, const hr_knobs *knobs, hr_report_fix *fix)
{
    uint64_t judged_instrs = 0;
    const build_request request = {
        .model = p->e->model, .knobs = knobs, .plan_only = true, .judged_instrs = &judged_instrs};
    build *b = NULL;
    if (build_compiles_alike(knobs, &p->e->knobs)) {
        return plays(p, p->refused, knobs, fix);
    }
    if (p->instrs_left <= 0) {
        return false;
    }
    if (build_prepare(&request, &b, NULL) != HR_OK) {
        p->ways_left -= (int64_t)judged_instrs; // a budget that none of them keeps
        return false;
    }
    bool fits = plays(p, b, knobs, fix);
    charge(p, b);
    build_destroy(b);
    return fits;
}

bool remedy_fits_host(const remedy_proof *p, const hr_knobs *knobs)
{
    uint64_t host_bytes;
    return host_holds(p->e, p->refused, knobs, &host_bytes);
}
