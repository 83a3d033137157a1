// SPDX-License-Identifier: Apache-2.0
// The cursor and the window around it.
#include <inttypes.h>

#include "app/tui/screens/step/step.h"

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

static int nearest_zoom(const step_view *step)
{
    int zoom = 0;
    uint32_t count = instr_count(step->feed), columns = step->window.columns;
    while (zoom < 32 && shown_at(count, zoom, columns) > columns) {
        zoom++;
    }
    return zoom;
}

void step_place_window(step_view *step, int columns)
{
    step_window *w = &step->window;
    uint32_t count = instr_count(step->feed), cursor = step->cursor;
    w->columns = columns > 0 ? (uint32_t)columns : 1;
    w->count = shown_at(count, step->zoom, w->columns);
    uint32_t last = count - w->count;
    w->first = w->first < last ? w->first : last;
    if (count > 0) {
        w->first = cursor < w->first ? cursor : w->first;
        w->first = cursor >= w->first + w->count ? cursor - w->count + 1 : w->first;
    }
}

bool step_shows_run(const step_view *step)
{
    return step->zoom < 0;
}

pane_request step_zoom(const pane_view *v, void *own, int direction)
{
    step_view *step = own;
    (void)v;
    step_window *w = &step->window;
    int zoom = step->zoom - direction, nearest = nearest_zoom(step);
    uint32_t before = w->count, offset = step->cursor - w->first;
    if (zoom > nearest || zoom < STEP_ZOOM_RUN) {
        return pane_says("%s", zoom < 0 ? "this is the longest view" : "this is the finest view");
    }
    step->zoom = zoom;
    w->count = shown_at(instr_count(step->feed), zoom, w->columns);
    if (before > 0) { // the cursor stays in its column
        uint32_t ahead = (uint32_t)((uint64_t)offset * w->count / before);
        w->first = step->cursor > ahead ? step->cursor - ahead : 0;
    }
    step_place_window(step, (int)w->columns);
    return (pane_request){.kind = PANE_DONE};
}

// ---- cursor ---------------------------------------------------------------------------------------------------

void step_go(step_view *step, uint32_t instr)
{
    uint32_t count = instr_count(step->feed);
    step->cursor = count == 0 ? 0 : instr < count ? instr : count - 1;
    step_place_window(step, (int)step->window.columns);
}

void step_move(step_view *step, int instrs)
{
    int64_t at = (int64_t)step->cursor + instrs;
    step_go(step, at < 0 ? 0 : at < HR_NO_ID ? (uint32_t)at : HR_NO_ID);
}

void step_move_columns(step_view *step, int columns)
{
    const step_window *w = &step->window;
    if (w->count == 0) {
        return;
    }
    if (w->count <= w->columns) {
        step_move(step, columns);
        return;
    }
    int64_t column = (int64_t)step_column_at(w, step->cursor) + columns;
    if (column < 0 || column >= (int64_t)w->columns) { // over the edge: the window moves along
        int64_t away = columns * (int64_t)w->count / (int64_t)w->columns;
        step_move(step, (int)(away > INT32_MAX ? INT32_MAX : away < -INT32_MAX ? -INT32_MAX : away));
        return;
    }
    step_go(step, step_column_of(step, w, (uint32_t)column).highest);
}

pane_request step_mark(const pane_view *v, void *own)
{
    step_view *step = own;
    (void)v;
    step->marked = instr_count(step->feed) == 0 || step->marked == step->cursor ? HR_NO_ID : step->cursor;
    if (instr_count(step->feed) == 0) {
        return pane_says("there is no step to mark yet");
    }
    if (step->marked == HR_NO_ID) {
        return pane_says("the mark is gone");
    }
    return pane_says("instruction %" PRIu32 " is marked: t takes the mark away", step->marked);
}
