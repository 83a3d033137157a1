// SPDX-License-Identifier: Apache-2.0
// The focused table: filter, order, columns, marks.
#include <stdio.h>
#include <string.h>

#include "app/tui/shell/act.h"
#include "app/tui/shell/panes.h"

static const table_source *source_of(const app *a)
{
    return pane_ops_of(a->focus)->table;
}

static int pane_width(const app *a)
{
    return app_layout(a).pane[a->focus].w;
}

// Where knobs are listed they are looked for by their keys.
static bool filters_knobs(const app *a)
{
    return a->focus == PANE_KNOBS || app_layout(a).kind < LAYOUT_SINGLE;
}

// "/" never leaves what is typed after it to act as commands: where nothing can be filtered, the first table of the
// screen gets the focus.
static void focus_rows(app *a)
{
    layout l = app_layout(a);
    layout_wish wish = app_wish(a);
    const pane_id *pane = screen_row_of(a->screen)->panes;
    if (filters_knobs(a) || source_of(a) != NULL) {
        return;
    }
    while (*pane != PANE_COUNT && (pane_ops_of(*pane)->table == NULL || !layout_can_show(&l, &wish, *pane))) {
        pane++;
    }
    a->focus = *pane == PANE_COUNT ? PANE_KNOBS : *pane;
}

void act_filter(app *a, int unused)
{
    (void)unused;
    if (a->overlay == OVERLAY_HELP) {
        prompt_begin(&a->prompt, a->help.filter);
        a->overlay = OVERLAY_FIND;
        return;
    }
    if (a->overlay == OVERLAY_PRESETS) {
        prompt_begin(&a->prompt, a->presets.filter);
        a->overlay = OVERLAY_NARROW;
        return;
    }
    focus_rows(a);
    prompt_begin(&a->prompt, filters_knobs(a) ? "" : a->table[a->focus].filter);
    a->overlay = OVERLAY_FILTER;
}

void act_filter_with(app *a, const char *text)
{
    focus_rows(a);
    prompt_begin(&a->prompt, text);
    act_filter_typed(a);
}

static void take_typed(const app *a, char filter[TABLE_FILTER_MAX])
{
    snprintf(filter, TABLE_FILTER_MAX, "%.*s", TABLE_FILTER_MAX - 1, a->prompt.text);
}

void act_find_typed(app *a)
{
    take_typed(a, a->help.filter);
    a->help.top = 0;
}

void act_narrow_typed(app *a)
{
    take_typed(a, a->presets.filter);
    a->presets.selected = a->presets.top = 0;
}

static bool knob_matches(const app *a, size_t place)
{
    size_t count;
    const char *key = hr_knob_rows(&count)[knob_edit_panel(&count)[place]].key;
    return strcasestr(key, a->knob_looked_for) != NULL;
}

// The nearest knob that matches, from `from` on in the direction of `by`; the selected one stays where none does.
static void find_knob(app *a, int64_t from, int by)
{
    size_t count;
    knob_edit_panel(&count);
    for (int64_t at = from; at >= 0 && at < (int64_t)count; at += by) {
        if (knob_matches(a, (size_t)at)) {
            act_select_knob(a, (int)(at - (int64_t)a->feed.knob));
            return;
        }
    }
}

void act_filter_typed(app *a)
{
    if (filters_knobs(a)) {
        take_typed(a, a->knob_looked_for);
        if (a->prompt.length > 0 && !knob_matches(a, a->feed.knob)) {
            find_knob(a, 0, 1);
        }
        return;
    }
    table_set_filter(&a->table[a->focus], a->prompt.text);
}

void act_filter_move(app *a, int rows)
{
    if (filters_knobs(a)) {
        find_knob(a, (int64_t)a->feed.knob + rows, rows < 0 ? -1 : 1);
    } else {
        table_move(&a->table[a->focus], source_of(a), pane_rows(a, a->focus), rows);
    }
}

const char *act_looks_for(const app *a)
{
    return a->overlay == OVERLAY_HELP      ? a->help.filter
           : a->overlay == OVERLAY_PRESETS ? a->presets.filter
           : filters_knobs(a)              ? a->knob_looked_for
                                           : a->table[a->focus].filter;
}

void act_match(app *a, int direction)
{
    if (a->overlay == OVERLAY_NONE) {
        act_filter_move(a, direction);
    } else {
        act_move_rows(a, direction); // only what matches is listed
    }
}

void act_filter_counts(const app *a, size_t *shown, size_t *all)
{
    size_t knobs;
    *shown = 0;
    *all = 0;
    if (a->overlay == OVERLAY_NARROW) {
        for (int folder = 0; folder < PRESET_FOLDERS; folder++) {
            *all += a->presets.count[folder];
        }
        while (app_preset_entry(a, *shown) != NULL) {
            ++*shown;
        }
    } else if (filters_knobs(a)) {
        knob_edit_panel(&knobs);
        for (; *all < knobs; ++*all) {
            *shown += knob_matches(a, *all);
        }
    } else if (source_of(a) != NULL) {
        *shown = a->table[a->focus].count;
        *all = source_of(a)->count(pane_rows(a, a->focus));
    }
}

void act_sort(app *a, int unused)
{
    (void)unused;
    table_view *v = &a->table[a->focus];
    const table_source *s = source_of(a);
    table_sort_next(v, s, pane_rows(a, a->focus), pane_width(a));
    feed_say(&a->feed, MESSAGE_NOTE, "sorted by %s; O turns it round",
             v->sort == TABLE_OWN_ORDER ? "its own order"
                                        : table_heading(s, pane_rows(a, a->focus), (unsigned)v->sort));
}

void act_reverse(app *a, int unused)
{
    (void)unused;
    table_reverse(&a->table[a->focus]);
}

void act_columns(app *a, int unused)
{
    (void)unused;
    a->column = 0;
    a->overlay = a->overlay == OVERLAY_COLUMNS ? OVERLAY_NONE : OVERLAY_COLUMNS;
}

void act_toggle_column(app *a)
{
    table_toggle_column(&a->table[a->focus], source_of(a), (unsigned)a->column);
}

void act_follow(app *a, int unused)
{
    (void)unused;
    table_view *v = &a->table[a->focus];
    v->follows = !v->follows;
    table_move(v, source_of(a), pane_rows(a, a->focus), 0); // notes the row
    feed_say(&a->feed, MESSAGE_NOTE,
             v->follows ? "the cursor stays with this row wherever it goes; f lets go"
                        : "the cursor stays in its place");
}

void act_mark(app *a, int unused)
{
    (void)unused;
    act_settle_pane(a, a->focus);
    const pane_view view = pane_view_of(a, a->focus);
    table_view *v = &a->table[a->focus];
    const unsigned marks = v->marks;
    if (view.ops->mark != NULL) {
        const pane_request r = view.ops->mark(&view, pane_own(a, a->focus));
        (void)act_for_pane(a, &r);
    } else if (table_selected(v) == SIZE_MAX) {
        feed_say(&a->feed, MESSAGE_NOTE, "there is no row to mark");
    } else {
        table_mark(v, source_of(a), pane_rows(a, a->focus));
        feed_say(&a->feed, MESSAGE_NOTE,
                 v->marks < marks ? "the mark is gone" : "marked: t takes the mark away");
    }
}
