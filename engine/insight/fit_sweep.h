// SPDX-License-Identifier: Apache-2.0
// Plans of many combinations of the knobs that trade memory for time.
//
// The knobs that it turns are named in headroom/planning.h. Without a permission weights come out the same, up to the
// order of sums (a smaller workspace may choose another kernel); with one also precision, and the optimizers of
// insight/fit_change.h, are turned. A choice that enters the knob table enters the sweep; constraints say which are legal.
//
//   point 0: the knobs as they are
//   then     one further turn from a point that no other one beats in both peak and time, fewest turns first;
//            from the others when these are used up
//   with a permission, every other plan turns what it permits instead, from the same points; a point that changes
//            more, or else, of what is learned beats none here. Such a turn that alone costs more of both is not tried again
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
HR_MUST_CHECK hr_status fit_sweep_create(const hr_knobs *knobs, hr_fit_permission permission, fit_sweep **out,
                                         hr_err *err);
void fit_sweep_destroy(fit_sweep *s); // NULL is fine
// Makes one plan at most.
fit_sweep_result fit_sweep_advance(fit_sweep *s, const hr_planner *planner, hr_fit_point *point, hr_err *err);

#endif
