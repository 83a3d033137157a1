// SPDX-License-Identifier: Apache-2.0
// One frame: the whole screen from the state.
#include "app/tui/screens/screens.h"

// Help and presets take the place between title and strip.
static rect body_of(const app *a, const layout *l)
{
    int top = l->pane[PANE_TITLE].h;
    int below = l->pane[PANE_STRIP].h + l->pane[PANE_FOOTER].h;
    return (rect){top, 0, a->rows - top - below, a->columns};
}

// A new size may have no place for the focused pane; where one pane is shown alone it is the memory.
static layout settle_focus(app *a)
{
    layout l = app_layout(a);
    bool lost = l.kind == LAYOUT_BENCH && !a->expanded && l.pane[a->focus].h == 0;
    if (l.kind == LAYOUT_SINGLE && a->shown != LAYOUT_SINGLE) {
        a->focus = PANE_VRAM;
    } else if (lost || (l.kind == LAYOUT_BENCH && a->shown == LAYOUT_SINGLE)) {
        a->focus = PANE_KNOBS;
    }
    a->shown = l.kind;
    return app_layout(a);
}

void app_draw(app *a)
{
    paint_size(&a->rows, &a->columns);
    layout l = settle_focus(a);
    canvas screen = {&a->theme, &a->glyphs, {0, 0, a->rows, a->columns}};
    canvas body = canvas_of(&screen, body_of(a, &l));
    paint_begin();
    if (l.kind == LAYOUT_LINE) {
        screen_line(&screen, a);
    } else if (a->overlay == OVERLAY_HELP) {
        screen_help(&body, a);
    } else if (a->overlay == OVERLAY_PRESETS) {
        screen_presets(&body, a);
    } else if (l.kind == LAYOUT_METER) {
        screen_meter(&screen, a, &l);
    } else {
        screen_bench(&screen, a, &l);
    }
    if (l.kind != LAYOUT_LINE) {
        canvas title = canvas_of(&screen, l.pane[PANE_TITLE]);
        canvas foot = canvas_of(&screen, l.pane[PANE_FOOTER]);
        frame_title(&title, a);
        frame_footer(&foot, a);
        frame_strip(&screen, l.pane[PANE_STRIP], a);
    }
    paint_end();
}
