// SPDX-License-Identifier: Apache-2.0
// The planner as the workbench knows it: what is asked when, and where the answers go.
#include "headroom/units.h"

#include "app/tui/app.h"

enum { ANSWERS_PER_DRAIN = 64 };

void app_start_planner(app *a)
{
    if (a->planning == NULL && hr_planning_start(a->scripted, &a->planning, NULL) != HR_OK) {
        a->planning = NULL; // the workbench works all the same: no neighbour is judged
    }
}

void app_forget_plans(app *a)
{
    a->planned = NULL;
    a->question = 0;
    a->answers = (whatif_answers){.question = 0};
}

void app_stop_planner(app *a)
{
    hr_planning_stop(a->planning);
    a->planning = NULL;
    app_forget_plans(a);
}

// Which model, unless the planner has it already.
static void open_model(app *a)
{
    if (a->planned != a->preset) {
        a->planned = a->preset;
        hr_planning_open(a->planning, hr_preset_path(a->preset), hr_preset_trusts(a->preset));
    }
}

// A planner that cannot be asked is none.
static uint64_t asked(app *a, uint64_t number)
{
    if (number == 0) {
        app_stop_planner(a);
    }
    return number;
}

static void ask_turns(app *a)
{
    static hr_turn turns[HR_TURNS_MAX];
    const whatif_question question = {a->knobs, app_knob(a), a->live.limit_bytes};
    if (a->planning == NULL) {
        a->question++; // what was answered is of other knobs
        return;
    }
    open_model(a);
    const size_t count = whatif_begin(&a->whatif, &question, turns);
    a->question = asked(a, hr_planning_ask_turns(a->planning, &a->knobs, turns, count));
}

void app_ask_whatif(app *a)
{
    ask_turns(a);
    if (a->planning != NULL) {
        (void)asked(a, hr_planning_ask_step_plan(a->planning, &a->knobs));
    }
}

void app_ask_knob(app *a)
{
    const hr_knob_id id = app_knob(a);
    if (app_whatif(a, id, WHATIF_LESS) == NULL || app_whatif(a, id, WHATIF_MORE) == NULL) {
        ask_turns(a);
    }
}

void app_ask_for_screen(app *a)
{
    hr_knobs before, after;
    if (a->planning != NULL && app_wants_diff(a, &before, &after)) {
        open_model(a);
        (void)asked(a, hr_planning_ask_diff(a->planning, &before, &after));
    }
    if (a->planning != NULL && fit_wanted(a)) {
        open_model(a);
        fit_begin(a, asked(a, hr_planning_ask_fit(a->planning, &a->knobs, a->fit.permission)));
    }
}

// ---- knobs that wait ------------------------------------------------------------------------------------------

bool app_has_stepped(const app *a)
{
    return a->live.steps > 0 && knob_edit_same(&a->knobs, &a->stepped);
}

// A hot knob changes no plan.
static bool knobs_wait(const app *a)
{
    bool stands = a->live.state == HR_ENGINE_PAUSED || a->live.state == HR_ENGINE_IDLE;
    bool differs = false;
    for (int id = 0; stands && id < HR_KNOB_COUNT && !differs; id++) {
        differs = !hr_knob_rows(NULL)[id].hot && knob_edit_differs(&a->knobs, &a->stepped, (hr_knob_id)id);
    }
    return differs && a->watched == NULL;
}

const hr_whatif *app_waiting_plan(const app *a)
{
    const whatif_cell *present = &a->answers.present;
    bool known = a->answers.question == a->question && present->known && !present->refused;
    return known && knobs_wait(a) ? &present->plan : NULL;
}

// A training that stands does not try them: the plan says at once what a step would. True when it did.
static bool judge_turn(app *a)
{
    const hr_whatif *plan = a->judges_turn ? app_waiting_plan(a) : NULL;
    const bool says = plan != NULL && !plan->fits && a->message.kind != MESSAGE_ERROR;
    char missing[HR_BYTES_TEXT_MAX];
    if (says) {
        app_say(a, MESSAGE_NOTE, "these knobs do not fit when they run: %s are missing p; 4 shows what would",
                hr_bytes_human(plan->missing_bytes, missing));
    }
    a->judges_turn = a->judges_turn && !(a->answers.question == a->question && a->answers.present.known);
    return says;
}

static void take_turn(app *a, const hr_answer *answer)
{
    whatif_take(&a->whatif, answer, &a->answers);
    if (answer->last && a->answers.estimated && answer->number == a->question) {
        a->question = asked(a, hr_planning_refine(a->planning, HR_QUESTION_TURNS));
        whatif_refine(&a->answers, a->question);
    }
}

static void take_step_plan(app *a, hr_answer *answer)
{
    if (answer->status == HR_OK) {
        app_take_step_plan(a, &answer->step_plan);
    }
    if (answer->estimated) {
        (void)asked(a, hr_planning_refine(a->planning, HR_QUESTION_PICTURE));
    }
}

static void take(app *a, hr_answer *answer)
{
    switch (answer->kind) {
    case HR_QUESTION_TURNS:
        take_turn(a, answer);
        break;
    case HR_QUESTION_PICTURE:
        take_step_plan(a, answer);
        break;
    case HR_QUESTION_DIFF:
        app_take_diff(a, answer->text);
        break;
    case HR_QUESTION_FIT:
        fit_take(a, answer);
        break;
    case HR_QUESTION_STANDS: // it is the judge who is asked that
    case HR_QUESTION_COUNT:
        break;
    }
}

bool app_take_plans(app *a, bool *more)
{
    hr_answer answer;
    int count = 0;
    app_ask_for_screen(a);
    while (count < ANSWERS_PER_DRAIN && hr_planning_take(a->planning, &answer)) {
        take(a, &answer);
        hr_answer_deinit(&answer);
        count++;
    }
    // In process nobody wakes us.
    *more = *more || count == ANSWERS_PER_DRAIN ||
            (hr_planning_fd(a->planning) < 0 && hr_planning_is_busy(a->planning));
    return judge_turn(a) || count > 0;
}
