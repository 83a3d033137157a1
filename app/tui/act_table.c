// SPDX-License-Identifier: Apache-2.0
// The focused table: filter, order, columns, marks.
#include <stdio.h>

#include "app/tui/act.h"
#include "app/tui/pane.h"

static const table_source *source_of(const app *a)
{
    return pane_ops_of(a->focus)->table;
}

static int pane_width(const app *a)
{
    return app_layout(a).pane[a->focus].w;
}

void act_filter(app *a, int unused)
{
    (void)unused;
    bool finds = a->overlay == OVERLAY_HELP;
    prompt_begin(&a->prompt, finds ? a->help_filter : a->table[a->focus].filter);
    a->overlay = finds ? OVERLAY_FIND : OVERLAY_FILTER;
}

void act_find_typed(app *a)
{
    snprintf(a->help_filter, sizeof a->help_filter, "%.*s", (int)sizeof a->help_filter - 1, a->prompt.text);
    a->help_top = 0;
}

void act_filter_typed(app *a)
{
    table_set_filter(&a->table[a->focus], a->prompt.text);
}

void act_sort(app *a, int unused)
{
    (void)unused;
    table_view *v = &a->table[a->focus];
    const table_source *s = source_of(a);
    table_sort_next(v, s, pane_width(a));
    app_say(a, MESSAGE_NOTE, "sorted by %s; O turns it round",
            v->sort == TABLE_OWN_ORDER ? "its own order" : s->columns[v->sort].term);
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
    table_move(v, source_of(a), a, 0); // notes the row
    app_say(a, MESSAGE_NOTE,
            v->follows ? "the cursor stays with this row wherever it goes; f lets go"
                       : "the cursor stays in its place");
}

void act_mark(app *a, int unused)
{
    (void)unused;
    const pane_ops *ops = pane_ops_of(a->focus);
    if (ops->mark != NULL) {
        ops->mark(a);
    } else {
        table_mark(&a->table[a->focus], source_of(a), a);
    }
}
