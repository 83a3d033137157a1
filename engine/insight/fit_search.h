// SPDX-License-Identifier: Apache-2.0
// The search behind Fit: the fastest combination of insight/fit_turns.h that fits, and the frontier of peak against time.
//
// For one goal ("the fastest that fits", "the fastest below 3 GiB", "the least there is") it walks: all single turns of where it
// stands are planned, the best is the next place. One that a constraint refuses is tried with what makes it legal (split the batch
// *and* update behind the last of it). Where none is better, the turns that are faster but do not keep the goal are places from which
// one further turn is tried (offload off *and* another allocator), and for what fits and the least peak also those that come nearest:
// a better one goes on from there. Goals, in this order:
//
//   the fastest that fits          with all that is learned left alone; then, with a permission, once more with it
//   the least peak                 and the same
//   the fastest below a peak       LADDER of them between the least peak and that of the fastest, and the same
//   the fastest that fits          once more, from the best of everything
//   recomputation under a budget   that is the limit: in place of the best one's checkpoints, and of the fastest that miss, a few
//
// A goal begins at the best that is known for it, so that plans are shared. `tests/bench/run fit` sets it beside every combination
// there is: how near it comes, and with how many plans.
//
//   point 0: the knobs as they are
//   then     what was planned, in order. A combination that is refused is no point, and neither is a turn that
//            changes neither peak nor time
#ifndef INSIGHT_FIT_SEARCH_H
#define INSIGHT_FIT_SEARCH_H

#include "headroom/fit.h"

typedef struct fit_search fit_search;

typedef enum fit_search_result {
    FIT_SEARCH_WORKED,  // a plan was made that is no point, or one that is still to be told
    FIT_SEARCH_POINT,   // the next point
    FIT_SEARCH_LAST,    // the last point; do not advance again
    FIT_SEARCH_REFUSED, // the knobs themselves cannot be planned: *err says why
} fit_search_result;

// Copies the knobs and the wish. `normalises_batches`: splitting the batch changes what is learned. NOMEM.
HR_MUST_CHECK hr_status fit_search_create(const hr_knobs *knobs, const hr_fit_wish *wish,
                                          bool normalises_batches, fit_search **out, hr_err *err);
void fit_search_destroy(fit_search *s); // NULL is fine
// Looks at `most` combinations and no further, refused ones among them; more than there is room for counts as that. Before it advances.
void fit_search_bound(fit_search *s, int most);
int fit_search_looked_at(const fit_search *s);
// Makes as many plans at once as its threads have use for, in one of several calls.
fit_search_result fit_search_advance(fit_search *s, const hr_planner *planner, hr_fit_point *point,
                                     hr_err *err);

#endif
