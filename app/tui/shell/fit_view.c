// SPDX-License-Identifier: Apache-2.0
#include "app/tui/shell/fit_view.h"

#include <stdio.h>

bool fit_wanted(const app *a)
{
    const hr_whatif *plan = feed_waiting_plan(&a->feed);
    bool looked_at = a->screen == SCREEN_FIT || (a->screen == SCREEN_DOCTOR && plan != NULL && !plan->fits);
    return looked_at && (a->feed.fit.question == 0 || a->feed.fit.permission != a->feed.fit.asked_with ||
                         !knob_edit_same(&a->feed.fit.asked, &a->feed.knobs));
}

bool fit_apply(feed *f, size_t point)
{
    const fit_points *fit = &f->fit;
    hr_knobs to;
    hr_err err;
    char pairs[sizeof fit->point[0].knobs], change[HR_FIT_CHANGE_MAX];
    snprintf(pairs, sizeof pairs, "%s", fit->point[point].knobs);
    fit_change(fit, point, change);
    if (!fit_knobs(fit, point, &to, &err)) {
        feed_say_error(f, &err);
        return false;
    }
    if (!app_turn_all(f, &to)) {
        return false;
    }
    if (pairs[0] == '\0') {
        feed_say(f, MESSAGE_NOTE, "the knobs are as they were asked about");
    } else {
        feed_say(f, MESSAGE_NOTE, "%s from the next step on; z turns it back%s%s", pairs,
                 change[0] != '\0' ? ". It changes what is learned: " : "", change);
    }
    return true;
}
