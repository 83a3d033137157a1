// SPDX-License-Identifier: Apache-2.0
// The largest value that fits, by few plans: bytes grow nearly in proportion, so that two plans say about where the limit is met.
#include <inttypes.h>
#include <stdio.h>

#include "headroom/engine.h"

// What was planned: the largest that fits, and the smallest above it that does not. Value 0: none yet.
typedef struct probe {
    uint64_t value;
    hr_whatif plan;
    bool is_last; // the model has no such size
    bool
        refused; // by the model, which has no such size, or by a budget that cannot be kept: there is no plan
} probe;

typedef struct largest_search {
    const hr_planner *planner;
    hr_knobs knobs;
    const hr_knob_row *row;
    probe fits, fails;
    uint32_t plans;
} largest_search;

enum { GROWTH_MOST = 8, GUESSES = 6 }; // of values from one plan to the next; before the gap is halved

static hr_status plan_value(largest_search *s, uint64_t value, hr_err *err)
{
    char text[24];
    probe p = {.value = value};
    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    HR_TRY(hr_knobs_set(&s->knobs, s->row->id, text, err));
    const hr_status status = hr_planner_plan(s->planner, &s->knobs, &p.plan, err);
    s->plans++;
    p.refused = (status == HR_MODEL || status == HR_CONSTRAINT) && s->fits.value > 0;
    p.is_last = p.refused && status == HR_MODEL;
    *(p.plan.fits && !p.refused ? &s->fits : &s->fails) = p;
    return p.refused ? HR_OK : status;
}

// Where the line through both meets the limit of the device, strictly between them; 0: it says nothing.
static uint64_t met_by_line(const probe *a, const probe *b)
{
    const double bytes = (double)b->plan.peak_in_use_bytes - (double)a->plan.peak_in_use_bytes;
    const double values = (double)b->value - (double)a->value;
    if (!(bytes > 0) || b->refused || hr_whatif_lacks_host(&b->plan)) {
        return 0;
    }
    const double room = (double)a->plan.limit_bytes - (double)a->plan.peak_in_use_bytes;
    const uint64_t value = a->value + (uint64_t)(room / bytes * values);
    return value > a->value && value < b->value ? value : 0;
}

// Until one does not fit. Growth that is all of the limit's room is tried first.
static hr_status find_failing(largest_search *s, uint64_t most, hr_err *err)
{
    while (s->fails.value == 0 && s->fits.value < most && s->fits.plan.limit_bytes > 0) {
        const uint64_t factor =
            s->fits.plan.peak_in_use_bytes > s->fits.plan.limit_bytes / 2 ? 2 : GROWTH_MOST;
        const uint64_t value = s->fits.value > most / factor ? most : s->fits.value * factor;
        HR_TRY(plan_value(s, value, err));
    }
    return HR_OK;
}

static hr_status find_fitting(largest_search *s, uint64_t least, hr_err *err)
{
    while (s->fits.value == 0 && s->fails.value > least) {
        HR_TRY(plan_value(s, s->fails.value / 2 > least ? s->fails.value / 2 : least, err));
    }
    return HR_OK;
}

// Behind a guess that fits its neighbour is tried: where growth is even, that ends it.
static hr_status close_gap(largest_search *s, hr_err *err)
{
    bool was_guessed = false;
    for (uint32_t k = 0; s->fails.value - s->fits.value > 1; k++) {
        const uint64_t line = k < GUESSES ? met_by_line(&s->fits, &s->fails) : 0;
        const uint64_t middle = s->fits.value + (s->fails.value - s->fits.value) / 2;
        const uint64_t value = was_guessed ? s->fits.value + 1 : line > 0 ? line : middle;
        const bool is_guess = !was_guessed && line > 0;
        HR_TRY(plan_value(s, value, err));
        was_guessed = is_guess && s->fits.value == value;
    }
    return HR_OK;
}

hr_status hr_planner_largest(const hr_planner *planner, const hr_knobs *knobs, hr_knob_id id, hr_largest *out,
                             hr_err *err)
{
    largest_search s = {.planner = planner, .knobs = *knobs, .row = &hr_knob_rows(NULL)[id]};
    const uint64_t least = (uint64_t)(s.row->min > 1 ? s.row->min : 1), most = (uint64_t)s.row->max;
    const uint64_t now = (uint64_t)hr_knob_int(knobs, id); // 0 where it is auto
    HR_TRY(plan_value(&s, now > least ? now : least, err));
    HR_TRY(find_failing(&s, most, err));
    HR_TRY(find_fitting(&s, least, err));
    if (s.fits.value > 0 && s.fails.value > 0) {
        HR_TRY(close_gap(&s, err));
    }
    *out = (hr_largest){.value = s.fits.value,
                        .is_last = s.fails.value == 0 || s.fails.is_last,
                        .plan = s.fits.value > 0 ? s.fits.plan : s.fails.plan,
                        .plans = s.plans};
    return HR_OK;
}
