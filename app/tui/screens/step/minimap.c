// SPDX-License-Identifier: Apache-2.0
// The whole step and the whole run in a few rows, with what the graph above shows of them.
#include <inttypes.h>
#include <stdio.h>

#include "app/tui/screens/step/panes.h"

static int map_columns(int width)
{
    int columns = width - TIMELINE_AXIS - 1;
    return columns < 0 ? 0 : columns < TIMELINE_COLUMNS_MAX ? columns : TIMELINE_COLUMNS_MAX;
}

// ---- windows --------------------------------------------------------------------------------------------------

// Columns [*left, *right] of a map of `columns` that the window covers.
static void step_window_of(const step_view *step, int columns, int *left, int *right)
{
    const hr_step_plan *p = feed_step_plan(step->feed);
    step_window whole = {0, p == NULL ? 0 : (uint32_t)p->instr_count, (uint32_t)columns};
    const step_window *w = &step->window;
    *left = (int)step_column_at(&whole, w->first);
    *right = (int)step_column_at(&whole, w->first + (w->count > 0 ? w->count - 1 : 0));
}

unsigned minimap_level(const feed *f, int columns)
{
    const history *h = &feed_run_state(f)->history;
    unsigned level = 0;
    while (level + 1 < HISTORY_LEVELS &&
           (h->level[level].count > (uint32_t)columns || h->level[level].count >= HISTORY_LENGTH)) {
        level++;
    }
    return level;
}

// Columns of the run's map that the graph covers.
static void run_window(const step_view *step, unsigned level, int columns, int *left, int *right)
{
    unsigned shown = (unsigned)(-step->zoom - 1);
    uint64_t ns = history_width_ns(shown) * step->window.columns;
    uint64_t covered = ns / history_width_ns(level) + 1;
    *right = columns - 1;
    *left = covered < (uint64_t)columns ? columns - (int)covered : 0;
}

// ---- bars -----------------------------------------------------------------------------------------------------

static void draw_bar(const canvas *c, int x, double share, role r)
{
    int rows = c->area.h, eighths = (int)((share < 1 ? share : 1) * rows * 8 + 0.5);
    eighths = share > 0 && eighths == 0 ? 1 : eighths;
    for (int row = 0; row < rows; row++) {
        int here = eighths - 8 * row;
        paint_cell(c, rows - 1 - row, x, theme_role(c->theme, r),
                   glyphs_bar(c->glyphs, here < 0   ? 0
                                         : here < 8 ? here
                                                    : 8));
    }
}

static void draw_step(const canvas *c, const step_view *step)
{
    const hr_step_plan *p = feed_step_plan(step->feed);
    step_window whole = {0, (uint32_t)p->instr_count, (uint32_t)c->area.w};
    double full = (double)(p->limit_bytes > step->highest ? p->limit_bytes : step->highest);
    for (int x = 0; x < c->area.w; x++) {
        step_column column = step_column_of(step, &whole, (uint32_t)x);
        bool reached = step_is_reached(p, column.first);
        role r = !reached                                                                       ? ROLE_DIM
                 : column.first <= p->peak_instr && p->peak_instr - column.first < column.count ? ROLE_WARN
                                                                                                : ROLE_LINE;
        draw_bar(c, x, full > 0 ? (double)step->height[column.highest] / full : 0, r);
    }
}

static wchar_t mark_of(uint8_t marks)
{
    return marks & MARK_OOM ? L'!' : marks & MARK_KNOB ? L'▲' : marks & MARK_BUILD ? L'b' : L'\0';
}

static void draw_run(const canvas *c, const feed *f, unsigned level)
{
    const run_state *m = feed_run_state(f);
    for (int x = 0; x < c->area.w; x++) {
        const history_bucket *bucket = history_at(&m->history, level, (uint32_t)(c->area.w - 1 - x));
        if (bucket == NULL) {
            continue;
        }
        wchar_t mark = mark_of(bucket->marks);
        draw_bar(c, x, m->limit_bytes > 0 ? (double)bucket->max_bytes / (double)m->limit_bytes : 0,
                 ROLE_LINE);
        if (mark != L'\0') {
            paint_cell(c, c->area.h - 1, x, theme_role(c->theme, mark == L'!' ? ROLE_BAD : ROLE_WARN),
                       glyphs_fold(c->glyphs, mark));
        }
    }
}

// "[────▲───]": what is in sight, and the cursor.
static void draw_window(const canvas *c, int left, int right, int cursor)
{
    for (int x = left; x <= right; x++) {
        wchar_t glyph = x == left ? L'[' : x == right ? L']' : c->glyphs->rule;
        paint_cell(c, 0, x, theme_role(c->theme, ROLE_FOCUS), glyph);
    }
    if (left == right || (cursor > left && cursor < right)) { // the ends say more than the cursor on them
        paint_cell(c, 0, left == right ? left : cursor, theme_role(c->theme, ROLE_FOCUS),
                   glyphs_fold(c->glyphs, L'▲'));
    }
}

// ---- the pane -------------------------------------------------------------------------------------------------

static void draw_maps(const canvas *c, const step_view *step)
{
    int columns = map_columns(c->area.w), rows = c->area.h - 2, left, right;
    int run_rows = rows / 2, step_rows = rows - run_rows;
    canvas step_map = canvas_sub(c, 1, TIMELINE_AXIS, step_rows, columns);
    canvas brackets = canvas_sub(c, 1 + step_rows, TIMELINE_AXIS, 1, columns);
    canvas run_map = canvas_sub(c, 2 + step_rows, TIMELINE_AXIS, run_rows, columns);
    unsigned level = minimap_level(step->feed, columns);
    bool planned = feed_step_plan(step->feed) != NULL && feed_step_plan(step->feed)->instr_count > 0;
    paint_text(c, 1, 0, TIMELINE_AXIS - 1, step_shows_run(step) ? ROLE_DIM : ROLE_FOCUS, "step p");
    paint_text(c, 2 + step_rows, 0, TIMELINE_AXIS - 1, step_shows_run(step) ? ROLE_FOCUS : ROLE_DIM, "run");
    draw_run(&run_map, step->feed, level);
    if (planned) {
        draw_step(&step_map, step);
    }
    if (step_shows_run(step)) {
        run_window(step, level, columns, &left, &right);
        draw_window(&brackets, left, right, left);
    } else if (planned) {
        step_window whole = {0, (uint32_t)feed_step_plan(step->feed)->instr_count, (uint32_t)columns};
        step_window_of(step, columns, &left, &right);
        draw_window(&brackets, left, right, (int)step_column_at(&whole, step->cursor));
    }
}

static void draw(const canvas *c, const pane_view *v)
{
    const step_view *step = v->rows;
    char right[96], window[FORMAT_MAX];
    int columns = map_columns(c->area.w);
    double seconds = (double)history_width_ns(minimap_level(step->feed, columns)) * 1e-9;
    snprintf(right, sizeof right, "run: %s a column · + - zoom; beyond the step lies the run",
             format_window(seconds, window));
    paint_rule(c, v->focused, pane_title(PANE_MINIMAP), right);
    if (columns > 0 && c->area.h >= 4) {
        draw_maps(c, step);
    }
}

static pane_request settle(const pane_view *v, void *own)
{
    step_view *step = own;
    step_place_window(step, graph_plot_width(v->place.w)); // the graph is, or would be, as wide
    return (pane_request){.kind = PANE_DONE};
}

// A column of the map: a part of the whole step, however near the graph is.
static pane_request move(const pane_view *v, void *own, int rows, int columns)
{
    step_view *step = own;
    const hr_step_plan *p = feed_step_plan(step->feed);
    int width = map_columns(v->place.w);
    if (p != NULL && width > 0 && rows == 0) {
        int64_t part = (int64_t)(p->instr_count / (size_t)width);
        part = part > INT32_MAX / 2 ? INT32_MAX / 2 : part > 0 ? part : 1;
        step_move(step, columns * (int)part);
    } else {
        step_move(step, rows);
    }
    return (pane_request){.kind = PANE_DONE};
}

static pane_request click(const pane_view *v, void *own, int y, int x)
{
    step_view *step = own;
    const hr_step_plan *p = feed_step_plan(step->feed);
    int columns = map_columns(v->place.w), column = x - TIMELINE_AXIS;
    if (p != NULL && p->instr_count > 0 && y > 0 && column >= 0 && column < columns) {
        step_window whole = {0, (uint32_t)p->instr_count, (uint32_t)columns};
        step_go(step, step_column_of(step, &whole, (uint32_t)column).highest);
    }
    return (pane_request){.kind = PANE_DONE};
}

static void say(const pane_view *v, char text[PANE_TEXT_MAX])
{
    const step_view *step = v->rows;
    const hr_step_plan *p = feed_step_plan(step->feed);
    const step_window *w = &step->window;
    if (p == NULL || p->instr_count == 0) {
        snprintf(text, PANE_TEXT_MAX, "%s", step_nothing(step->feed));
    } else {
        snprintf(text, PANE_TEXT_MAX,
                 "Instructions %" PRIu32 " to %" PRIu32 " of %zu are in sight, the cursor is at %" PRIu32
                 "; the run has taken %" PRIu64 " steps.",
                 w->first, w->first + (w->count > 0 ? w->count - 1 : 0), p->instr_count, step->cursor,
                 feed_run_state(step->feed)->steps);
    }
}

const pane_ops pane_minimap = {.draw = draw,
                               .settle = settle,
                               .move = move,
                               .mark = step_mark,
                               .zoom = step_zoom,
                               .say = say,
                               .click = click};
