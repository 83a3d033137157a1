// SPDX-License-Identifier: Apache-2.0
// FRONTIER: every planned point, its peak against its step time; those that no other beats are joined.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/screens/fit/axis.h"
#include "app/tui/screens/fit/fit.h"

enum { PICKED_MAX = 1024, LEGEND_MAX = 128, AXIS_WIDTH = 7 };

typedef struct scatter {
    const pane_view *v;
    fit_axis x, y; // seconds (or ranks), bytes
    bool timed;    // the device can tell seconds
    uint64_t limit_bytes;
} scatter;

// The points' places in order of their peak, where time is not known.
static double rank_of(const fit_points *fit, size_t point)
{
    size_t rank = 0;
    for (size_t i = 0; i < fit->count; i++) {
        rank += fit->point[i].plan.peak_in_use_bytes < fit->point[point].plan.peak_in_use_bytes;
    }
    return (double)rank;
}

static double x_of(const scatter *s, size_t point)
{
    return s->timed ? fit_seconds(&s->v->feed->fit.point[point]) : rank_of(&s->v->feed->fit, point);
}

static double y_of(const scatter *s, size_t point)
{
    return (double)s->v->feed->fit.point[point].plan.peak_in_use_bytes;
}

static scatter scatter_of(const pane_view *v)
{
    const size_t picked = fit_picked(v); // allocators take more or less of what there is
    scatter s = {.v = v,
                 .timed = true,
                 .x = FIT_AXIS_EMPTY,
                 .y = FIT_AXIS_EMPTY,
                 .limit_bytes = v->feed->fit.point[picked == SIZE_MAX ? 0 : picked].plan.limit_bytes};
    for (size_t i = 0; i < v->feed->fit.count; i++) {
        s.timed = s.timed && !isnan(fit_seconds(&v->feed->fit.point[i]));
    }
    for (size_t i = 0; i < v->feed->fit.count; i++) {
        fit_axis_take(&s.x, x_of(&s, i));
        fit_axis_take(&s.y, y_of(&s, i));
    }
    if (s.limit_bytes > 0 && (double)s.limit_bytes < 3 * s.y.high) {
        s.y.high = fmax(s.y.high, (double)s.limit_bytes);
    }
    fit_axis_settle(&s.x, s.timed, 0.02, 0.02);
    fit_axis_settle(&s.y, true, 0.08, 0.04);
    s.y.low = fmax(0, s.y.low);
    return s;
}

static int column_of(const scatter *s, double x, int columns)
{
    return (int)lround(fit_axis_share(&s->x, x) * (columns - 1));
}

static int row_of(const scatter *s, double y, int rows)
{
    return (int)lround((1 - fit_axis_share(&s->y, y)) * (rows - 1));
}

// ---- order along the frontier ---------------------------------------------------------------------------------

// The best point beside the one at `x`, to the right (direction 1) or left; SIZE_MAX beyond the end.
static size_t best_beside(const scatter *s, double x, size_t from, int direction)
{
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < s->v->feed->fit.count; i++) {
        double at = x_of(s, i);
        bool beyond = direction > 0 ? at > x : at < x;
        if (s->v->feed->fit.best[i] && i != from && beyond &&
            (found == SIZE_MAX || (direction > 0 ? at < x_of(s, found) : at > x_of(s, found)))) {
            found = i;
        }
    }
    return found;
}

// ---- drawing --------------------------------------------------------------------------------------------------

// Dots of a straight line, two columns and four rows of them in a cell.
static void draw_line(const canvas *c, unsigned char *dots, int y0, int x0, int y1, int x1)
{
    int steps = abs(x1 - x0) > abs(y1 - y0) ? abs(x1 - x0) : abs(y1 - y0);
    for (int i = 0; i <= steps; i++) {
        int x = steps == 0 ? x0 : x0 + (x1 - x0) * i / steps,
            y = steps == 0 ? y0 : y0 + (y1 - y0) * i / steps;
        unsigned char *cell = &dots[y / 4 * c->area.w + x / 2];
        *cell = (unsigned char)(*cell | 1u << (y % 4 * 2 + x % 2));
    }
}

static void draw_frontier(const canvas *c, const scatter *s)
{
    size_t cells = (size_t)c->area.h * (size_t)c->area.w;
    unsigned char *dots = calloc(cells > 0 ? cells : 1, 1);
    size_t from = best_beside(s, -(double)INFINITY, SIZE_MAX, 1), to;
    for (; dots != NULL && from != SIZE_MAX && (to = best_beside(s, x_of(s, from), from, 1)) != SIZE_MAX;
         from = to) {
        draw_line(c, dots, row_of(s, y_of(s, from), 4 * c->area.h),
                  column_of(s, x_of(s, from), 2 * c->area.w), row_of(s, y_of(s, to), 4 * c->area.h),
                  column_of(s, x_of(s, to), 2 * c->area.w));
    }
    for (size_t i = 0; dots != NULL && i < cells; i++) {
        if (dots[i] != 0) {
            wchar_t glyph = c->glyphs->line_braille ? glyphs_dots(dots[i]) : L'.';
            paint_cell(c, (int)i / c->area.w, (int)i % c->area.w, theme_role(c->theme, ROLE_LINE), glyph);
        }
    }
    free(dots);
}

// X(ID, glyph, glyph where that is none or two columns wide, role, "word"); what comes later is drawn over the others
#define POINT_MAP(X)                                                                                         \
    X(MISSES, "x", "x", BAD, "misses")                                                                       \
    X(FITS, "○", "+", TEXT, "fits")                                                                          \
    X(BEST, "●", "o", GOOD, "best")                                                                          \
    X(NOW, "◇", "#", BASELINE, "now")                                                                        \
    X(PICKED, "◆", "@", SELECT, "picked")

enum {
#define X(id, rich, plain, as, word) POINT_##id,
    POINT_MAP(X)
#undef X
        POINT_KINDS
};

static const struct {
    const char *rich, *plain, *word;
    role as;
} looks[POINT_KINDS] = {
#define X(id, rich, plain, as, word) [POINT_##id] = {rich, plain, word, ROLE_##as},
    POINT_MAP(X)
#undef X
};

static const char *glyph_of(const canvas *c, int kind)
{
    bool plain = c->glyphs->set == GLYPHS_ASCII || c->glyphs->set == GLYPHS_BRAILLE;
    return plain ? looks[kind].plain : looks[kind].rich;
}

static const char *legend(const canvas *c, char text[LEGEND_MAX])
{
    size_t used = 0;
    for (int kind = POINT_KINDS - 1; kind >= 0; kind--) {
        used += (size_t)snprintf(text + used, LEGEND_MAX - used, "%s%s %s", used > 0 ? " " : "",
                                 glyph_of(c, kind), looks[kind].word);
    }
    return text;
}

static int kind_of(const fit_points *fit, size_t i)
{
    return i == 0                    ? POINT_NOW
           : fit->best[i]            ? POINT_BEST
           : fit->point[i].plan.fits ? POINT_FITS
                                     : POINT_MISSES;
}

// ---- points apart ---------------------------------------------------------------------------------------------

// What stands in a cell of the plot.
typedef struct spot {
    unsigned char kind;  // POINT_KINDS: nothing
    unsigned char count; // of points
} spot;

enum { NEAR = 2, MANY = 9 };

// In its own cell or the nearest free one of the row, so that its peak stays right; where none is free, it is counted
// with what matters least.
static void put_point(spot *spots, const canvas *c, const scatter *s, size_t i, unsigned char kind)
{
    const int own = column_of(s, x_of(s, i), c->area.w);
    spot *row = &spots[row_of(s, y_of(s, i), c->area.h) * c->area.w], *least = &row[own];
    for (int step = 0; step <= 2 * NEAR; step++) {
        const int x = own + (step % 2 == 1 ? (step + 1) / 2 : -step / 2);
        if (x < 0 || x >= c->area.w) {
            continue;
        }
        if (row[x].kind == POINT_KINDS) {
            row[x] = (spot){kind, 1};
            return;
        }
        least = row[x].kind < least->kind ? &row[x] : least;
    }
    least->count = (unsigned char)(least->count + (least->count < MANY));
}

static void put_points(spot *spots, const canvas *c, const scatter *s)
{
    const fit_points *fit = &s->v->feed->fit;
    const size_t picked = fit_picked(s->v);
    for (int i = 0; i < c->area.h * c->area.w; i++) {
        spots[i] = (spot){POINT_KINDS, 0};
    }
    if (picked != SIZE_MAX) {
        put_point(spots, c, s, picked, POINT_PICKED);
    }
    for (int kind = POINT_PICKED - 1; kind >= 0; kind--) {
        for (size_t i = 0; i < fit->count; i++) {
            if (i != picked && kind_of(fit, i) == kind) {
                put_point(spots, c, s, i, (unsigned char)kind);
            }
        }
    }
}

static bool is_counted(const spot *p)
{
    return p->kind < POINT_NOW && p->count > 1;
}

static void draw_points(const canvas *c, const spot *spots)
{
    for (int i = 0; i < c->area.h * c->area.w; i++) {
        if (spots[i].kind < POINT_KINDS) {
            const char *text = glyph_of(c, spots[i].kind);
            const wchar_t glyph = is_counted(&spots[i]) ? L'0' + spots[i].count : utf8_next(&text);
            paint_cell(c, i / c->area.w, i % c->area.w, theme_role(c->theme, looks[spots[i].kind].as), glyph);
        }
    }
}

static void draw_limit(const canvas *c, const scatter *s)
{
    double limit = (double)s->limit_bytes;
    if (limit < s->y.low || limit > s->y.high) {
        return;
    }
    for (int x = 0; x < c->area.w; x++) {
        paint_cell(c, row_of(s, limit, c->area.h), x, theme_role(c->theme, ROLE_LIMIT), c->glyphs->dashed);
    }
}

// Rightmost where no point is hidden or touched; where one would be, the axis alone says it.
static void name_limit(const canvas *c, const scatter *s, const spot *spots)
{
    enum { NAME = 6 };
    const double limit = (double)s->limit_bytes;
    const spot *row = &spots[row_of(s, limit, c->area.h) * c->area.w];
    int free = 1, x = c->area.w; // the edge ends a word as a blank does
    while (free <= NAME && x > 0) {
        free = row[--x].kind == POINT_KINDS ? free + 1 : 0;
    }
    if (free > NAME && limit >= s->y.low && limit <= s->y.high) {
        paint_text(c, row_of(s, limit, c->area.h), x, NAME, ROLE_LIMIT, " limit");
    }
}

// The row below the plot, which also says what digits in it are.
static void draw_times(const canvas *c, const scatter *s, int y, bool counts)
{
    enum { SIDE = 12, WORDS = 64 };
    char text[FORMAT_MAX], words[WORDS];
    const int width = c->area.w - AXIS_WIDTH;
    if (!s->timed) {
        paint_parts(c, y, AXIS_WIDTH, width, ROLE_DIM,
                    counts ? "by peak · 2-9 points · times are not known" : "by peak · times are not known");
        return;
    }
    paint_text(c, y, AXIS_WIDTH, SIDE, ROLE_DIM, format_seconds(s->x.low, text));
    paint_right(c, y, AXIS_WIDTH, width, ROLE_DIM, format_seconds(s->x.high, text));
    const hr_time_basis basis = s->v->feed->fit.point[0].plan.step_basis;
    (void)snprintf(words, sizeof words, "step_seconds%s%s%s%s", s->x.is_log ? " (log)" : "",
                   basis != HR_TIME_UNKNOWN ? ", " : "",
                   basis != HR_TIME_UNKNOWN ? hr_time_basis_brief(basis) : "", counts ? " · 2-9 points" : "");
    const int room = width - 2 * SIDE, length = glyphs_width(c->glyphs, words);
    paint_text(c, y, AXIS_WIDTH + SIDE + (room > length ? (room - length) / 2 : 0), room, ROLE_DIM, words);
}

static void draw_axes(const canvas *c, const scatter *s, int rows, bool counts)
{
    char text[FORMAT_MAX];
    byte_unit unit = fit_unit(s->v->feed);
    int limit_row = 1 + row_of(s, (double)s->limit_bytes, rows);
    bool limited = (double)s->limit_bytes >= s->y.low && (double)s->limit_bytes <= s->y.high;
    paint_right(c, 1, 0, AXIS_WIDTH - 1, ROLE_DIM, format_bytes((uint64_t)s->y.high, unit, text));
    paint_right(c, rows, 0, AXIS_WIDTH - 1, ROLE_DIM, format_bytes((uint64_t)s->y.low, unit, text));
    if (s->y.is_log && rows > 3) {
        paint_right(c, limited && limit_row == 2 ? 3 : 2, 0, AXIS_WIDTH - 1, ROLE_DIM, "(log)");
    }
    if (limited) {
        paint_blank(c, limit_row, 0, AXIS_WIDTH - 1, theme_role(c->theme, ROLE_TEXT));
        paint_right(c, limit_row, 0, AXIS_WIDTH - 1, ROLE_LIMIT, format_bytes(s->limit_bytes, unit, text));
    }
    draw_times(c, s, rows + 1, counts);
}

// The picked point in words: how it fits, or by how much it misses, and what it changes.
static const char *picked_text(const pane_view *v, char text[PICKED_MAX])
{
    char peak[FORMAT_MAX], missing[FORMAT_MAX], seconds[FORMAT_MAX], misses[FORMAT_MAX + 24] = "";
    char change[HR_FIT_CHANGE_MAX];
    size_t point = fit_picked(v);
    text[0] = '\0';
    if (point == SIZE_MAX) {
        return text;
    }
    const hr_fit_point *p = &v->feed->fit.point[point];
    byte_unit unit = fit_unit(v->feed);
    format_bytes(p->plan.peak_in_use_bytes, unit, peak);
    format_bytes(hr_whatif_missing_bytes(&p->plan), unit, missing);
    char range[HR_SECONDS_RANGE_MAX] = "";
    bool ranges = p->plan.step_seconds_high > 0;
    if (ranges) {
        hr_seconds_range(p->plan.step_seconds_low, p->plan.step_seconds_high, range);
    }
    if (!p->plan.fits) {
        snprintf(misses, sizeof misses, ", misses by %s%s%s", fit_at_least(&p->plan), missing,
                 hr_whatif_lacks_host(&p->plan) ? " of host" : "");
    }
    fit_change(&v->feed->fit, point, change);
    snprintf(text, PICKED_MAX, "%s%s %s, %s%s%s%s%s: %s%s%s", fit_at_least(&p->plan), peak, unit.name,
             format_seconds(fit_seconds(p), seconds), ranges ? " (" : "", range, ranges ? " e)" : "", misses,
             p->knobs[0] == '\0' ? "as they are" : p->knobs,
             change[0] != '\0' ? "\n~ changes what is learned: " : "", change);
    return text;
}

// What Enter would apply stands whole, whatever rows it takes.
static int picked_rows(const canvas *c, const char *text)
{
    size_t at = 0, start, length;
    int rows = 0;
    while (wrap_next(c->glyphs, text, c->area.w, &at, &start, &length)) {
        rows++;
    }
    return rows > 1 ? rows : 1;
}

static void draw_picked(const canvas *c, const pane_view *v, const char *text)
{
    size_t point = fit_picked(v);
    bool fits = point != SIZE_MAX && v->feed->fit.point[point].plan.fits;
    paint_wrapped(c, 0, fits ? ROLE_GOOD : ROLE_BAD, text);
}

static void draw_rule(const canvas *c, const pane_view *v, const char *right)
{
    paint_rule(c, v->focused, pane_title(v->pane), right);
}

static void draw_nothing(const canvas *c, const pane_view *v)
{
    canvas text = canvas_sub(c, 1, 1, c->area.h - 1, c->area.w - 2);
    draw_rule(c, v, "");
    paint_wrapped(&text, 0, ROLE_DIM,
                  v->feed->fit.refused[0] != '\0' ? v->feed->fit.refused
                  : v->feed->fit.asks             ? "The first plans are being made."
                                                  : "No combination of knobs has been planned yet.");
}

// Returns whether points are counted somewhere.
static bool draw_plot(const canvas *plot, const scatter *s)
{
    const int cells = plot->area.h * plot->area.w;
    spot *spots = calloc((size_t)cells, sizeof *spots);
    bool counts = false;
    draw_limit(plot, s);
    draw_frontier(plot, s);
    if (spots != NULL) {
        put_points(spots, plot, s);
        draw_points(plot, spots);
        name_limit(plot, s, spots);
    }
    for (int i = 0; spots != NULL && i < cells && !counts; i++) {
        counts = is_counted(&spots[i]);
    }
    free(spots);
    return counts;
}

static void draw(const canvas *c, const pane_view *v)
{
    char words[LEGEND_MAX], picked[PICKED_MAX];
    bool counts = false;
    if (v->feed->fit.count == 0) {
        draw_nothing(c, v);
        return;
    }
    scatter s = scatter_of(v);
    int picked_height = picked_rows(c, picked_text(v, picked));
    int rows = c->area.h - 2 - picked_height; // title, time, the picked point
    canvas plot = canvas_sub(c, 1, AXIS_WIDTH, rows, c->area.w - AXIS_WIDTH);
    if (rows > 0 && plot.area.w > 0) {
        counts = draw_plot(&plot, &s);
        draw_axes(c, &s, rows, counts);
    }
    draw_rule(c, v, legend(c, words));
    canvas below = canvas_sub(c, c->area.h - picked_height, 0, picked_height, c->area.w);
    draw_picked(&below, v, picked);
}

// ←→ and ↑↓ walk the points that no other beats: right and down are slower and smaller.
static pane_request move(const pane_view *v, void *own, int rows, int columns)
{
    (void)own;
    const int direction = (columns != 0 ? columns : rows) > 0 ? 1 : -1;
    const size_t from = fit_picked(v);
    if (v->feed->fit.count == 0) {
        return (pane_request){0};
    }
    const scatter s = scatter_of(v);
    const double x = from == SIZE_MAX ? -(double)INFINITY * direction : x_of(&s, from);
    const size_t to = best_beside(&s, x, from, direction);
    if (to != SIZE_MAX) {
        return fit_pick(&v->feed->fit, to);
    }
    pane_request r = {.kind = PANE_SAYS};
    snprintf(r.text, sizeof r.text, "this is the %s end of the frontier", direction > 0 ? "slow" : "fast");
    return r;
}

const pane_ops pane_frontier = {.draw = draw,
                                .move = move,
                                .enter = fit_enter,
                                .enter_does = "apply",
                                .say = fit_say,
                                .term = "frontier",
                                .copy = fit_copy};
