// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

#include "app/tui/screens/screens.h"

static const widget widgets[PANE_FOCUS_COUNT] = {
    [PANE_KNOBS] = widget_knobs, [PANE_COUNTERS] = widget_counters, [PANE_VRAM] = widget_vram,
    [PANE_STEP] = widget_step,   [PANE_LOSS] = widget_loss,         [PANE_PEAK] = widget_peak,
    [PANE_LOG] = widget_log,     [PANE_DOCTOR] = widget_doctor,
};

static void draw_tabs(const canvas *c, const app *a, const layout *l)
{
    layout_wish wish = app_wish(a);
    int x = 1;
    for (int pane = 0; pane < PANE_FOCUS_COUNT; pane++) {
        if (layout_can_show(l, &wish, (pane_id)pane)) {
            bool focused = pane == (int)a->focus;
            x += paint_format(c, 0, x, c->area.w - x, focused ? ROLE_SELECT : ROLE_DIM, " %s ",
                              pane_title((pane_id)pane));
        }
    }
}

void screen_bench(const canvas *screen, const app *a, const layout *l)
{
    if (l->pane[PANE_TABS].h > 0) {
        canvas tabs = canvas_of(screen, l->pane[PANE_TABS]);
        draw_tabs(&tabs, a, l);
    }
    for (int pane = 0; pane < PANE_FOCUS_COUNT; pane++) {
        if (l->pane[pane].h > 0) {
            canvas c = canvas_of(screen, l->pane[pane]);
            widgets[pane](&c, a);
        }
    }
}
