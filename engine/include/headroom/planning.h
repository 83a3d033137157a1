// SPDX-License-Identifier: Apache-2.0
// The planner: questions in, answers out, in a process of its own at idle priority, so that neither a plan's time nor
// its death is felt on the screen. A new question of a kind replaces the one of that kind that is being answered. When
// the planner dies another one is started and asked what was still open; a question that ended two of them is answered
// with STATE and the reason, and the next question starts one again. All functions belong to one thread.
#ifndef HEADROOM_PLANNING_H
#define HEADROOM_PLANNING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/engine.h"
#include "headroom/fit.h"
#include "headroom/preset.h"
#include "headroom/step_plan.h"

// ---- on the caller's thread: what the planner is made of, beside hr_planner_plan --------------------------------

// The whole step under these knobs; one that does not fit has a step plan too. KNOB and CONSTRAINT errors. The caller
// deinits it.
HR_MUST_CHECK hr_status hr_planner_step_plan(const hr_planner *planner, const hr_knobs *knobs,
                                             hr_step_plan *out, hr_err *err);
// The lines of the training step's listing that go ('-') and come ('+'), in its order; the first says how many. The
// caller frees it with hr_planner_text_free.
HR_MUST_CHECK hr_status hr_planner_diff(const hr_planner *planner, const hr_knobs *before,
                                        const hr_knobs *after, char **lines, hr_err *err);
void hr_planner_text_free(char *lines);

// ---- in the background ------------------------------------------------------------------------------------------

typedef struct hr_planning hr_planning;

// X(ID): what can be asked. STANDS is answered first of all, then the first HR_TURNS_FIRST turns are answered first (the knobs as they are, the knob under the
// cursor), then STEP_PLAN, DIFF, then the other turns and FIT alternately: combinations are on the screen while they are asked for.
#define HR_QUESTION_MAP(X)                                                                                   \
    X(STANDS)    /* whether a training under these knobs would stand (hr_engine_rehearse) */                 \
    X(TURNS)     /* what each of these turns of one knob would do to peak and step time */                   \
    X(STEP_PLAN) /* the whole step, under these knobs */                                                     \
    X(DIFF)      /* the listing's lines that go and come with other knobs */                                 \
    X(FIT)       /* plans of many combinations of the knobs that trade memory for time */

typedef enum hr_question_kind {
#define X(id) HR_QUESTION_##id,
    HR_QUESTION_MAP(X)
#undef X
        HR_QUESTION_COUNT
} hr_question_kind;

// One knob at another value; one whose row is hot changes no plan, and neither does the answer. `knob` HR_KNOB_COUNT: the knobs as they are.
typedef struct hr_turn {
    hr_knob_id knob;
    char value[HR_KNOB_TEXT_MAX];
} hr_turn;

enum { HR_TURNS_MAX = 256, HR_TURNS_FIRST = 3, HR_PARAM_TEXT_MAX = 64 };

typedef struct hr_answer {
    hr_question_kind kind;
    uint64_t number;  // of the question
    uint32_t index;   // TURNS: which turn; FIT: which point, from 0
    bool last;        // nothing more comes for this question
    bool estimated;   // TURNS, STEP_PLAN: with workspaces that the device has not been asked for yet
    hr_status status; // CONSTRAINT, KNOB…: refused, `sentence` says why; otherwise HR_OK
    char sentence[HR_ERR_TEXT_MAX];
    hr_whatif whatif; // TURNS
    // TURNS: a parameter that comes, goes or gets another shape, so that an engine that has learned refuses the turn; "": none
    char other_param[HR_PARAM_TEXT_MAX];
    hr_fit_point point;     // FIT
    hr_step_plan step_plan; // STEP_PLAN: the taker's to deinit
    char *text; // DIFF: lines beginning with '-' or '+'; the taker's to free with hr_answer_deinit
} hr_answer;

// `in_process`: answers are made inside hr_planning_take, on the caller's thread, in order and always the same: for
// scripts and tests. NOMEM, STATE errors.
HR_MUST_CHECK hr_status hr_planning_start(bool in_process, hr_planning **out, hr_err *err);
void hr_planning_stop(hr_planning *p); // ends the process at once; NULL is fine
// Which model: forgets all questions. Copies the name (or path). One that cannot be read is the answer to every question.
void hr_planning_open(hr_planning *p, const char *preset, bool trusts);

// TURNS and STEP_PLAN are answered at once: where the device is slow to ask, as cuDNN is, with estimates at first.
// All copy what they are given. Return the question's number, 1, 2, 3 …; 0 when it could not be asked.
uint64_t hr_planning_ask_turns(hr_planning *p, const hr_knobs *knobs, const hr_turn *turns, size_t count);
uint64_t hr_planning_ask_step_plan(hr_planning *p, const hr_knobs *knobs);
// Asks the newest question of that kind, TURNS or STEP_PLAN, once more: this time the device is asked for what was
// estimated, which may take seconds.
uint64_t hr_planning_refine(hr_planning *p, hr_question_kind kind);
uint64_t hr_planning_ask_stands(hr_planning *p, const hr_knobs *knobs);
uint64_t hr_planning_ask_diff(hr_planning *p, const hr_knobs *before, const hr_knobs *after);
uint64_t hr_planning_ask_fit(hr_planning *p, const hr_knobs *knobs, hr_fit_permission permission);

int hr_planning_fd(const hr_planning *p); // readable when answers wait; −1: in process, or NULL
// The next answer, in order of a question's index; false: none waits. A question that is refused as a whole has one
// answer. Answers to replaced questions never come.
bool hr_planning_take(hr_planning *p, hr_answer *answer);
void hr_answer_deinit(hr_answer *answer);
// Whether a question is still being answered.
bool hr_planning_is_busy(const hr_planning *p);

#endif
