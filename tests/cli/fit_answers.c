// SPDX-License-Identifier: Apache-2.0
#include "fit_answers.h"

#include <inttypes.h>
#include <stdio.h>

#include "headroom/fit.h"

#include "exactness.h"

static const double shares[FIT_ANSWERS_LIMITS] = {0.9, 0.6, 0.35};

bool fit_answers_limits(const hr_preset *preset, const hr_knobs *knobs, uint64_t limits[FIT_ANSWERS_LIMITS],
                        char *why, size_t size)
{
    hr_planner *planner = NULL;
    hr_knobs free = *knobs;
    hr_whatif plan = {0};
    hr_err err = {0};
    hr_status status = hr_knobs_set(&free, HR_KNOB_DEVICE_VRAM, "1TiB", &err);
    status = status == HR_OK ? hr_planner_open(preset, &planner, &err) : status;
    status = status == HR_OK ? hr_planner_plan(planner, &free, &plan, &err) : status;
    for (int k = 0; k < FIT_ANSWERS_LIMITS; k++) {
        limits[k] = (uint64_t)(shares[k] * (double)plan.peak_in_use_bytes);
    }
    hr_planner_close(planner);
    (void)snprintf(why, size, "%s", err.sentence);
    return status == HR_OK;
}

static bool is_answer(const hr_fit_way *w)
{
    return w->point.plan.fits && (w->on_frontier || w->on_same_frontier);
}

static bool runs_to_the_byte(const hr_preset *preset, const hr_knobs *knobs, const hr_fit_way *w, char *why,
                             size_t size)
{
    hr_knobs turned;
    hr_err err = {0};
    uint64_t peak_bytes = 0;
    const uint64_t planned_bytes = w->point.plan.peak_in_use_bytes;
    if (hr_fit_knobs(knobs, &w->point, &turned, &err) != HR_OK) {
        (void)snprintf(why, size, "%s", err.sentence);
        return false;
    }
    if (exactness_of(preset, &turned, &peak_bytes, why, size) != EXACTNESS_HOLDS) {
        return false;
    }
    if (peak_bytes != planned_bytes) {
        (void)snprintf(why, size, "planned %" PRIu64 ", counted %" PRIu64, planned_bytes, peak_bytes);
    }
    return peak_bytes == planned_bytes;
}

static void run_one(const hr_preset *preset, const hr_knobs *knobs, const hr_fit_way *w, fit_answers *out)
{
    char why[sizeof out->why] = "";
    const bool exact = runs_to_the_byte(preset, knobs, w, why, sizeof why);
    out->ran++;
    out->exact += exact;
    if (!exact && out->why[0] == '\0') {
        (void)snprintf(out->knobs, sizeof out->knobs, "%s", w->point.knobs);
        (void)snprintf(out->why, sizeof out->why, "%s", why[0] == '\0' ? "not exact" : why);
    }
}

static void run_ways(const hr_preset *preset, const hr_knobs *knobs, const hr_fit_found *found, unsigned most,
                     fit_answers *out)
{
    for (uint32_t k = 0; k < found->count; k++) {
        out->fitting += found->ways[k].point.plan.fits;
        out->frontier += is_answer(&found->ways[k]);
    }
    const unsigned rest = out->fitting - out->frontier;
    const unsigned others = most < out->frontier ? 0 : most - out->frontier;
    unsigned at = 0;
    for (uint32_t k = 0; k < found->count; k++) {
        const hr_fit_way *w = &found->ways[k];
        const bool is_other = w->point.plan.fits && !is_answer(w);
        const bool is_drawn = is_other && others > 0 && at * others / rest != (at + 1) * others / rest;
        at += is_other;
        if (is_answer(w) || is_drawn || (is_other && rest <= others)) {
            run_one(preset, knobs, w, out);
        }
    }
}

bool fit_answers_hold(const hr_preset *preset, const hr_knobs *knobs, uint64_t limit_bytes, unsigned most,
                      fit_answers *out)
{
    static hr_fit_found found;
    const hr_fit_wish wish = {.permission = HR_PERMIT_OPTIMIZER};
    hr_planner *planner = NULL;
    hr_knobs limited = *knobs;
    hr_err err = {0};
    char limit[32];
    *out = (fit_answers){.limit_bytes = limit_bytes};
    (void)snprintf(limit, sizeof limit, "%" PRIu64, limit_bytes);
    hr_status status = hr_knobs_set(&limited, HR_KNOB_DEVICE_VRAM, limit, &err);
    status = status == HR_OK ? hr_planner_open(preset, &planner, &err) : status;
    status = status == HR_OK ? hr_planner_fit(planner, &limited, &wish, NULL, NULL, &found, &err) : status;
    hr_planner_close(planner);
    if (status != HR_OK) {
        (void)snprintf(out->why, sizeof out->why, "%s", err.sentence);
        return false;
    }
    out->ways = found.count;
    run_ways(preset, &limited, &found, most, out);
    return out->exact == out->ran;
}
