// SPDX-License-Identifier: Apache-2.0
// How a step's picture is made: facts of the program and its model, then a play on numbers that is listened to.
//
//   picture_make ─┬─ picture_program.c   instructions, tensors, layers: what compiles, costs and is kept
//                 └─ picture_events.c    events, addresses, in_use and pool: what the allocator did
#ifndef INSIGHT_PICTURE_H
#define INSIGHT_PICTURE_H

#include "headroom/step_picture.h"

#include "base/intern.h"
#include "insight/play_limit.h"
#include "model/model.h"

// The picture of c->programs[0] under the limit c->failed_bytes, missing_bytes aside. *played is what a plan of it says. The
// caller deinits *out; nothing is there after an error. NOMEM.
HR_MUST_CHECK hr_status picture_make(const hr_model *model, const play_case *c, hr_step_picture *out,
                                     play_result *played, hr_err *err);

// ---- the parts ------------------------------------------------------------------------------------------------

typedef struct picture_draft {
    const hr_model *model;
    const play_case *c;
    const program *p;
    hr_step_picture *out;
    intern texts; // becomes out->texts
} picture_draft;

// Everything that is known before a byte is asked for.
HR_MUST_CHECK hr_status picture_describe(picture_draft *d, hr_err *err);
// Plays, and fills what the heap has to say.
HR_MUST_CHECK hr_status picture_play(picture_draft *d, play_result *played, hr_err *err);

#endif
