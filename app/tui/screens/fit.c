// SPDX-License-Identifier: Apache-2.0
// Fit: the plans that were made as a table. The point under its cursor is the one that FRONTIER shows as picked.
#include "app/tui/screens/fit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/tui/fit_view.h"
#include "app/tui/screens/screens.h"

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
        if (fit_short(p, text)[0] == '\0') {
            snprintf(text, TABLE_CELL_MAX, "as they are");
        }
        return;
    case COLUMN_PEAK:
        format_bytes(p->plan.peak_in_use_bytes, fit_unit(f), value);
        break;
    case COLUMN_MISSING:
        if (!p->plan.fits) {
            format_bytes(p->plan.missing_bytes, fit_unit(f), value);
        }
        break;
    case COLUMN_SECONDS:
        format_seconds(fit_seconds(p), value);
        break;
    default:
        snprintf(value, sizeof value, isnan(slowdown) ? "—" : "%.2f×", slowdown);
        break;
    }
    snprintf(text, TABLE_CELL_MAX, "%s", value);
}

static double number(const void *of, size_t row, unsigned column)
{
    const feed *f = of;
    const hr_fit_point *p = point_at(f, row);
    return column == COLUMN_PEAK      ? (double)p->plan.peak_in_use_bytes
           : column == COLUMN_MISSING ? (double)p->plan.missing_bytes
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

size_t fit_picked(const app *a)
{
    size_t row = table_selected(&a->table[PANE_POINTS]);
    return row < a->feed.fit.count ? a->feed.fit.order[row] : SIZE_MAX;
}

void fit_pick(app *a, size_t point)
{
    table_view *v = &a->table[PANE_POINTS];
    for (size_t i = 0; i < v->count; i++) {
        if (v->order[i] < a->feed.fit.count && a->feed.fit.order[v->order[i]] == point) {
            v->cursor = i;
            table_move(v, &source, &a->feed, 0); // notes the row
            return;
        }
    }
    feed_say(&a->feed, MESSAGE_NOTE, "the next point is hidden by the filter of [points]: / shows all");
}

void fit_enter(app *a)
{
    size_t point = fit_picked(a);
    if (point == SIZE_MAX) {
        feed_say(&a->feed, MESSAGE_NOTE, "there is no planned point to apply yet");
    } else {
        (void)fit_apply(&a->feed, point);
    }
}

bool fit_copy(const app *a, char *text, size_t size)
{
    size_t point = fit_picked(a), used = 0;
    if (point == SIZE_MAX || a->feed.fit.point[point].knobs[0] == '\0') {
        return false;
    }
    text[0] = '\0';
    for (const char *at = a->feed.fit.point[point].knobs; *at != '\0' && used < size;) {
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

void fit_say(app *a)
{
    char progress[96], peak[FORMAT_MAX], seconds[FORMAT_MAX], change[HR_FIT_CHANGE_MAX];
    size_t point = fit_picked(a);
    if (point == SIZE_MAX) {
        feed_say(&a->feed, MESSAGE_NOTE, "%s",
                 a->feed.fit.refused[0] != '\0' ? a->feed.fit.refused : source.empty);
        return;
    }
    const hr_fit_point *p = &a->feed.fit.point[point];
    byte_unit unit = fit_unit(&a->feed);
    format_bytes(p->plan.peak_in_use_bytes, unit, peak);
    format_seconds(fit_seconds(p), seconds);
    fit_change(&a->feed.fit, point, change);
    feed_say(&a->feed, MESSAGE_NOTE, "%s. The picked one, %s, peaks at %s %s and takes %s a step: it %s%s%s.",
             progress_text(&a->feed, progress), p->knobs[0] == '\0' ? "the knobs as they are" : p->knobs,
             peak, unit.name, seconds, p->plan.fits ? "fits" : "does not fit",
             change[0] != '\0' ? ", and changes what is learned: " : "", change);
}

static const char *const permitted[] = {
    [HR_PERMIT_NOTHING] = "all learn the same",
    [HR_PERMIT_PRECISION] = "~ other precision",
    [HR_PERMIT_OPTIMIZER] = "~ other precision, optimizer",
};

// ---- the pane -------------------------------------------------------------------------------------------------

static void draw(const canvas *c, const app *a)
{
    char progress[96], right[128], look[TABLE_LOOK_MAX], title[TABLE_LOOK_MAX + 96];
    bool focused = a->focus == PANE_POINTS;
    snprintf(right, sizeof right, "%s · %s", fit_unit(&a->feed).name, progress_text(&a->feed, progress));
    table_look(&a->table[PANE_POINTS], &source, &a->feed, c->area.h - 1, c->area.w, look);
    snprintf(title, sizeof title, "%s · %s%s", pane_title(PANE_POINTS), permitted[a->feed.fit.permission],
             look);
    paint_rule(c, focused, title, a->feed.fit.count > 0 ? right : "");
    if (a->feed.fit.count == 0 && a->feed.fit.refused[0] != '\0') {
        canvas words = canvas_sub(c, 1, 1, c->area.h - 1, c->area.w - 2);
        paint_wrapped(&words, 0, ROLE_BAD, a->feed.fit.refused);
        return;
    }
    table_draw(c, 1, &a->feed, &source, &a->table[PANE_POINTS], focused);
}

const pane_ops pane_points = {.by_app.draw = draw,
                              .table = &source,
                              .table_of_feed = true,
                              .table_y = 1,
                              .by_app.enter = fit_enter,
                              .enter_does = "apply",
                              .by_app.say = fit_say,
                              .by_app.copy = fit_copy};

// ---- its place ------------------------------------------------------------------------------------------------

void place_fit(layout *l, rect body, const layout_wish *wish)
{
    (void)wish;
    l->pane[PANE_FRONTIER] =
        body.w >= 120 ? cut_left(&body, body.w / 2 - 6) : cut_top(&body, body.h * 11 / 19);
    l->pane[PANE_POINTS] = body;
}
