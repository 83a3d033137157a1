// SPDX-License-Identifier: Apache-2.0
// FRONTIER: every planned point, its peak against its step time; those that no other beats are joined.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/screens/fit.h"
#include "app/tui/screens/screens.h"

enum { PICKED_MAX = 512 };

enum { AXIS_WIDTH = 7 };

typedef struct scatter {
    const app *a;
    double left, right, low, high; // seconds (or ranks), bytes
    bool timed;                    // the device can tell seconds
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
    return s->timed ? fit_seconds(&s->a->fit.point[point]) : rank_of(&s->a->fit, point);
}

static double y_of(const scatter *s, size_t point)
{
    return (double)s->a->fit.point[point].plan.peak_in_use_bytes;
}

static scatter scatter_of(const app *a)
{
    scatter s = {.a = a, .timed = true, .left = (double)INFINITY, .low = (double)INFINITY};
    s.right = s.high = -(double)INFINITY;
    for (size_t i = 0; i < a->fit.count; i++) {
        s.timed = s.timed && !isnan(fit_seconds(&a->fit.point[i]));
        s.limit_bytes =
            a->fit.point[i].plan.limit_bytes > 0 ? a->fit.point[i].plan.limit_bytes : s.limit_bytes;
    }
    for (size_t i = 0; i < a->fit.count; i++) {
        s.left = fmin(s.left, x_of(&s, i));
        s.right = fmax(s.right, x_of(&s, i));
        s.low = fmin(s.low, y_of(&s, i));
        s.high = fmax(s.high, y_of(&s, i));
    }
    if (s.limit_bytes > 0 && (double)s.limit_bytes < 3 * s.high) {
        s.high = fmax(s.high, (double)s.limit_bytes);
    }
    double wide = s.right - s.left, tall = s.high - s.low;
    s.left -= wide > 0 ? 0.02 * wide : 0.5;
    s.right += wide > 0 ? 0.02 * wide : 0.5;
    s.low = fmax(0, s.low - (tall > 0 ? 0.08 * tall : 0.5 * s.low));
    s.high += tall > 0 ? 0.04 * tall : 0.5 * s.high + 1;
    return s;
}

static int step_of(double share, int steps)
{
    int step = (int)lround(share * (steps - 1));
    return step < 0 ? 0 : step >= steps ? steps - 1 : step;
}

static int column_of(const scatter *s, double x, int columns)
{
    return step_of((x - s->left) / (s->right - s->left), columns);
}

static int row_of(const scatter *s, double y, int rows)
{
    return step_of((s->high - y) / (s->high - s->low), rows);
}

// ---- order along the frontier ---------------------------------------------------------------------------------

// The best point beside the one at `x`, to the right (direction 1) or left; SIZE_MAX beyond the end.
static size_t best_beside(const scatter *s, double x, size_t from, int direction)
{
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < s->a->fit.count; i++) {
        double at = x_of(s, i);
        bool beyond = direction > 0 ? at > x : at < x;
        if (s->a->fit.best[i] && i != from && beyond &&
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

static const char *legend(const canvas *c, char text[96])
{
    text[0] = '\0';
    for (int kind = POINT_KINDS - 1; kind >= 0; kind--) {
        size_t used = strlen(text);
        snprintf(text + used, 96 - used, "%s%s %s", used > 0 ? " " : "", glyph_of(c, kind), looks[kind].word);
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

static void draw_point(const canvas *c, const scatter *s, size_t i, int kind)
{
    const char *text = glyph_of(c, kind);
    wchar_t glyph = utf8_next(&text);
    role r = looks[kind].as;
    paint_cell(c, row_of(s, y_of(s, i), c->area.h), column_of(s, x_of(s, i), c->area.w),
               theme_role(c->theme, r), glyph);
}

static void draw_points(const canvas *c, const scatter *s)
{
    const fit_points *fit = &s->a->fit;
    size_t picked = fit_picked(s->a);
    for (int kind = 0; kind < POINT_PICKED; kind++) {
        for (size_t i = 0; i < fit->count; i++) {
            if (kind_of(fit, i) == kind) {
                draw_point(c, s, i, kind);
            }
        }
    }
    if (picked != SIZE_MAX) {
        draw_point(c, s, picked, POINT_PICKED);
    }
}

static void draw_limit(const canvas *c, const scatter *s)
{
    double limit = (double)s->limit_bytes;
    if (limit < s->low || limit > s->high) {
        return;
    }
    for (int x = 0; x < c->area.w; x++) {
        paint_cell(c, row_of(s, limit, c->area.h), x, theme_role(c->theme, ROLE_LIMIT), c->glyphs->dashed);
    }
}

// Over points that stand there: what the line is has to be read.
static void name_limit(const canvas *c, const scatter *s)
{
    double limit = (double)s->limit_bytes;
    if (limit >= s->low && limit <= s->high) {
        paint_right(c, row_of(s, limit, c->area.h), 0, c->area.w, ROLE_LIMIT, " limit");
    }
}

static void draw_axes(const canvas *c, const scatter *s, int rows)
{
    char text[FORMAT_MAX];
    byte_unit unit = fit_unit(s->a);
    int limit_row = 1 + row_of(s, (double)s->limit_bytes, rows);
    bool limited = (double)s->limit_bytes >= s->low && (double)s->limit_bytes <= s->high;
    paint_right(c, 1, 0, AXIS_WIDTH - 1, ROLE_DIM, format_bytes((uint64_t)s->high, unit, text));
    paint_right(c, rows, 0, AXIS_WIDTH - 1, ROLE_DIM, format_bytes((uint64_t)s->low, unit, text));
    if (limited) {
        paint_blank(c, limit_row, 0, AXIS_WIDTH - 1, theme_role(c->theme, ROLE_TEXT));
        paint_right(c, limit_row, 0, AXIS_WIDTH - 1, ROLE_LIMIT, format_bytes(s->limit_bytes, unit, text));
    }
    if (!s->timed) {
        paint_text(
            c, rows + 1, AXIS_WIDTH, c->area.w - AXIS_WIDTH, ROLE_DIM,
            "ordered by peak: this device tells no seconds (device.card, or headroom doctor --calibrate)");
        return;
    }
    paint_text(c, rows + 1, AXIS_WIDTH, 12, ROLE_DIM, format_seconds(s->left, text));
    paint_right(c, rows + 1, AXIS_WIDTH, c->area.w - AXIS_WIDTH, ROLE_DIM, format_seconds(s->right, text));
    paint_middle(c, rows + 1, c->area.w / 2 - 2, 14, ROLE_DIM, "step_seconds");
}

// The picked point in words: how it fits, or by how much it misses.
static const char *picked_text(const app *a, char text[PICKED_MAX])
{
    char peak[FORMAT_MAX], missing[FORMAT_MAX], seconds[FORMAT_MAX], misses[FORMAT_MAX + 16] = "";
    size_t point = fit_picked(a);
    text[0] = '\0';
    if (point == SIZE_MAX) {
        return text;
    }
    const hr_fit_point *p = &a->fit.point[point];
    byte_unit unit = fit_unit(a);
    format_bytes(p->plan.peak_in_use_bytes, unit, peak);
    format_bytes(p->plan.missing_bytes, unit, missing);
    char range[HR_SECONDS_RANGE_MAX] = "";
    bool ranges = p->plan.step_seconds_high > 0;
    if (ranges) {
        hr_seconds_range(p->plan.step_seconds_low, p->plan.step_seconds_high, range);
    }
    if (!p->plan.fits) {
        snprintf(misses, sizeof misses, ", misses by %s", missing);
    }
    snprintf(text, PICKED_MAX, "%s %s, %s%s%s%s%s: %s", peak, unit.name,
             format_seconds(fit_seconds(p), seconds), ranges ? " (" : "", range, ranges ? " e)" : "", misses,
             p->knobs[0] == '\0' ? "as they are" : p->knobs);
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

static void draw_picked(const canvas *c, const app *a, const char *text)
{
    size_t point = fit_picked(a);
    bool fits = point != SIZE_MAX && a->fit.point[point].plan.fits;
    paint_wrapped(c, 0, fits ? ROLE_GOOD : ROLE_BAD, text);
}

static void draw(const canvas *c, const app *a)
{
    char words[96];
    paint_rule(c, a->focus == PANE_FRONTIER, pane_title(PANE_FRONTIER),
               a->fit.count > 0 ? legend(c, words) : "");
    if (a->fit.count == 0) {
        canvas text = canvas_sub(c, 1, 1, c->area.h - 1, c->area.w - 2);
        paint_wrapped(&text, 0, ROLE_DIM,
                      a->fit.refused[0] != '\0' ? a->fit.refused
                      : a->fit.asks             ? "The first plans are being made."
                                                : "No combination of knobs has been planned yet.");
        return;
    }
    scatter s = scatter_of(a);
    char picked[PICKED_MAX];
    int picked_height = picked_rows(c, picked_text(a, picked));
    int rows = c->area.h - 2 - picked_height; // title, time, the picked point
    canvas plot = canvas_sub(c, 1, AXIS_WIDTH, rows, c->area.w - AXIS_WIDTH);
    if (rows > 0 && plot.area.w > 0) {
        draw_limit(&plot, &s);
        draw_frontier(&plot, &s);
        draw_points(&plot, &s);
        name_limit(&plot, &s);
        draw_axes(c, &s, rows);
    }
    canvas below = canvas_sub(c, c->area.h - picked_height, 0, picked_height, c->area.w);
    draw_picked(&below, a, picked);
}

// ←→ and ↑↓ walk the points that no other beats: right and down are slower and smaller.
static bool move(app *a, int rows, int columns)
{
    int direction = columns != 0 ? columns : rows;
    size_t from = fit_picked(a);
    if (a->fit.count == 0 || direction == 0) {
        return a->fit.count > 0;
    }
    scatter s = scatter_of(a);
    direction = direction > 0 ? 1 : -1;
    double x = from == SIZE_MAX ? -(double)INFINITY * direction : x_of(&s, from);
    size_t to = best_beside(&s, x, from, direction);
    if (to != SIZE_MAX) {
        fit_pick(a, to);
    } else {
        app_say(a, MESSAGE_NOTE, "this is the %s end of the frontier", direction > 0 ? "slow" : "fast");
    }
    return true;
}

static const char *term(const app *a)
{
    (void)a;
    return "frontier";
}

const pane_ops pane_frontier = {.draw = draw,
                                .move = move,
                                .enter = fit_enter,
                                .enter_does = "apply",
                                .say = fit_say,
                                .term = term,
                                .copy = fit_copy};
