// SPDX-License-Identifier: Apache-2.0
// One frame: the whole screen from the state.
#include "app/tui/shell/act.h"
#include "app/tui/shell/frame.h"
#include "app/tui/shell/panes.h"

// Help and presets take the place between title and strip.
static rect body_of(const app *a, const layout *l)
{
    int top = l->pane[PANE_TITLE].h + l->pane[PANE_TABS].h;
    int below = l->pane[PANE_STRIP].h + l->pane[PANE_FOOTER].h;
    return (rect){top, 0, a->rows - top - below, a->columns};
}

// A new size may have no place for the focused pane; where one pane is shown alone it is the memory.
static layout settle_focus(app *a)
{
    layout l = app_layout(a);
    const pane_id *panes = screen_row_of(a->screen)->panes;
    bool lost = l.kind == LAYOUT_FULL && !a->expanded && l.pane[a->focus].h == 0;
    bool bench = a->screen == SCREEN_BENCH;
    if (bench && l.kind == LAYOUT_SINGLE && a->shown != LAYOUT_SINGLE) {
        a->focus = PANE_VRAM;
    } else if (lost || (bench && l.kind == LAYOUT_FULL && a->shown == LAYOUT_SINGLE)) {
        a->focus = panes[0];
    }
    a->shown = l.kind;
    return app_layout(a);
}

static void settle_tables(app *a, const layout *l)
{
    bool of_table = a->overlay == OVERLAY_COLUMNS || a->overlay == OVERLAY_FILTER;
    if (of_table && pane_ops_of(a->focus)->table == NULL && a->focus != PANE_KNOBS &&
        l->kind >= LAYOUT_SINGLE) {
        a->overlay = OVERLAY_NONE; // an out-of-memory brought the Doctor meanwhile
    }
    for (int pane = 0; pane < PANE_FOCUS_COUNT; pane++) {
        const pane_ops *ops = pane_ops_of((pane_id)pane);
        if (l->pane[pane].h > 0) {
            act_settle_pane(a, (pane_id)pane);
        }
        if (ops->table != NULL && l->pane[pane].h > 0) {
            table_place place = pane_table_place(a, (pane_id)pane, l->pane[pane]);
            table_scroll(&a->table[pane], ops->table, pane_rows(a, (pane_id)pane), &place);
        }
    }
}

// Of the preset or the situation that is selected, where its words are shown.
static void settle_about(app *a, const layout *l)
{
    const hr_preset_entry *entry = NULL;
    if (a->overlay == OVERLAY_PRESETS || a->overlay == OVERLAY_NARROW) {
        entry = app_preset_entry(a, a->presets.selected);
    } else if (l->pane[PANE_SITUATIONS].h > 0) {
        entry = learn_situation(&a->learn);
    }
    if (entry != NULL) {
        app_read_about(a, entry->name);
    }
}

static void draw_panes(const canvas *screen, const app *a, const layout *l)
{
    for (int pane = 0; pane < PANE_FOCUS_COUNT; pane++) {
        if (l->pane[pane].h > 0) {
            canvas c = canvas_of(screen, l->pane[pane]);
            const pane_view v = pane_view_of(a, (pane_id)pane);
            v.ops->draw(&c, &v);
        }
    }
    if (l->pane[PANE_KNOB_BAR].h > 0) {
        canvas bar = canvas_of(screen, l->pane[PANE_KNOB_BAR]);
        bench_knob_bar(&bar, &a->feed);
    }
}

static void draw_body(const canvas *screen, const app *a, const layout *l)
{
    canvas body = canvas_of(screen, body_of(a, l));
    switch ((int)a->overlay) { // the others stand in the strip
    case OVERLAY_HELP:
    case OVERLAY_FIND:
        screen_help(&body, a);
        return;
    case OVERLAY_PRESETS:
    case OVERLAY_NARROW:
        screen_presets(&body, a);
        return;
    case OVERLAY_COLUMNS:
        screen_columns(&body, a);
        return;
    default:
        break;
    }
    if (l->kind == LAYOUT_METER) {
        screen_meter(screen, a, l);
    } else {
        draw_panes(screen, a, l);
    }
    if (a->overlay == OVERLAY_CONSOLE) {
        screen_console(&body, a);
    }
    if (a->overlay == OVERLAY_CARD) {
        screen_card(&body, &a->feed);
    }
}

static void draw_frame(const canvas *screen, const app *a, const layout *l)
{
    canvas title = canvas_of(screen, l->pane[PANE_TITLE]), tabs = canvas_of(screen, l->pane[PANE_TABS]);
    canvas foot = canvas_of(screen, l->pane[PANE_FOOTER]);
    frame_title(&title, &a->feed);
    frame_tabs(&tabs, a);
    frame_footer(&foot, a);
    frame_strip(screen, l->pane[PANE_STRIP], a);
}

void app_draw(app *a)
{
    paint_size(&a->rows, &a->columns);
    app_follow_lesson(a);
    layout l = settle_focus(a);
    canvas screen = {
        .theme = &a->looks.theme, .glyphs = &a->looks.glyphs, .area = {0, 0, a->rows, a->columns}};
    settle_tables(a, &l);
    settle_about(a, &l);
    if (a->overlay == OVERLAY_HELP || a->overlay == OVERLAY_FIND) {
        help_settle(a, body_of(a, &l));
    }
    paint_begin();
    if (l.kind == LAYOUT_LINE) {
        screen_line(&screen, a);
    } else {
        draw_body(&screen, a, &l);
        draw_frame(&screen, a, &l);
    }
    paint_end();
}
