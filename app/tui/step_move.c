// SPDX-License-Identifier: Apache-2.0
// The cursor and the window around it.
#include <inttypes.h>

#include "app/tui/app.h"

static uint32_t instr_count(const feed *f)
{
    const hr_step_plan *p = feed_step_plan(f);
    return p == NULL ? 0 : (uint32_t)p->instr_count;
}

// ---- columns --------------------------------------------------------------------------------------------------

step_column step_column_of(const step_view *v, const step_window *w, uint32_t column)
{
    uint64_t columns = w->columns > 0 ? w->columns : 1;
    uint32_t first = w->first + (uint32_t)((uint64_t)column * w->count / columns);
    uint32_t end = w->first + (uint32_t)(((uint64_t)column + 1) * w->count / columns);
    step_column c = {first, end > first ? end - first : 1, first};
    for (uint32_t i = first; i < first + c.count; i++) {
        c.highest = v->height[i] > v->height[c.highest] ? i : c.highest;
    }
    return c;
}

// The first column that shows it.
uint32_t step_column_at(const step_window *w, uint32_t instr)
{
    if (w->count == 0 || instr <= w->first) {
        return 0;
    }
    uint64_t offset = instr - w->first, columns = w->columns;
    offset = offset < w->count ? offset : w->count - 1;
    uint64_t column = (offset * columns + w->count - 1) / w->count;
    if (w->count > columns) { // several a column: the one whose range holds it
        column = ((offset + 1) * columns - 1) / w->count;
    }
    return (uint32_t)(column < columns ? column : columns - 1);
}

// ---- window ---------------------------------------------------------------------------------------------------

// One instruction a column is as near as it goes.
static uint32_t shown_at(uint32_t count, int zoom, uint32_t columns)
{
    uint32_t part = zoom > 0 ? zoom < 32 ? count >> zoom : 0 : count;
    uint32_t least = count < columns ? count : columns;
    return part > least ? part : least;
}

static int nearest_zoom(const app *a)
{
    int zoom = 0;
    uint32_t count = instr_count(&a->feed), columns = a->step.window.columns;
    while (zoom < 32 && shown_at(count, zoom, columns) > columns) {
        zoom++;
    }
    return zoom;
}

void step_place_window(app *a, int columns)
{
    step_window *w = &a->step.window;
    uint32_t count = instr_count(&a->feed), cursor = a->step.cursor;
    w->columns = columns > 0 ? (uint32_t)columns : 1;
    w->count = shown_at(count, a->step.zoom, w->columns);
    uint32_t last = count - w->count;
    w->first = w->first < last ? w->first : last;
    if (count > 0) {
        w->first = cursor < w->first ? cursor : w->first;
        w->first = cursor >= w->first + w->count ? cursor - w->count + 1 : w->first;
    }
}

bool step_shows_run(const app *a)
{
    return a->step.zoom < 0;
}

void step_zoom(app *a, int direction)
{
    step_view *v = &a->step;
    step_window *w = &v->window;
    int zoom = v->zoom - direction, nearest = nearest_zoom(a);
    uint32_t before = w->count, offset = v->cursor - w->first;
    if (zoom > nearest || zoom < STEP_ZOOM_RUN) {
        feed_say(&a->feed, MESSAGE_NOTE, zoom < 0 ? "this is the longest view" : "this is the finest view");
        return;
    }
    v->zoom = zoom;
    w->count = shown_at(instr_count(&a->feed), zoom, w->columns);
    if (before > 0) { // the cursor stays in its column
        uint32_t ahead = (uint32_t)((uint64_t)offset * w->count / before);
        w->first = v->cursor > ahead ? v->cursor - ahead : 0;
    }
    step_place_window(a, (int)w->columns);
}

// ---- cursor ---------------------------------------------------------------------------------------------------

void step_go(app *a, uint32_t instr)
{
    uint32_t count = instr_count(&a->feed);
    a->step.cursor = count == 0 ? 0 : instr < count ? instr : count - 1;
    step_place_window(a, (int)a->step.window.columns);
}

void step_move(app *a, int instrs)
{
    int64_t at = (int64_t)a->step.cursor + instrs;
    step_go(a, at < 0 ? 0 : at < HR_NO_ID ? (uint32_t)at : HR_NO_ID);
}

void step_move_columns(app *a, int columns)
{
    const step_view *v = &a->step;
    const step_window *w = &v->window;
    if (w->count == 0) {
        return;
    }
    if (w->count <= w->columns) {
        step_move(a, columns);
        return;
    }
    int64_t column = (int64_t)step_column_at(w, v->cursor) + columns;
    if (column < 0 || column >= (int64_t)w->columns) { // over the edge: the window moves along
        int64_t away = columns * (int64_t)w->count / (int64_t)w->columns;
        step_move(a, (int)(away > INT32_MAX ? INT32_MAX : away < -INT32_MAX ? -INT32_MAX : away));
        return;
    }
    step_go(a, step_column_of(v, w, (uint32_t)column).highest);
}

void step_mark(app *a)
{
    step_view *v = &a->step;
    v->marked = instr_count(&a->feed) == 0 || v->marked == v->cursor ? HR_NO_ID : v->cursor;
    if (instr_count(&a->feed) == 0) {
        feed_say(&a->feed, MESSAGE_NOTE, "there is no step to mark yet");
    } else if (v->marked == HR_NO_ID) {
        feed_say(&a->feed, MESSAGE_NOTE, "the mark is gone");
    } else {
        feed_say(&a->feed, MESSAGE_NOTE, "instruction %" PRIu32 " is marked: t takes the mark away",
                 v->marked);
    }
}
