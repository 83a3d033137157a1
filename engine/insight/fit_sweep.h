// SPDX-License-Identifier: Apache-2.0
// Plans of many combinations of the knobs that trade memory for time and leave what is learned alone.
//
// The knobs that it turns are named in headroom/planning.h. Weights come out the same, up to the order of sums (a
// smaller workspace may choose another kernel). A choice that enters the knob table enters the sweep.
//
//   point 0: the knobs as they are
//   then     one further turn from a point that no other one beats in both peak and time, fewest turns first;
//            from the others when these are used up
//
// A combination that is refused is no point, and neither is a turn that changes neither peak nor time.
#ifndef INSIGHT_FIT_SWEEP_H
#define INSIGHT_FIT_SWEEP_H

#include "headroom/planning.h"

enum { FIT_PLANS_MAX = 2 * HR_FIT_POINTS_MAX };

typedef struct fit_sweep fit_sweep;

typedef enum fit_sweep_result {
    FIT_SWEEP_WORKED,  // a plan was made that is no point, or one that is still to be told
    FIT_SWEEP_POINT,   // the next point
    FIT_SWEEP_LAST,    // the last point; do not advance again
    FIT_SWEEP_REFUSED, // the knobs themselves cannot be planned: *err says why
} fit_sweep_result;

// Copies the knobs. NOMEM.
HR_MUST_CHECK hr_status fit_sweep_create(const hr_knobs *knobs, fit_sweep **out, hr_err *err);
void fit_sweep_destroy(fit_sweep *s); // NULL is fine
// Makes one plan at most.
fit_sweep_result fit_sweep_advance(fit_sweep *s, const hr_planner *planner, hr_fit_point *point, hr_err *err);

#endif
