// SPDX-License-Identifier: Apache-2.0
// The whole step and the whole run in a few rows, with what the graph above shows of them.
#include <inttypes.h>
#include <stdio.h>

#include "app/tui/screens/timeline.h"

static int map_columns(int width)
{
    int columns = width - TIMELINE_AXIS - 1;
    return columns < 0 ? 0 : columns < TIMELINE_COLUMNS_MAX ? columns : TIMELINE_COLUMNS_MAX;
}

// ---- windows --------------------------------------------------------------------------------------------------

// Columns [*left, *right] of a map of `columns` that the window covers.
static void step_window_of(const app *a, int columns, int *left, int *right)
{
    const hr_step_plan *p = feed_step_plan(&a->feed);
    step_window whole = {0, p == NULL ? 0 : (uint32_t)p->instr_count, (uint32_t)columns};
    const step_window *w = &a->step.window;
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
static void run_window(const app *a, unsigned level, int columns, int *left, int *right)
{
    unsigned shown = (unsigned)(-a->step.zoom - 1);
    uint64_t ns = history_width_ns(shown) * a->step.window.columns;
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

static void draw_step(const canvas *c, const app *a)
{
    const hr_step_plan *p = feed_step_plan(&a->feed);
    step_window whole = {0, (uint32_t)p->instr_count, (uint32_t)c->area.w};
    double full = (double)(p->limit_bytes > a->step.highest ? p->limit_bytes : a->step.highest);
    for (int x = 0; x < c->area.w; x++) {
        step_column column = step_column_of(&a->step, &whole, (uint32_t)x);
        bool reached = step_is_reached(p, column.first);
        role r = !reached                                                                       ? ROLE_DIM
                 : column.first <= p->peak_instr && p->peak_instr - column.first < column.count ? ROLE_WARN
                                                                                                : ROLE_LINE;
        draw_bar(c, x, full > 0 ? (double)a->step.height[column.highest] / full : 0, r);
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

static void draw_maps(const canvas *c, const app *a)
{
    int columns = map_columns(c->area.w), rows = c->area.h - 2, left, right;
    int run_rows = rows / 2, step_rows = rows - run_rows;
    canvas step_map = canvas_sub(c, 1, TIMELINE_AXIS, step_rows, columns);
    canvas brackets = canvas_sub(c, 1 + step_rows, TIMELINE_AXIS, 1, columns);
    canvas run_map = canvas_sub(c, 2 + step_rows, TIMELINE_AXIS, run_rows, columns);
    unsigned level = minimap_level(&a->feed, columns);
    bool planned = feed_step_plan(&a->feed) != NULL && feed_step_plan(&a->feed)->instr_count > 0;
    paint_text(c, 1, 0, TIMELINE_AXIS - 1, step_shows_run(a) ? ROLE_DIM : ROLE_FOCUS, "step p");
    paint_text(c, 2 + step_rows, 0, TIMELINE_AXIS - 1, step_shows_run(a) ? ROLE_FOCUS : ROLE_DIM, "run");
    draw_run(&run_map, &a->feed, level);
    if (planned) {
        draw_step(&step_map, a);
    }
    if (step_shows_run(a)) {
        run_window(a, level, columns, &left, &right);
        draw_window(&brackets, left, right, left);
    } else if (planned) {
        step_window whole = {0, (uint32_t)feed_step_plan(&a->feed)->instr_count, (uint32_t)columns};
        step_window_of(a, columns, &left, &right);
        draw_window(&brackets, left, right, (int)step_column_at(&whole, a->step.cursor));
    }
}

static void draw(const canvas *c, const app *a)
{
    char right[96], window[FORMAT_MAX];
    int columns = map_columns(c->area.w);
    double seconds = (double)history_width_ns(minimap_level(&a->feed, columns)) * 1e-9;
    snprintf(right, sizeof right, "run: %s a column · + - zoom; beyond the step lies the run",
             format_window(seconds, window));
    paint_rule(c, a->focus == PANE_MINIMAP, pane_title(PANE_MINIMAP), right);
    if (columns > 0 && c->area.h >= 4) {
        draw_maps(c, a);
    }
}

static void settle(app *a)
{
    if (app_layout(a).pane[PANE_STACK].h == 0) {
        step_place_window(a, graph_plot_width(a->columns)); // as the graph would have it alone
    }
}

// A column of the map: a part of the whole step, however near the graph is.
static bool move(app *a, int rows, int columns)
{
    const hr_step_plan *p = feed_step_plan(&a->feed);
    int width = map_columns(app_layout(a).pane[PANE_MINIMAP].w);
    if (p != NULL && width > 0 && rows == 0) {
        int64_t part = (int64_t)(p->instr_count / (size_t)width);
        part = part > INT32_MAX / 2 ? INT32_MAX / 2 : part > 0 ? part : 1;
        step_move(a, columns * (int)part);
    } else {
        step_move(a, rows);
    }
    return true;
}

static void click(app *a, int y, int x)
{
    const hr_step_plan *p = feed_step_plan(&a->feed);
    int columns = map_columns(app_layout(a).pane[PANE_MINIMAP].w), column = x - TIMELINE_AXIS;
    if (p != NULL && p->instr_count > 0 && y > 0 && column >= 0 && column < columns) {
        step_window whole = {0, (uint32_t)p->instr_count, (uint32_t)columns};
        step_go(a, step_column_of(&a->step, &whole, (uint32_t)column).highest);
    }
}

static void say(app *a)
{
    const hr_step_plan *p = feed_step_plan(&a->feed);
    const step_window *w = &a->step.window;
    if (p == NULL || p->instr_count == 0) {
        step_say_nothing(&a->feed);
    } else {
        feed_say(&a->feed, MESSAGE_NOTE,
                 "Instructions %" PRIu32 " to %" PRIu32 " of %zu are in sight, the cursor is at %" PRIu32
                 "; the run has taken %" PRIu64 " steps.",
                 w->first, w->first + (w->count > 0 ? w->count - 1 : 0), p->instr_count, a->step.cursor,
                 feed_run_state(&a->feed)->steps);
    }
}

const pane_ops pane_minimap = {.by_app.draw = draw,
                               .by_app.settle = settle,
                               .by_app.move = move,
                               .by_app.mark = step_mark,
                               .by_app.zoom = step_zoom,
                               .by_app.say = say,
                               .by_app.click = click};
