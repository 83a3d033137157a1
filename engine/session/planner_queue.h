// SPDX-License-Identifier: Apache-2.0
// Where questions are answered, one plan at a time, in one order: what the planner process does between two looks at
// its socket, and what an in-process hr_planning does when it is asked for an answer. No clock; threads of its own only while a
// search for what fits makes its plans side by side.
#ifndef SESSION_PLANNER_QUEUE_H
#define SESSION_PLANNER_QUEUE_H

#include "headroom/planning.h"

enum { PLANNING_PRESET_MAX = 4096 };

typedef struct planning_question {
    hr_question_kind kind;
    uint64_t number;
    bool exact;                   // without estimates, however long it takes
    hr_knobs knobs, after;        // `after`: DIFF
    hr_fit_permission permission; // FIT
    uint32_t turn_count;          // TURNS: 1 … HR_TURNS_MAX
    hr_turn turns[HR_TURNS_MAX];
} planning_question;

typedef struct planner_queue planner_queue;

HR_MUST_CHECK hr_status planner_queue_create(planner_queue **out, hr_err *err);
void planner_queue_destroy(planner_queue *d); // NULL is fine
// Forgets every question. The preset is read when the first one is answered.
void planner_queue_open(planner_queue *d, const char *preset, bool trusts);
// Replaces the question of that kind. Copies it.
void planner_queue_ask(planner_queue *d, const planning_question *q);

// What is not urgent is given up where `wanted` says that something was asked, and begun again when that is answered. NULL: it is not.
void planner_queue_give_way(planner_queue *d, bool (*wanted)(void *context), void *context);

typedef enum planning_work {
    PLANNING_IDLE,     // nothing is asked
    PLANNING_WORKED,   // call again
    PLANNING_ANSWERED, // *answer is the next one, the caller's to deinit
} planning_work;

// Makes one plan at most; of a search as many as it makes at once.
planning_work planner_queue_work(planner_queue *d, hr_answer *answer);

#endif
