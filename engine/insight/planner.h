// SPDX-License-Identifier: Apache-2.0
// hr_planner's side that only the engine sees.
#ifndef INSIGHT_PLANNER_H
#define INSIGHT_PLANNER_H

#include "headroom/engine.h"
#include "headroom/planning.h"
#include "headroom/step_plan.h"

// hr_planner_plan and hr_planner_step_plan in a hurry: where the device would be slow to ask and has not been asked before,
// the workspaces are the plan device's estimates, and *estimated says so.
HR_MUST_CHECK hr_status planner_estimate(const hr_planner *planner, const hr_knobs *knobs, hr_whatif *out,
                                         bool *estimated, hr_err *err);
HR_MUST_CHECK hr_status planner_estimate_step_plan(const hr_planner *planner, const hr_knobs *knobs,
                                                   hr_step_plan *out, bool *estimated, hr_err *err);

// hr_planner_plan, sooner where it does not fit: what asks for more than there is is not played, missing_bytes are by what it asks
// for, and is_at_least says so. What then lacks less than exact_below_bytes is played all the same, of the same program:
// `exact` is hr_planner_plan's, where has_exact.
typedef struct planner_rough {
    hr_whatif plan, exact;
    bool has_exact;
} planner_rough;
HR_MUST_CHECK hr_status planner_plan_roughly(const hr_planner *planner, const hr_knobs *knobs,
                                             uint64_t exact_below_bytes, planner_rough *out, hr_err *err);

// What is planned under a budget is given up where `stops` says so, with INTERRUPTED. Not while another thread plans; NULL: nothing is.
void planner_stop_when(hr_planner *planner, bool (*stops)(void *context), void *context);

// The knobs of the forward pass in which a teacher answers (compress.distill_cache): the same kernels, and nothing that only
// training needs.
HR_MUST_CHECK hr_status planner_answering_knobs(const hr_knobs *knobs, hr_knobs *out, hr_err *err);

// The first parameter that these knobs' model has and those' lacks in that shape, or the other way round, cut to fit; "": what one
// has learned goes on in the other. Errors as hr_planner_plan's of the models.
HR_MUST_CHECK hr_status planner_other_param(const hr_planner *planner, const hr_knobs *from,
                                            const hr_knobs *to, char name[HR_PARAM_TEXT_MAX], hr_err *err);

// Whether the model has batch normalisation, which sees what batch.size has at once. The errors of reading it at these sizes.
HR_MUST_CHECK hr_status planner_normalises_batches(const hr_planner *planner, const hr_knobs *knobs,
                                                   bool *out, hr_err *err);

// Reads what libraries were asked by earlier processes, once.
void planner_load_answers(void);
// Writes what a device's library was asked and has not been kept yet, as hr_planner_close does: for a process that
// may be killed at any time. A cache: what cannot be written is not missed. Thread-safe.
void planner_keep_answers(void);

#endif
