// SPDX-License-Identifier: Apache-2.0
// The planner as the workbench knows it: what is asked when, and what they say of the knobs.
#include "headroom/units.h"

#include "app/tui/feed/feed.h"
#include "app/tui/feed/knob_edit.h"

void feed_start_planner(feed *f)
{
    if (f->planning == NULL && hr_planning_start(f->scripted, &f->planning, NULL) != HR_OK) {
        f->planning = NULL; // the workbench works all the same: no neighbour is judged
    }
}

void feed_forget_plans(feed *f)
{
    f->planned = NULL;
    f->question = 0;
    f->answers = (whatif_answers){.question = 0};
}

void feed_stop_planner(feed *f)
{
    hr_planning_stop(f->planning);
    f->planning = NULL;
    feed_forget_plans(f);
}

// Which model, unless the planner has it already.
static void open_model(feed *f)
{
    if (f->planned != f->preset) {
        f->planned = f->preset;
        hr_planning_open(f->planning, hr_preset_path(f->preset), hr_preset_trusts(f->preset));
    }
}

// A planner that cannot be asked is none.
static uint64_t asked(feed *f, uint64_t number)
{
    if (number == 0) {
        feed_stop_planner(f);
    }
    return number;
}

static void ask_turns(feed *f)
{
    static hr_turn turns[HR_TURNS_MAX];
    const whatif_question question = {.knobs = f->knobs,
                                      .first = feed_knob(f),
                                      .when_unset_bytes = f->live.limit_bytes,
                                      .recorded = hr_preset_is_trace(f->preset)};
    if (f->planning == NULL) {
        f->question++; // what was answered is of other knobs
        return;
    }
    open_model(f);
    const size_t count = whatif_begin(&f->whatif, &question, turns);
    f->question = asked(f, hr_planning_ask_turns(f->planning, &f->knobs, turns, count));
}

void feed_ask_whatif(feed *f)
{
    ask_turns(f);
    if (f->planning != NULL) {
        (void)asked(f, hr_planning_ask_step_plan(f->planning, &f->knobs));
    }
}

void feed_ask_knob(feed *f)
{
    const hr_knob_id id = feed_knob(f);
    if (feed_whatif(f, id, WHATIF_LESS) == NULL || feed_whatif(f, id, WHATIF_MORE) == NULL) {
        ask_turns(f);
    }
}

// ---- knobs that wait ------------------------------------------------------------------------------------------

bool feed_has_stepped(const feed *f)
{
    return f->live.steps > 0 && knob_edit_same(&f->knobs, &f->stepped);
}

// A hot knob changes no plan.
static bool knobs_wait(const feed *f)
{
    bool stands = f->live.state == HR_ENGINE_PAUSED || f->live.state == HR_ENGINE_IDLE;
    bool differs = false;
    for (int id = 0; stands && id < HR_KNOB_COUNT && !differs; id++) {
        differs = !hr_knob_rows(NULL)[id].hot && knob_edit_differs(&f->knobs, &f->stepped, (hr_knob_id)id);
    }
    return differs && f->watched == NULL;
}

const hr_whatif *feed_waiting_plan(const feed *f)
{
    const whatif_cell *present = &f->answers.present;
    bool known = f->answers.question == f->question && present->known && !present->refused;
    return known && knobs_wait(f) ? &present->plan : NULL;
}

// A training that stands does not try them: the plan says at once what a step would.
bool feed_judge_turn(feed *f)
{
    const hr_whatif *plan = f->judges_turn ? feed_waiting_plan(f) : NULL;
    const bool says = plan != NULL && !plan->fits && f->message.kind != MESSAGE_ERROR;
    char missing[HR_BYTES_TEXT_MAX];
    if (says) {
        feed_say(f, MESSAGE_NOTE,
                 "these knobs do not fit when they run: %s %sare missing p; 4 shows what would",
                 hr_bytes_human(hr_whatif_missing_bytes(plan), missing),
                 hr_whatif_lacks_host(plan) ? "of the host's " : "");
    }
    f->judges_turn = f->judges_turn && !(f->answers.question == f->question && f->answers.present.known);
    return says;
}

void feed_note_learned(feed *f)
{
    if (f->live.steps > 0 && !hr_knob_is(&f->applied, HR_KNOB_DEVICE_KIND, "plan")) {
        whatif_learn(&f->answers);
    }
}

void feed_take_turn(feed *f, const hr_answer *answer)
{
    whatif_take(&f->whatif, answer, &f->answers);
    feed_note_learned(f);
    if (answer->last && f->answers.estimated && answer->number == f->question) {
        f->question = asked(f, hr_planning_refine(f->planning, HR_QUESTION_TURNS));
        whatif_refine(&f->answers, f->question);
    }
}

void feed_refine_step_plan(feed *f)
{
    (void)asked(f, hr_planning_refine(f->planning, HR_QUESTION_STEP_PLAN));
}

void feed_ask_diff(feed *f, const hr_knobs *before, const hr_knobs *after)
{
    open_model(f);
    (void)asked(f, hr_planning_ask_diff(f->planning, before, after));
}

void feed_ask_fit(feed *f)
{
    open_model(f);
    fit_begin(&f->fit, &f->knobs, asked(f, hr_planning_ask_fit(f->planning, &f->knobs, f->fit.permission)));
}
