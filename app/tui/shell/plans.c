// SPDX-License-Identifier: Apache-2.0
// What the screen that is shown asks of the planner, and where the answers go.
#include "app/tui/shell/app.h"
#include "app/tui/shell/fit_view.h"
#include "app/tui/shell/panes.h"

enum { ANSWERS_PER_DRAIN = 64 };

void app_ask_for_screen(app *a)
{
    hr_knobs before, after;
    if (a->feed.planning != NULL && a->screen == SCREEN_PROGRAM &&
        step_wants_diff(&a->step, &before, &after)) {
        feed_ask_diff(&a->feed, &before, &after);
    }
    if (a->feed.planning != NULL && fit_wanted(a)) {
        feed_ask_fit(&a->feed);
    }
}

static void take_step_plan(app *a, hr_answer *answer)
{
    if (answer->status == HR_OK) {
        step_take(&a->step, &a->feed, &answer->step_plan);
    }
    if (answer->estimated) {
        feed_refine_step_plan(&a->feed);
    }
}

void app_take_fit(app *a, const hr_answer *answer)
{
    if (fit_take(&a->feed.fit, answer)) {
        // FRONTIER may be shown alone
        table_settle(&a->table[PANE_POINTS], pane_ops_of(PANE_POINTS)->table, pane_rows(a, PANE_POINTS));
    }
}

static void take(app *a, hr_answer *answer)
{
    switch (answer->kind) {
    case HR_QUESTION_TURNS:
        feed_take_turn(&a->feed, answer);
        break;
    case HR_QUESTION_STEP_PLAN:
        take_step_plan(a, answer);
        break;
    case HR_QUESTION_DIFF:
        step_take_diff(&a->step, answer->text);
        break;
    case HR_QUESTION_FIT:
        app_take_fit(a, answer);
        break;
    case HR_QUESTION_STANDS: // asked by judge.c
    case HR_QUESTION_COUNT:
        break;
    }
}

bool app_take_plans(app *a, bool *more)
{
    hr_answer answer;
    int count = 0;
    app_ask_for_screen(a);
    while (count < ANSWERS_PER_DRAIN && hr_planning_take(a->feed.planning, &answer)) {
        take(a, &answer);
        hr_answer_deinit(&answer);
        count++;
    }
    // In process there is no wake-up.
    *more = *more || count == ANSWERS_PER_DRAIN ||
            (hr_planning_fd(a->feed.planning) < 0 && hr_planning_is_busy(a->feed.planning));
    return feed_judge_turn(&a->feed) || count > 0;
}
