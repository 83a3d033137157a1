// SPDX-License-Identifier: Apache-2.0
// Questions and answers as bodies of messages. Whatever is read is checked before it is handed out: counts, kinds, ids
// and flags within their tables, texts ended, times no less than 0. What `get` refuses leaves nothing behind.
#ifndef SESSION_PLANNING_WIRE_H
#define SESSION_PLANNING_WIRE_H

#include "session/planner_queue.h"
#include "session/wire.h"

typedef enum planning_message {
    PLANNING_OPEN,   // to the planner
    PLANNING_ASK,    // to the planner
    PLANNING_ANSWER, // from it
    PLANNING_MESSAGES,
} planning_message;

void planning_put_open(wire_out *o, const char *preset, bool trusts);
bool planning_get_open(wire_in *in, char preset[PLANNING_PRESET_MAX], bool *trusts);

void planning_put_question(wire_out *o, const planning_question *q);
bool planning_get_question(wire_in *in, planning_question *q);

void planning_put_answer(wire_out *o, const hr_answer *answer);
// The caller deinits it.
bool planning_get_answer(wire_in *in, hr_answer *answer);

// ---- the parts ------------------------------------------------------------------------------------------------

void planning_put_step_plan(wire_out *o, const hr_step_plan *p);
bool planning_get_step_plan(wire_in *in, hr_step_plan *p);

#endif
