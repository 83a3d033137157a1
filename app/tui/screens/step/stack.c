// SPDX-License-Identifier: Apache-2.0
// Live bytes by category, one column per instruction or more, with cursor, mark, peak, refusal and phases.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/card.h"
#include "headroom/units.h"

#include "app/tui/screens/step/panes.h"

enum { INFO_ROWS = 2, INFO_MIN = 8, PLOT_MIN = 3, INFO_NARROW = 80 };

typedef struct parts {
    canvas axis, plot, legend, below, info;
} parts;

static parts parts_of(const canvas *c)
{
    int plot = graph_plot_width(c->area.w), info = c->area.h >= INFO_MIN ? INFO_ROWS : 0;
    info += info > 0 && c->area.w < INFO_NARROW; // a row more for the instruction
    int rows = c->area.h - 2 - info;
    return (parts){
        .axis = canvas_sub(c, 1, 0, rows, TIMELINE_AXIS),
        .plot = canvas_sub(c, 1, TIMELINE_AXIS, rows, plot),
        .legend = canvas_sub(c, 1, TIMELINE_AXIS + plot + 1, rows + 1, c->area.w - TIMELINE_AXIS - plot - 1),
        .below = canvas_sub(c, 1 + rows, TIMELINE_AXIS, 1, plot),
        .info = canvas_sub(c, 2 + rows, 0, info, c->area.w),
    };
}

static pane_request settle(const pane_view *v, void *own)
{
    step_view *step = own;
    step_place_window(step, graph_plot_width(v->place.w));
    return (pane_request){.kind = PANE_DONE};
}

// ---- the step -------------------------------------------------------------------------------------------------

typedef struct stack {
    graph_column column[TIMELINE_COLUMNS_MAX];
    uint64_t band_bytes[TIMELINE_COLUMNS_MAX][BAND_COUNT];
    uint32_t highest[TIMELINE_COLUMNS_MAX]; // instruction
    int count;
} stack;

// What is shown as the window stands; where the step was not reached there is nothing.
static void stack_columns(const step_view *step, int columns, stack *s)
{
    const hr_step_plan *p = feed_step_plan(step->feed);
    step_window w = step->window;
    w.columns = (uint32_t)columns; // as settled, but for a pane that has just changed its size
    s->count = columns;
    for (int x = 0; x < columns; x++) {
        step_column column = step_column_of(step, &w, (uint32_t)x);
        uint32_t last = column.first + column.count - 1;
        bool cut = !step_is_reached(p, last);
        s->highest[x] = cut && step_is_reached(p, column.first) ? column.first : column.highest;
        s->column[x] = (graph_column){0};
        if (step_is_reached(p, s->highest[x])) {
            const hr_step_plan_instr *i = &p->instrs[s->highest[x]];
            step_bands(i, s->band_bytes[x]);
            s->column[x] = (graph_column){.band_bytes = s->band_bytes[x], .pool_bytes = i->pool_bytes};
        }
    }
}

static void draw_phases(const canvas *c, const feed *f, const stack *s)
{
    const hr_step_plan *p = feed_step_plan(f);
    int last = -1;
    for (int x = 0; x < s->count; x++) {
        int phase = p->instrs[s->highest[x]].phase;
        if (phase != last) {
            last = phase;
            paint_blank(c, 0, x, c->area.w - x, theme_role(c->theme, ROLE_DIM));
            graph_phase(c, x, hr_phase_name((hr_phase)phase));
        }
    }
}

// Column of an instruction; −1 when it is out of sight.
static int column_of(const step_view *step, uint32_t instr, int columns)
{
    step_window w = step->window;
    w.columns = (uint32_t)columns;
    bool in_sight = instr != HR_NO_ID && instr >= w.first && instr - w.first < w.count;
    return in_sight ? (int)step_column_at(&w, instr) : -1;
}

static void draw_marker(const canvas *c, int x, role r, wchar_t glyph)
{
    if (x >= 0) {
        paint_cell(c, 0, x, theme_role(c->theme, r), glyphs_fold(c->glyphs, glyph));
    }
}

static int plot_row(const graph_scale *scale, uint64_t bytes, int rows)
{
    int row = (int)(fmin((double)bytes / scale->top_bytes, 1) * rows);
    return row < rows ? row : rows - 1;
}

// Whether a row of the plot is free of bands from column x on.
static bool is_free(const step_view *step, const stack *s, const graph_scale *scale, int rows, int row, int x,
                    int width)
{
    for (int i = x; i < x + width; i++) {
        if (i < 0 || i >= s->count ||
            (s->column[i].band_bytes != NULL && plot_row(scale, step->height[s->highest[i]], rows) >= row)) {
            return false;
        }
    }
    return true;
}

// A dot above the highest moment, and its name where the graph leaves room.
static void name_peak(const canvas *c, const step_view *step, const stack *s, const graph_scale *scale)
{
    const hr_step_plan *p = feed_step_plan(step->feed);
    int x = column_of(step, p->peak_instr, s->count), rows = c->area.h;
    if (x < 0) {
        return;
    }
    int row = plot_row(scale, p->peak_in_use_bytes, rows) + 1;
    row = row < rows ? row : rows - 1;
    paint_cell(c, rows - 1 - row, x, theme_role(c->theme, ROLE_WARN), glyphs_fold(c->glyphs, L'●'));
    const char *name = step_name(p, p->peak_instr);
    int width = glyphs_width(c->glyphs, name);
    if (is_free(step, s, scale, rows, row, x + 1, width + 2)) {
        paint_text(c, rows - 1 - row, x + 2, width, ROLE_WARN, name);
    } else if (is_free(step, s, scale, rows, row, x - width - 2, width + 2)) {
        paint_text(c, rows - 1 - row, x - width - 1, width, ROLE_WARN, name);
    }
}

// Where the graph ends because memory did.
static void draw_refusal(const canvas *c, const step_view *step, const stack *s)
{
    int x = column_of(step, feed_step_plan(step->feed)->refused_instr, s->count);
    if (x >= 0) {
        paint_cell(c, c->area.h - 1, x, theme_role(c->theme, ROLE_BAD), L'!');
    }
}

static void draw_cursor(const parts *at, const step_view *step, const stack *s, const graph_scale *scale)
{
    int x = column_of(step, step->cursor, s->count), rows = at->plot.area.h;
    for (int row = 0; row < rows && x >= 0; row++) {
        if (is_free(step, s, scale, rows, row, x, 1)) {
            paint_cell(&at->plot, rows - 1 - row, x, theme_role(at->plot.theme, ROLE_FOCUS),
                       at->plot.glyphs->separator);
        }
    }
    draw_marker(&at->below, column_of(step, step->marked, s->count), ROLE_BASELINE, L't');
    draw_marker(&at->below, x, ROLE_FOCUS, L'▲');
}

// ---- the instruction at the cursor ----------------------------------------------------------------------------

static void draw_moment(const canvas *c, const step_view *step, byte_unit unit)
{
    const hr_step_plan *p = feed_step_plan(step->feed);
    const hr_step_plan_instr *i = &p->instrs[step->cursor];
    char bytes[FORMAT_MAX], change[FORMAT_MAX], line[TABLE_CELL_MAX];
    bool reached = step_is_reached(p, step->cursor);
    format_bytes(reached ? i->in_use_bytes : i->requested_bytes, unit, bytes);
    step_delta(step_change_bytes(p, step->cursor), unit, change);
    int x = paint_format(c, 0, 0, c->area.w, reached ? ROLE_FOCUS : ROLE_DIM, "%" PRIu32 " %s %s%s %s p %s",
                         step->cursor, hr_phase_name((hr_phase)i->phase), reached ? "" : "would ask for ",
                         bytes, unit.name, change);
    const bool below = c->area.h > INFO_ROWS;
    canvas words = canvas_sub(c, below ? 1 : 0, below ? 0 : x + 2, 1, c->area.w - (below ? 0 : x + 2));
    paint_text(&words, 0, 0, words.area.w, step->cursor == p->refused_instr ? ROLE_BAD : ROLE_TEXT,
               step_short_line(p, step->cursor, line, sizeof line));
}

static int draw_cost(const canvas *c, const step_view *step, const hr_step_plan_instr *i)
{
    char flops[16], moved[HR_BYTES_TEXT_MAX], seconds[FORMAT_MAX];
    if (i->is_alloc || i->is_free) {
        bool refused = step->cursor == feed_step_plan(step->feed)->refused_instr;
        const char *does = refused ? "asks for" : i->is_alloc ? "takes" : "gives back";
        return paint_format(c, 1, 0, c->area.w, ROLE_DIM, "%s %s", does,
                            hr_bytes_human(feed_step_plan(step->feed)->tensors[i->tensor].bytes, moved));
    }
    return paint_format(c, 1, 0, c->area.w, ROLE_DIM, "%s FLOP · %s moved · %s",
                        step_count((double)i->flops, flops, sizeof flops),
                        hr_bytes_human(i->bytes_moved, moved), step_time(step, i->seconds, seconds));
}

static void draw_costs(const canvas *c, const step_view *step, byte_unit unit)
{
    const hr_step_plan *p = feed_step_plan(step->feed);
    const hr_step_plan_instr *i = &p->instrs[step->cursor];
    char verdict[160], missing[HR_BYTES_TEXT_MAX];
    int x = draw_cost(c, step, i);
    if (step->marked < p->instr_count) {
        const hr_step_plan_instr *mark = &p->instrs[step->marked];
        char delta[FORMAT_MAX];
        format_delta_bytes((double)i->requested_bytes - (double)mark->requested_bytes, unit, delta);
        paint_format(c, 1, x + 2, c->area.w - x - 2, ROLE_BASELINE,
                     "since t %" PRIu32 ": %s %s in %" PRId64 " instructions", step->marked, delta, unit.name,
                     (int64_t)step->cursor - (int64_t)step->marked);
    } else if (!p->fits) {
        step_verdict(step->feed, verdict, sizeof verdict);
        if (glyphs_width(c->glyphs, verdict) > c->area.w - x - 2) {
            snprintf(verdict, sizeof verdict, "%s short", hr_bytes_human(p->missing_bytes, missing));
        }
        paint_text(c, 1, x + 2, c->area.w - x - 2, ROLE_BAD, verdict);
    } else if (p->peak_instr < p->instr_count) {
        snprintf(verdict, sizeof verdict, "● peak %" PRIu32 " · %s", p->peak_instr,
                 step_name(p, p->peak_instr));
        paint_parts(c, 1, x + 2, c->area.w - x - 2, ROLE_WARN, verdict);
    }
}

static void draw_step(const parts *at, const step_view *step, uint64_t pinned_bytes)
{
    const hr_step_plan *p = feed_step_plan(step->feed);
    stack s;
    byte_unit unit = step_unit(step);
    int columns = at->plot.area.w < TIMELINE_COLUMNS_MAX ? at->plot.area.w : TIMELINE_COLUMNS_MAX;
    stack_columns(step, columns, &s);
    graph_scale scale = graph_scale_of(pinned_bytes, p->limit_bytes, p->peak_in_use_bytes);
    scale.rest_is_waste = step_tells_categories(p);
    graph_axis(&at->axis, &scale, unit);
    graph_draw(&at->plot, &scale, s.column, s.count);
    draw_phases(&at->below, step->feed, &s);
    draw_cursor(at, step, &s, &scale);
    name_peak(&at->plot, step, &s, &scale);
    draw_refusal(&at->plot, step, &s);
    uint64_t bands[BAND_COUNT];
    step_bands(&p->instrs[step->cursor], bands);
    graph_legend(&at->legend, &scale, bands, unit);
    if (at->info.area.h > 0) {
        draw_moment(&at->info, step, unit);
        canvas costs = canvas_sub(&at->info, at->info.area.h - INFO_ROWS, 0, INFO_ROWS, at->info.area.w);
        draw_costs(&costs, step, unit);
    }
}

// ---- the pane -------------------------------------------------------------------------------------------------

static void draw_title(const canvas *c, const step_view *step, bool focused)
{
    const hr_step_plan *p = feed_step_plan(step->feed);
    const step_window *w = &step->window;
    char right[160] = "", peak[FORMAT_MAX], limit[FORMAT_MAX];
    byte_unit unit = step_unit(step);
    if (p != NULL && p->instr_count > 0) {
        format_bytes(p->peak_in_use_bytes, unit, peak);
        const bool limited = p->limit_bytes > 0 && !hr_limit_is_none(p->limit_bytes);
        format_bytes(p->limit_bytes, unit, limit);
        snprintf(right, sizeof right, "%" PRIu32 "…%" PRIu32 " of %zu · peak %s%s%s %s p", w->first,
                 w->first + (w->count > 0 ? w->count - 1 : 0), p->instr_count, peak, limited ? " of " : "",
                 limited ? limit : "", unit.name);
    }
    paint_rule(c, focused, pane_title(PANE_STACK), step_shows_run(step) ? "the whole run" : right);
}

static void draw(const canvas *c, const pane_view *v)
{
    const step_view *step = v->rows;
    parts at = parts_of(c);
    draw_title(c, step, v->focused);
    if (step_shows_run(step)) {
        canvas graph = canvas_sub(c, 0, 0, c->area.h - at.info.area.h, c->area.w);
        graph_time(&graph, step->feed, v->pinned_bytes, (unsigned)(-step->zoom - 1));
        if (at.info.area.h > 0) {
            paint_text(&at.info, 0, 0, c->area.w, ROLE_DIM,
                       "measured: ▲ a knob was turned, ! memory ran out · + goes back to the step");
        }
    } else if (step_is_there(c, step->feed) && at.plot.area.h >= PLOT_MIN) {
        draw_step(&at, step, v->pinned_bytes);
    }
}

static pane_request move(const pane_view *v, void *own, int rows, int columns)
{
    step_view *step = own;
    (void)v;
    if (step_shows_run(step)) {
        return pane_says("the run has no cursor: + goes back to the step");
    }
    if (rows != 0) {
        step_move(step, rows);
    } else {
        step_move_columns(step, columns);
    }
    return (pane_request){.kind = PANE_DONE};
}

void step_say(const pane_view *v, char text[PANE_TEXT_MAX])
{
    const step_view *step = v->rows;
    const hr_step_plan *p = feed_step_plan(step->feed);
    if (step_cursor_instr(step) == NULL) {
        snprintf(text, PANE_TEXT_MAX, "%s", step_nothing(step->feed));
        return;
    }
    char now[HR_BYTES_TEXT_MAX], peak[HR_BYTES_TEXT_MAX], verdict[160], line[96];
    const hr_step_plan_instr *i = step_cursor_instr(step);
    const char *who = hr_step_plan_text(p, i->impl);
    hr_bytes_human(i->in_use_bytes > 0 ? i->in_use_bytes : i->requested_bytes, now);
    snprintf(text, PANE_TEXT_MAX,
             "After instruction %" PRIu32
             " of %zu, %s in %s%s%s, %s are planned to be %s; the step peaks at %s. %s",
             step->cursor, p->instr_count, step_short_line(p, step->cursor, line, sizeof line),
             hr_phase_name((hr_phase)i->phase), who[0] == '\0' ? "" : " by ", who, now,
             i->in_use_bytes > 0 ? "in use" : "asked for", hr_bytes_human(p->peak_in_use_bytes, peak),
             step_verdict(step->feed, verdict, sizeof verdict));
}

static bool copy(const pane_view *v, char *text, size_t size)
{
    const step_view *step = v->rows;
    const hr_step_plan_instr *i = step_cursor_instr(step);
    if (i == NULL) {
        return false;
    }
    snprintf(text, size, "%" PRIu32 "\t%s\t%s\t%" PRIu64, step->cursor, hr_phase_name((hr_phase)i->phase),
             step_line(feed_step_plan(step->feed), step->cursor), i->in_use_bytes);
    return true;
}

static pane_request click(const pane_view *v, void *own, int y, int x)
{
    step_view *step = own;
    (void)v;
    int column = x - TIMELINE_AXIS;
    const step_window *w = &step->window;
    bool inside = y > 0 && column >= 0 && column < (int)w->columns;
    if (inside && !step_shows_run(step) && step_cursor_instr(step) != NULL) {
        step_go(step, step_column_of(step, w, (uint32_t)column).highest);
    }
    return (pane_request){.kind = PANE_DONE};
}

const pane_ops pane_stack = {.draw = draw,
                             .settle = settle,
                             .move = move,
                             .mark = step_mark,
                             .zoom = step_zoom,
                             .say = step_say,
                             .term = "in_use_bytes",
                             .copy = copy,
                             .click = click};
