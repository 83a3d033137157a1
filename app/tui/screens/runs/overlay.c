// SPDX-License-Identifier: Apache-2.0
// OVERLAY: the last step's memory of two runs over program order, on one scale; below, in tall panes, their losses.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/tui/screens/runs/runs.h"

enum { AXIS_WIDTH = 7, LOSS_MIN_ROWS = 18 };

typedef struct curve {
    const double *value;
    uint32_t count;
} curve;

typedef struct pair_plot {
    curve curve[2]; // a is dotted, b is a whole line: colour is not the only difference
    double low, high;
} pair_plot;

static double curve_at(const curve *c, int x, int columns)
{
    if (c->count == 0) {
        return UNKNOWN;
    }
    return c->value[(uint64_t)x * c->count / (uint64_t)columns];
}

static int level_of(const pair_plot *p, double value, int levels)
{
    int level = (int)lround((value - p->low) / (p->high - p->low) * (levels - 1));
    return level < 0 ? 0 : level >= levels ? levels - 1 : level;
}

// Dots of one curve in one cell: a is not joined where it rises or falls, b is.
static unsigned dots_of(const canvas *c, const pair_plot *p, int which, int y, int x)
{
    unsigned dots = 0;
    int levels = c->area.h * 4, columns = c->area.w * 2;
    for (int side = 0; side < 2; side++) {
        double value = curve_at(&p->curve[which], 2 * x + side, columns);
        double before = curve_at(&p->curve[which], 2 * x + side > 0 ? 2 * x + side - 1 : 0, columns);
        if (isnan(value)) {
            continue;
        }
        int to = level_of(p, value, levels), from = which == 0 ? to : level_of(p, before, levels);
        int low = from < to ? from + 1 : to, high = from > to ? from - 1 : to;
        for (int row = 0; row < 4; row++) {
            int level = levels - 1 - (4 * y + row);
            dots |= level >= low && level <= high ? 1u << (2 * row + side) : 0u;
        }
    }
    return dots;
}

static void draw_braille(const canvas *c, const pair_plot *p)
{
    for (int y = 0; y < c->area.h; y++) {
        for (int x = 0; x < c->area.w; x++) {
            unsigned a = dots_of(c, p, 0, y, x), b = dots_of(c, p, 1, y, x);
            role r = b != 0 ? ROLE_LINE : ROLE_BASELINE;
            if ((a | b) != 0) {
                paint_cell(c, y, x, theme_role(c->theme, r), glyphs_dots(a | b));
            }
        }
    }
}

static void draw_letters(const canvas *c, const pair_plot *p)
{
    for (int x = 0; x < c->area.w; x++) {
        for (int which = 0; which < 2; which++) {
            double value = curve_at(&p->curve[which], x, c->area.w);
            if (!isnan(value)) {
                int y = c->area.h - 1 - level_of(p, value, c->area.h);
                paint_cell(c, y, x, theme_role(c->theme, which == 0 ? ROLE_BASELINE : ROLE_LINE),
                           which == 0 ? L'a' : L'b');
            }
        }
    }
}

static void draw_curves(const canvas *c, const pair_plot *p)
{
    if (c->area.w < 1 || c->area.h < 1 || !(p->high > p->low)) {
        return;
    }
    if (c->glyphs->line_braille) {
        draw_braille(c, p);
    } else {
        draw_letters(c, p);
    }
}

// ---- memory ---------------------------------------------------------------------------------------------------

static void take_profile(const run *r, double value[RUN_PROFILE], curve *out)
{
    *out = (curve){value, r == NULL ? 0 : r->profile_count};
    for (uint32_t i = 0; i < out->count; i++) {
        value[i] = (double)r->profile[i];
    }
}

static double highest_of(const run *r)
{
    double peak = r == NULL ? UNKNOWN : r->measures.value[MEASURE_PEAK];
    return isnan(peak) ? 0 : peak;
}

static void draw_level(const canvas *c, const pair_plot *p, double bytes, role r, wchar_t letter)
{
    if (!(bytes > 0) || bytes > p->high) {
        return;
    }
    int y = c->area.h - 1 - level_of(p, bytes, c->area.h);
    for (int x = 0; x < c->area.w; x++) {
        paint_cell(c, y, x, theme_role(c->theme, r), c->glyphs->dashed);
    }
    if (letter != L'\0') {
        paint_cell(c, y, c->area.w - 1, theme_role(c->theme, r), letter);
    }
}

static void draw_axis(const canvas *c, const pair_plot *p, byte_unit unit)
{
    char text[FORMAT_MAX];
    paint_right(c, 0, 0, AXIS_WIDTH - 1, ROLE_DIM, format_bytes((uint64_t)p->high, unit, text));
    paint_right(c, c->area.h - 1, 0, AXIS_WIDTH - 1, ROLE_DIM, format_bytes(0, unit, text));
}

static void draw_memory(const canvas *c, const run_pair *pair)
{
    double values[2][RUN_PROFILE];
    pair_plot p = {.low = 0};
    bool alone = pair->b == NULL;
    take_profile(alone ? NULL : pair->a, values[0], &p.curve[0]);
    take_profile(alone ? pair->a : pair->b, values[1], &p.curve[1]);
    double limit = pair->a->measures.value[MEASURE_LIMIT];
    p.high = fmax(highest_of(pair->a), highest_of(pair->b));
    p.high = limit <= p.high * 1.5 && limit > p.high ? limit : p.high;
    canvas plot = canvas_sub(c, 0, AXIS_WIDTH, c->area.h, c->area.w - AXIS_WIDTH);
    draw_axis(c, &p, runs_unit(pair));
    draw_level(&plot, &p, limit, ROLE_LIMIT, L'\0');
    draw_level(&plot, &p, highest_of(pair->a), ROLE_BASELINE, L'a');
    draw_level(&plot, &p, highest_of(pair->b), ROLE_LINE, L'b');
    draw_curves(&plot, &p);
}

// ---- losses ---------------------------------------------------------------------------------------------------

static void widen(pair_plot *p, const curve *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        p->low = fmin(p->low, c->value[i]);
        p->high = fmax(p->high, c->value[i]);
    }
}

static void draw_losses(const canvas *c, const run_pair *pair)
{
    char text[FORMAT_MAX];
    pair_plot p = {.low = (double)INFINITY, .high = -(double)INFINITY};
    const run *whole = pair->b == NULL ? pair->a : pair->b;
    p.curve[0] = (curve){pair->a->losses.mean, pair->b == NULL ? 0 : pair->a->losses.count};
    p.curve[1] = (curve){whole->losses.mean, whole->losses.count};
    widen(&p, &p.curve[0]);
    widen(&p, &p.curve[1]);
    paint_rule(c, false, "loss", "from the first to the last step of each");
    canvas plot = canvas_sub(c, 1, AXIS_WIDTH, c->area.h - 1, c->area.w - AXIS_WIDTH);
    if (p.high > p.low) {
        paint_right(c, 1, 0, AXIS_WIDTH - 1, ROLE_DIM, format_loss_short(p.high, text));
        paint_right(c, c->area.h - 1, 0, AXIS_WIDTH - 1, ROLE_DIM, format_loss_short(p.low, text));
        draw_curves(&plot, &p);
    }
}

// ---- the pane -------------------------------------------------------------------------------------------------

static void peaks_text(const feed *f, const run_pair *pair, char text[160])
{
    char one[FORMAT_MAX], other[FORMAT_MAX], first[FORMAT_MAX], second[FORMAT_MAX];
    byte_unit unit = runs_unit(pair);
    measure_format(MEASURE_PEAK, pair->a->measures.value[MEASURE_PEAK], unit, first);
    if (pair->b == NULL) {
        snprintf(text, 160, "a %s peak %s %s", runs_name(f, pair->a, one), first, unit.name);
        return;
    }
    measure_format(MEASURE_PEAK, pair->b->measures.value[MEASURE_PEAK], unit, second);
    snprintf(text, 160, "a %s peak %s · b %s peak %s %s", runs_name(f, pair->a, one), first,
             runs_name(f, pair->b, other), second, unit.name);
}

static void draw(const canvas *c, const pane_view *v)
{
    char text[160];
    run_pair pair = runs_shown(v->rows);
    if (pair.a == NULL) {
        paint_rule(c, v->focused, pane_title(PANE_OVERLAY), "");
        paint_text(c, 1, 1, c->area.w - 2, ROLE_DIM, "No step has ended yet.");
        return;
    }
    peaks_text(v->feed, &pair, text);
    bool short_title = glyphs_width(c->glyphs, text) > c->area.w - 18;
    paint_rule(c, v->focused, pane_title(PANE_OVERLAY), short_title ? "last step" : text);
    if (!(highest_of(pair.a) > 0) && !(highest_of(pair.b) > 0)) {
        canvas words = canvas_sub(c, 1, 1, c->area.h - 1, c->area.w - 2);
        paint_wrapped(&words, 0, ROLE_DIM,
                      pair.b == NULL ? "This run has ended no step: there is no memory to draw."
                                     : "Neither of these runs has ended a step: there is no memory to draw.");
        return;
    }
    int losses = c->area.h >= LOSS_MIN_ROWS ? c->area.h / 3 : 0;
    canvas memory = canvas_sub(c, 1, 0, c->area.h - 2 - losses, c->area.w);
    canvas loss = canvas_sub(c, c->area.h - losses, 0, losses, c->area.w);
    draw_memory(&memory, &pair);
    paint_parts(c, c->area.h - losses - 1, AXIS_WIDTH, c->area.w - AXIS_WIDTH, ROLE_DIM,
                c->glyphs->line_braille ? "a dotted, b whole · one step in program order"
                                        : "one step in program order");
    if (losses > 0) {
        draw_losses(&loss, &pair);
    }
}

static void say(const pane_view *v, char text[PANE_TEXT_MAX])
{
    char peaks[160];
    const run_pair pair = runs_shown(v->rows);
    if (pair.a == NULL) {
        snprintf(text, PANE_TEXT_MAX, "No step has ended yet.");
        return;
    }
    peaks_text(v->feed, &pair, peaks);
    snprintf(text, PANE_TEXT_MAX, "Memory over one step: %s.", peaks);
}

static bool copy(const pane_view *v, char *text, size_t size)
{
    char peaks[160];
    run_pair pair = runs_shown(v->rows);
    if (pair.a == NULL) {
        return false;
    }
    peaks_text(v->feed, &pair, peaks);
    snprintf(text, size, "%s", peaks);
    return true;
}

const pane_ops pane_overlay = {.draw = draw, .say = say, .term = "overlay", .copy = copy};
