// SPDX-License-Identifier: Apache-2.0
// The counters of the memory, one unit for all, and what changed since the pinned baseline.
#include <math.h>
#include <stdio.h>

#include "app/tui/feed/measures.h"
#include "app/tui/say.h"
#include "app/tui/widgets/widgets.h"

enum { DELTA_WIDTH = 9 };

role counter_role(const feed *f, counter_id id)
{
    bool says_nothing =
        id == COUNTER_FRAGMENTATION && f->has_report && measures_little_is_free(&f->report.memory);
    return says_nothing ? ROLE_DIM : ROLE_TEXT;
}

static void draw_counter(const canvas *c, int y, const app *a, counter_id id)
{
    char text[FORMAT_MAX];
    byte_unit unit = feed_unit(&a->feed);
    double value = app_counter(a, id), change = value - a->bench.baseline.counter[id];
    bool selected = a->focus == PANE_COUNTERS && a->bench.counter == (size_t)id;
    int width = c->area.w - (a->bench.baseline.pinned ? DELTA_WIDTH : 0);
    role r = selected ? ROLE_SELECT : counter_role(&a->feed, id);
    if (selected) {
        paint_blank(c, y, 0, width, theme_role(c->theme, r));
    }
    if (id == COUNTER_FRAGMENTATION || isnan(value)) {
        format_percent(value, text);
    } else {
        format_bytes((uint64_t)value, unit, text);
    }
    if (id == COUNTER_WASTE) { // its mark in the graphs
        paint_cell(c, y, 0, theme_letter(c->theme, BAND_UNKNOWN), L'%');
    }
    int room = width - 2 - glyphs_width(c->glyphs, text); // one blank before, one after
    paint_text(c, y, 1, room, selected ? ROLE_SELECT : ROLE_DIM, app_counter_label(id));
    paint_right(c, y, 0, width, r, text);
    if (!a->bench.baseline.pinned) {
        return;
    }
    if (id == COUNTER_FRAGMENTATION) {
        format_delta(100 * change, "%", text);
    } else {
        format_delta_bytes(change, unit, text);
    }
    paint_right(c, y, width, DELTA_WIDTH, ROLE_BASELINE, text);
}

static void draw(const canvas *c, const app *a)
{
    char right[64];
    bool planned = a->feed.has_report && a->feed.report.device.simulated;
    // Knobs that have not done a step, or whose step was refused: what stands here was of others.
    bool is_of_last = feed_run_state(&a->feed)->state == HR_ENGINE_OOM || feed_waiting_plan(&a->feed) != NULL;
    const char *source = is_of_last ? "last step" : planned ? "planned" : a->feed.unknown ? "" : "measured";
    if (a->bench.baseline.pinned) {
        snprintf(right, sizeof right, "%s %s  Δ pin", feed_unit(&a->feed).name, c->area.w < 40 ? "" : source);
    } else {
        snprintf(right, sizeof right, "%s %s", feed_unit(&a->feed).name, source);
    }
    paint_rule(c, a->focus == PANE_COUNTERS, pane_title(PANE_COUNTERS), right);
    int rows = c->area.h - 1;
    int top = (int)a->bench.counter >= rows ? (int)a->bench.counter - rows + 1 : 0;
    for (int y = 0; y < rows && top + y < COUNTER_COUNT; y++) {
        draw_counter(c, 1 + y, a, (counter_id)(top + y));
    }
}

static bool move(app *a, int rows, int columns)
{
    int64_t to = (int64_t)a->bench.counter + rows;
    a->bench.counter = to < 0 ? 0 : to < COUNTER_COUNT ? (size_t)to : COUNTER_COUNT - 1;
    return columns == 0;
}

static const char *term(const app *a)
{
    return app_counter_term((counter_id)a->bench.counter);
}

const pane_ops pane_counters = {
    .by_app.draw = draw, .by_app.move = move, .by_app.say = say_counter, .by_app.term = term};
