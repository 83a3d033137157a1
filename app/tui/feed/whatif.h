// SPDX-License-Identifier: Apache-2.0
// What the values next to each knob would do to peak and step time: which turns the planner is asked about, and where
// its answers belong.
#ifndef TUI_WHATIF_H
#define TUI_WHATIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/planning.h"

enum { WHATIF_LESS, WHATIF_MORE, WHATIF_SIDES, WHATIF_WHY_MAX = 160 };

typedef struct whatif_cell {
    bool known;     // `plan` holds an answer for the knobs that were asked about
    bool estimated; // the device will be asked: a better answer comes
    bool refused;   // there is no such value, the combination is not legal, or the plan failed otherwise
    char why[WHATIF_WHY_MAX];            // it is refused; "" where it is not, or there is no such value
    char other_param[HR_PARAM_TEXT_MAX]; // which weights it would lose, once there are some; ""
    char value[32];                      // that was planned
    hr_whatif plan;
} whatif_cell;

typedef struct whatif_answers {
    uint64_t question;   // number of the question these belong to
    bool estimated;      // some of them
    whatif_cell present; // of the knobs as they are
    whatif_cell cell[HR_KNOB_COUNT][WHATIF_SIDES];
} whatif_answers;

typedef struct whatif_question {
    hr_knobs knobs;
    hr_knob_id first;          // the selected knob is planned first
    uint64_t when_unset_bytes; // the limit, where device.vram is not set
    bool recorded;             // a step of which only card and allocator can be turned
} whatif_question;

// A question under way.
typedef struct whatif {
    size_t count;
    struct whatif_place {
        hr_knob_id knob; // HR_KNOB_COUNT: the knobs as they are
        int side;
    } place[HR_TURNS_MAX];
    whatif_answers begun; // what is known without a plan
} whatif;

// The turns to be planned, the knobs as they are first and then the selected knob's. A knob that changes between two
// steps needs no other build: its plan is the present one, and it is not asked about. Returns how many.
size_t whatif_begin(whatif *w, const whatif_question *question, hr_turn turns[HR_TURNS_MAX]);
// Puts an answer to TURNS into its cell; those of an older question stay until the first of a newer one comes.
void whatif_take(whatif *w, const hr_answer *answer, whatif_answers *answers);
// Steps have been done: an engine refuses what would lose them. After each answer.
void whatif_learn(whatif_answers *answers);
// The same question was asked once more under this number: what was estimated stays until it is replaced.
void whatif_refine(whatif_answers *answers, uint64_t question);

#endif
