// SPDX-License-Identifier: Apache-2.0
// How a step plan is made: facts of the program and its model, then a play on numbers that is listened to.
//
//   step_plan_make ──┬─ step_plan_program.c   instructions, tensors, layers: what compiles, costs and is kept
//                  └─ step_plan_events.c    events, addresses, in_use and pool: what the allocator did
#ifndef INSIGHT_STEP_PLAN_H
#define INSIGHT_STEP_PLAN_H

#include "headroom/step_plan.h"

#include "base/intern.h"
#include "insight/play_limit.h"
#include "model/model.h"

// The step plan of c->programs[0] under the limit c->failed_bytes, missing_bytes aside. *played is what a plan of it says. The
// caller deinits *out; nothing is there after an error. NOMEM.
HR_MUST_CHECK hr_status step_plan_make(const hr_model *model, const play_case *c, hr_step_plan *out,
                                       play_result *played, hr_err *err);

// ---- the parts ------------------------------------------------------------------------------------------------

typedef struct step_plan_draft {
    const hr_model *model;
    const play_case *c;
    const program *p;
    hr_step_plan *out;
    intern texts; // becomes out->texts
} step_plan_draft;

// Everything that is known before a byte is asked for.
HR_MUST_CHECK hr_status step_plan_describe(step_plan_draft *d, hr_err *err);
// Plays, and fills what the heap has to say.
HR_MUST_CHECK hr_status step_plan_play(step_plan_draft *d, play_result *played, hr_err *err);

#endif
