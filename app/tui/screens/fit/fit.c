// SPDX-License-Identifier: Apache-2.0
// Fit: the plans that were made as a table. The point under its cursor is the one that FRONTIER shows as picked.
#include "app/tui/screens/fit/fit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { COLUMN_FITS, COLUMN_KNOBS, COLUMN_PEAK, COLUMN_MISSING, COLUMN_SECONDS, COLUMN_SLOWDOWN };

static const table_column columns[] = {
    [COLUMN_FITS] = {.term = "fits", .width = 4},
    [COLUMN_KNOBS] =
        {.term = "knobs",
         .line = "what Enter would turn: the knobs in which this point differs from the present ones; "
                 "~ changes what is learned"},
    [COLUMN_PEAK] = {.term = "peak",
                     .width = 8,
                     .number = true,
                     .line = "planned peak of a step with these knobs"},
    [COLUMN_MISSING] = {.term = "missing", .width = 8, .number = true, .from_width = 100},
    [COLUMN_SECONDS] = {.term = "seconds",
                        .width = 7,
                        .number = true,
                        .line = "planned time of a step with these knobs"},
    [COLUMN_SLOWDOWN] = {.term = "slowdown", .width = 8, .number = true, .from_width = 64},
};

static size_t count(const void *of)
{
    const feed *f = of;
    return f->fit.count;
}

static const hr_fit_point *point_at(const feed *f, size_t row)
{
    return &f->fit.point[f->fit.order[row]];
}

static uint64_t key(const void *of, size_t row)
{
    const feed *f = of;
    return f->fit.order[row];
}

static uint64_t version(const void *of)
{
    const feed *f = of;
    return f->fit.version;
}

const char *fit_at_least(const hr_whatif *plan)
{
    return plan->is_at_least && !plan->fits ? ">=" : "";
}

byte_unit fit_unit(const feed *f)
{
    uint64_t highest = 0;
    for (size_t i = 0; i < f->fit.count; i++) {
        uint64_t peak = f->fit.point[i].plan.peak_in_use_bytes;
        highest = peak > highest ? peak : highest;
    }
    return byte_unit_for(highest);
}

static void cell(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    const feed *f = of;
    const hr_fit_point *p = point_at(f, row);
    char value[FORMAT_MAX] = "";
    double slowdown = fit_slowdown(&f->fit, p);
    switch (column) {
    case COLUMN_FITS:
        snprintf(text, TABLE_CELL_MAX, "%s",
                 f->fit.best[f->fit.order[row]] ? "best"
                 : p->plan.fits                 ? "yes"
                                                : "no");
        return;
    case COLUMN_KNOBS:
        if (fit_short(&f->fit, row, text)[0] == '\0') {
            snprintf(text, TABLE_CELL_MAX, "as they are");
        }
        return;
    case COLUMN_PEAK:
        format_bytes(p->plan.peak_in_use_bytes, fit_unit(f), value);
        break;
    case COLUMN_MISSING:
        if (!p->plan.fits) {
            format_bytes(hr_whatif_missing_bytes(&p->plan), fit_unit(f), value);
        }
        break;
    case COLUMN_SECONDS:
        format_seconds(fit_seconds(p), value);
        break;
    default:
        snprintf(value, sizeof value, isnan(slowdown) ? "—" : "%.2f×", slowdown);
        break;
    }
    const bool is_bound = column == COLUMN_PEAK || column == COLUMN_MISSING;
    snprintf(text, TABLE_CELL_MAX, "%s%s", is_bound ? fit_at_least(&p->plan) : "", value);
}

static double number(const void *of, size_t row, unsigned column)
{
    const feed *f = of;
    const hr_fit_point *p = point_at(f, row);
    return column == COLUMN_PEAK      ? (double)p->plan.peak_in_use_bytes
           : column == COLUMN_MISSING ? (double)hr_whatif_missing_bytes(&p->plan)
           : column == COLUMN_SECONDS ? fit_seconds(p)
                                      : fit_slowdown(&f->fit, p);
}

static role role_of(const void *of, size_t row)
{
    const feed *f = of;
    return f->fit.best[f->fit.order[row]] ? ROLE_GOOD : point_at(f, row)->plan.fits ? ROLE_TEXT : ROLE_BAD;
}

static const table_source source = {
    .columns = columns,
    .column_count = sizeof columns / sizeof *columns,
    .count = count,
    .cell = cell,
    .number = number,
    .key = key,
    .version = version,
    .role_of = role_of,
    .empty = "No combination of knobs has been planned yet.",
};

// ---- the picked point -----------------------------------------------------------------------------------------

size_t fit_picked(const pane_view *v)
{
    const size_t row = table_selected(&v->tables[PANE_POINTS]);
    return row < v->feed->fit.count ? v->feed->fit.order[row] : SIZE_MAX;
}

pane_request fit_pick(const fit_points *fit, size_t point)
{
    size_t row = 0;
    while (row < fit->count && fit->order[row] != point) {
        row++;
    }
    return (pane_request){.kind = PANE_SELECTS_ROW,
                          .pane = PANE_POINTS,
                          .row = row,
                          .text = "the next point is hidden by the filter of [points]: / shows all"};
}

pane_request fit_enter(const pane_view *v, void *own)
{
    (void)own;
    const size_t point = fit_picked(v);
    return point == SIZE_MAX
               ? (pane_request){.kind = PANE_SAYS, .text = "there is no planned point to apply yet"}
               : (pane_request){.kind = PANE_APPLIES_POINT, .row = point};
}

bool fit_copy(const pane_view *v, char *text, size_t size)
{
    size_t point = fit_picked(v), used = 0;
    if (point == SIZE_MAX || v->feed->fit.point[point].knobs[0] == '\0') {
        return false;
    }
    text[0] = '\0';
    for (const char *at = v->feed->fit.point[point].knobs; *at != '\0' && used < size;) {
        size_t length = strcspn(at, " ");
        int put = snprintf(text + used, size - used, "%s-s %.*s", used > 0 ? " " : "", (int)length, at);
        used += put > 0 ? (size_t)put : 0;
        at += length + (at[length] == ' ');
    }
    return true;
}

static const char *progress_text(const feed *f, char text[96])
{
    char most[32] = "";
    size_t fitting = 0;
    for (size_t i = 0; i < f->fit.count; i++) {
        fitting += f->fit.point[i].plan.fits;
    }
    if (f->fit.asks) {
        snprintf(most, sizeof most, " of at most %d", HR_FIT_POINTS_MAX);
    }
    snprintf(text, 96, "%zu%s planned · %zu fit · %zu best", f->fit.count, most, fitting,
             fit_best_count(&f->fit));
    return text;
}

void fit_say(const pane_view *v, char text[PANE_TEXT_MAX])
{
    char progress[96], peak[FORMAT_MAX], seconds[FORMAT_MAX], change[HR_FIT_CHANGE_MAX];
    const fit_points *fit = &v->feed->fit;
    const size_t point = fit_picked(v);
    if (point == SIZE_MAX) {
        snprintf(text, PANE_TEXT_MAX, "%s", fit->refused[0] != '\0' ? fit->refused : source.empty);
        return;
    }
    const hr_fit_point *p = &fit->point[point];
    const byte_unit unit = fit_unit(v->feed);
    format_bytes(p->plan.peak_in_use_bytes, unit, peak);
    format_seconds(fit_seconds(p), seconds);
    fit_change(fit, point, change);
    snprintf(text, PANE_TEXT_MAX, "%s. The picked one, %s, peaks at %s %s and takes %s a step: it %s%s%s.",
             progress_text(v->feed, progress), p->knobs[0] == '\0' ? "the knobs as they are" : p->knobs, peak,
             unit.name, seconds, p->plan.fits ? "fits" : "does not fit",
             change[0] != '\0' ? ", and changes what is learned: " : "", change);
}

static const char *const permitted[] = {
    [HR_PERMIT_NOTHING] = "all learn the same",
    [HR_PERMIT_PRECISION] = "~ other precision",
    [HR_PERMIT_OPTIMIZER] = "~ other precision, optimizer",
};

// Also where nothing is permitted a batch may be split that a model normalises.
static const char *what_learns(const fit_points *fit)
{
    const bool splits =
        fit->permission == HR_PERMIT_NOTHING && fit->count > 0 && fit->point[0].normalises_batches;
    return splits ? "~ smaller batches" : permitted[fit->permission];
}

// ---- the pane -------------------------------------------------------------------------------------------------

static void draw(const canvas *c, const pane_view *v)
{
    char progress[96], right[128], look[TABLE_LOOK_MAX], title[TABLE_LOOK_MAX + 96];
    snprintf(right, sizeof right, "%s · %s", fit_unit(v->feed).name, progress_text(v->feed, progress));
    table_look(&v->tables[PANE_POINTS], &source, v->feed, c->area.h - 1, c->area.w, look);
    snprintf(title, sizeof title, "%s · %s%s", pane_title(PANE_POINTS), what_learns(&v->feed->fit), look);
    paint_rule(c, v->focused, title, v->feed->fit.count > 0 ? right : "");
    if (v->feed->fit.count == 0 && v->feed->fit.refused[0] != '\0') {
        canvas words = canvas_sub(c, 1, 1, c->area.h - 1, c->area.w - 2);
        paint_wrapped(&words, 0, ROLE_BAD, v->feed->fit.refused);
        return;
    }
    table_draw(c, 1, v->rows, &source, &v->tables[PANE_POINTS], v->focused);
}

const pane_ops pane_points = {.draw = draw,
                              .table = &source,
                              .table_y = 1,
                              .enter = fit_enter,
                              .enter_does = "apply",
                              .say = fit_say,
                              .copy = fit_copy};

// ---- its place ------------------------------------------------------------------------------------------------

void place_fit(layout *l, rect body, const layout_wish *wish)
{
    (void)wish;
    l->pane[PANE_FRONTIER] =
        body.w >= 120 ? cut_left(&body, body.w / 2 - 6) : cut_top(&body, body.h * 11 / 19);
    l->pane[PANE_POINTS] = body;
}
