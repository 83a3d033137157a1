// SPDX-License-Identifier: Apache-2.0
// The turns of a search that are planned side by side: those of one place do not depend on each other. What they come to is taken in
// their order, so that a search is the same for any number of threads. One caller at a time.
#ifndef INSIGHT_FIT_AHEAD_H
#define INSIGHT_FIT_AHEAD_H

#include "headroom/fit.h"

#include "insight/fit_turns.h"

typedef struct fit_candidate {
    fit_combination c;
    hr_knobs knobs;
    uint64_t exact_below_bytes; // what lacks less than this at least is planned to the byte as well
    hr_fit_point point;
    bool planned, has_exact; // point.plan: planner_plan_roughly's; `exact`: hr_planner_plan's
    hr_whatif exact;
    bool given_up, was_told; // for what was asked meanwhile (planner_stop_when); it was given so
} fit_candidate;

typedef struct fit_ahead fit_ahead;

// 0 threads: as many as there are processors; where the system gives none, the caller plans alone. NOMEM.
HR_MUST_CHECK hr_status fit_ahead_create(uint32_t threads, fit_ahead **out, hr_err *err);
void fit_ahead_destroy(fit_ahead *a); // NULL is fine

// An empty candidate, the ahead's, to be filled in; NULL: it is full. Only where fit_ahead_next has given all.
fit_candidate *fit_ahead_place(fit_ahead *a);
// The candidate that was placed last is none.
void fit_ahead_drop(fit_ahead *a);
void fit_ahead_plan(fit_ahead *a, const hr_planner *planner); // all that were placed
// In the order in which they were placed, until the next one is placed; NULL: all were given. One that was given up is given again, and
// planned again for that.
const fit_candidate *fit_ahead_next(fit_ahead *a);
uint32_t fit_ahead_left(const fit_ahead *a);

#endif
