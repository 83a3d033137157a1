// SPDX-License-Identifier: Apache-2.0
#include "tests/tui/fake_planning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tui/fake_engine.h"
#include "tests/tui/fake_step_plan.h"

typedef struct fake_question {
    bool open;
    uint64_t number;
    hr_knobs knobs;
} fake_question;

struct hr_planning {
    uint64_t asked;
    fake_question open[HR_QUESTION_COUNT];
    hr_turn turns[HR_TURNS_MAX];
    uint32_t turn_count, next_turn;
};

static bool is_broken, refuses, holds;
static unsigned opened;
static hr_fit_permission permitted;

void fake_planning_break(bool broken)
{
    is_broken = broken;
}

void fake_planning_refuse(bool refused)
{
    refuses = refused;
}

void fake_planning_hold(bool held)
{
    holds = held;
}

hr_fit_permission fake_planning_permitted(void)
{
    return permitted;
}

unsigned fake_planning_opened(void)
{
    return opened;
}

hr_status hr_planning_start(bool in_process, hr_planning **out, hr_err *err)
{
    (void)in_process;
    *out = is_broken ? NULL : calloc(1, sizeof **out);
    return *out != NULL ? HR_OK : HR_FAIL(err, STATE, "the scripted planner is broken");
}

void hr_planning_stop(hr_planning *p)
{
    free(p);
}

void hr_planning_open(hr_planning *p, const char *preset, bool trusts)
{
    (void)preset, (void)trusts;
    memset(p->open, 0, sizeof p->open);
    opened++;
}

static uint64_t ask(hr_planning *p, hr_question_kind kind, const hr_knobs *knobs)
{
    if (is_broken) {
        return 0;
    }
    p->open[kind] = (fake_question){true, ++p->asked, *knobs};
    return p->asked;
}

uint64_t hr_planning_ask_turns(hr_planning *p, const hr_knobs *knobs, const hr_turn *turns, size_t count)
{
    memcpy(p->turns, turns, count * sizeof *turns);
    p->turn_count = (uint32_t)count;
    p->next_turn = 0;
    return ask(p, HR_QUESTION_TURNS, knobs);
}

uint64_t hr_planning_refine(hr_planning *p, hr_question_kind kind)
{
    (void)p, (void)kind;
    return 0; // nothing here is estimated
}

uint64_t hr_planning_ask_step_plan(hr_planning *p, const hr_knobs *knobs)
{
    return ask(p, HR_QUESTION_STEP_PLAN, knobs);
}

uint64_t hr_planning_ask_stands(hr_planning *p, const hr_knobs *knobs)
{
    return ask(p, HR_QUESTION_STANDS, knobs);
}

uint64_t hr_planning_ask_diff(hr_planning *p, const hr_knobs *before, const hr_knobs *after)
{
    (void)after;
    return ask(p, HR_QUESTION_DIFF, before);
}

uint64_t hr_planning_ask_fit(hr_planning *p, const hr_knobs *knobs, hr_fit_permission permission)
{
    permitted = permission;
    return ask(p, HR_QUESTION_FIT, knobs);
}

bool fake_planning_turn(const hr_knobs *knobs, const hr_turn *turn, hr_answer *answer)
{
    hr_knobs turned = *knobs;
    answer->kind = HR_QUESTION_TURNS;
    answer->status =
        turn->knob == HR_KNOB_COUNT ? HR_OK : hr_knobs_set(&turned, turn->knob, turn->value, NULL);
    return answer->status != HR_OK || fake_engine_plan(&turned, &answer->whatif);
}

bool hr_planning_take(hr_planning *p, hr_answer *answer)
{
    *answer = (hr_answer){.kind = HR_QUESTION_TURNS};
    if (p == NULL) {
        return false;
    }
    fake_question *stands = &p->open[HR_QUESTION_STANDS];
    if (stands->open && holds) {
        return false;
    }
    if (stands->open) {
        stands->open = false;
        *answer = (hr_answer){.kind = HR_QUESTION_STANDS,
                              .number = stands->number,
                              .last = true,
                              .status = refuses ? HR_READ : HR_OK};
        snprintf(answer->sentence, sizeof answer->sentence, "%s", refuses ? "it would not stand" : "");
        return true;
    }
    fake_question *turns = &p->open[HR_QUESTION_TURNS], *step_plan = &p->open[HR_QUESTION_STEP_PLAN];
    if (turns->open) {
        answer->number = turns->number;
        answer->index = p->next_turn++;
        turns->open = p->next_turn < p->turn_count;
        answer->last = !turns->open;
        return fake_planning_turn(&turns->knobs, &p->turns[answer->index], answer);
    }
    if (step_plan->open) {
        step_plan->open = false;
        *answer = (hr_answer){.kind = HR_QUESTION_STEP_PLAN, .number = step_plan->number, .last = true};
        fake_step_plan_make(&step_plan->knobs, &answer->step_plan);
        return true;
    }
    return false;
}

void hr_answer_deinit(hr_answer *answer)
{
    hr_step_plan_deinit(&answer->step_plan);
}

int hr_planning_fd(const hr_planning *p)
{
    (void)p;
    return -1;
}

bool hr_planning_is_busy(const hr_planning *p)
{
    return p != NULL && (p->open[HR_QUESTION_STANDS].open || p->open[HR_QUESTION_TURNS].open ||
                         p->open[HR_QUESTION_STEP_PLAN].open);
}
