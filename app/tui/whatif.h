// SPDX-License-Identifier: Apache-2.0
// What the values next to each knob would do to the peak, planned in the background: a thread of low priority that
// no key ever waits for.
#ifndef TUI_WHATIF_H
#define TUI_WHATIF_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/engine.h"

enum { WHATIF_LESS, WHATIF_MORE, WHATIF_SIDES };

typedef struct whatif_cell {
    bool known;     // `plan` holds an answer for the knobs that were asked about
    bool refused;   // the combination is not legal, or the plan failed otherwise
    char value[32]; // that was planned
    hr_whatif plan;
} whatif_cell;

typedef struct whatif_answers {
    uint64_t question;   // number of the question these belong to
    whatif_cell present; // of the knobs as they are
    whatif_cell cell[HR_KNOB_COUNT][WHATIF_SIDES];
} whatif_answers;

typedef struct whatif_question {
    uint64_t number;
    const hr_planner *planner; // NULL: nothing can be said
    hr_knobs knobs;
    hr_knob_id first;          // the selected knob is planned first
    uint64_t when_unset_bytes; // the limit, where device.vram is not set
} whatif_question;

// Plan on the caller's thread: the knobs as they are, and one neighbour.
void whatif_plan_present(const whatif_question *question, whatif_cell *cell);
void whatif_plan_cell(const whatif_question *question, hr_knob_id id, int side, whatif_cell *cell);

typedef struct whatif whatif;

// NULL when no thread can be had: then no answers come.
whatif *whatif_start(void);
// Waits for the plan that is being made. NULL is fine.
void whatif_stop(whatif *w);
// Replaces the question; the planner must live until the next question, or whatif_stop.
void whatif_ask(whatif *w, const whatif_question *question);
// Waits until no plan touches a planner any more.
void whatif_forget(whatif *w);
int whatif_fd(const whatif *w); // readable when answers wait; −1 for NULL
// Copies the answers so far; false when there are no new ones.
bool whatif_take(whatif *w, whatif_answers *answers);

#endif
