// SPDX-License-Identifier: Apache-2.0
#include "app/tui/pane/graph.h"

#include <stdio.h>
#include <string.h>

enum {
    AXIS_WIDTH = 7,
    LEGEND_SHORT = 9,
    LEGEND_LONG = 22,
    LEGEND_LONG_MIN = 64, // columns of a pane that has room for names
    COLUMNS_MAX = 512,
};

// ---- scale ----------------------------------------------------------------------------------------------------

static graph_scale scale_for(const feed *f, uint64_t pinned_bytes, uint64_t peak_bytes)
{
    const hr_whatif *plan = feed_waiting_plan(f);
    graph_scale scale = graph_scale_of(
        pinned_bytes, plan != NULL ? plan->limit_bytes : feed_run_state(f)->limit_bytes, peak_bytes);
    scale.rest_is_waste = feed_run_state(f)->attributed;
    return scale;
}

graph_scale graph_scale_of(uint64_t pinned_bytes, uint64_t limit_bytes, uint64_t peak_bytes)
{
    graph_scale scale = {.limit_bytes = limit_bytes, .pinned_bytes = pinned_bytes};
    uint64_t highest = peak_bytes > scale.pinned_bytes ? peak_bytes : scale.pinned_bytes;
    if (limit_bytes > 0 && highest >= limit_bytes / 4) {
        scale.full_bytes =
            highest > limit_bytes ? highest : limit_bytes; // the limit may have been lowered since
        scale.top_bytes = (double)scale.full_bytes * 1.04;
    } else {
        scale.top_bytes = highest > 0 ? (double)highest * 1.25 : (double)limit_bytes * 1.04;
        scale.limit_bytes = highest > 0 ? 0 : limit_bytes;
    }
    scale.top_bytes = scale.top_bytes > 0 ? scale.top_bytes : 1;
    scale.full_bytes = scale.full_bytes > 0 ? scale.full_bytes : scale.limit_bytes;
    return scale;
}

// ---- one cell -------------------------------------------------------------------------------------------------

// What of each band lies within one cell, in eighths.
typedef struct cell_share {
    int total;             // filled eighths from below
    int lower_eighths;     // of the lowest band
    unsigned lower, upper; // lowest band, and the largest of those above it
    unsigned largest;
} cell_share;

static cell_share share_of(const graph_column *column, const graph_scale *scale, int rows, int row)
{
    cell_share share = {.lower = BAND_UNKNOWN, .upper = BAND_UNKNOWN, .largest = BAND_UNKNOWN};
    int below = row * 8, edge = 0, upper_eighths = 0, largest_eighths = 0;
    double sum = 0;
    for (int i = 0; i < BAND_COUNT; i++) {
        unsigned band = band_stack[i];
        sum += (double)column->band_bytes[band];
        int next = (int)lround(fmin(sum / scale->top_bytes, 1) * rows * 8);
        int low = edge > below ? edge : below, high = next < below + 8 ? next : below + 8;
        int eighths = high - low;
        edge = next;
        if (eighths <= 0) {
            continue;
        }
        if (share.total == 0) {
            share.lower = band;
            share.lower_eighths = eighths;
        } else if (eighths > upper_eighths) {
            share.upper = band;
            upper_eighths = eighths;
        }
        if (eighths > largest_eighths) {
            share.largest = band;
            largest_eighths = eighths;
        }
        share.total += eighths;
    }
    return share;
}

static char band_letter(const graph_scale *scale, unsigned band)
{
    char rest = scale->rest_is_waste ? '%' : '?';
    return band < HR_CATEGORY_COUNT ? hr_category_letter((hr_category)band) : rest;
}

// Two colours in one cell where the terminal has them; otherwise the larger band has the cell.
static void draw_share(const canvas *c, int y, int x, const graph_scale *scale, const cell_share *share)
{
    bool letters = c->glyphs->fills_by_letter || theme_fills_by_letter(c->theme);
    style s = theme_band(c->theme, share->largest);
    if (share->total == 0) {
        return;
    }
    if (letters) {
        if (share->total >= 4) {
            paint_cell(c, y, x, s, (wchar_t)band_letter(scale, share->largest));
        }
    } else if (share->total < 8 || c->glyphs->area_braille) {
        paint_cell(c, y, x, s, glyphs_bar(c->glyphs, share->total));
    } else if (share->lower_eighths == 8) {
        paint_cell(c, y, x, s, glyphs_bar(c->glyphs, 8));
    } else {
        s = theme_band(c->theme, share->lower);
        s.background = theme_band(c->theme, share->upper).foreground;
        paint_cell(c, y, x, s, glyphs_bar(c->glyphs, share->lower_eighths));
    }
}

static int row_of(const graph_scale *scale, double bytes, int rows)
{
    int row = (int)(fmin(bytes / scale->top_bytes, 1) * rows);
    return row < 0 ? 0 : row >= rows ? rows - 1 : row;
}

static void draw_column(const canvas *c, int x, const graph_scale *scale, const graph_column *column)
{
    int rows = c->area.h;
    int pool = row_of(scale, (double)column->pool_bytes, rows);
    int filled = 0;
    for (int row = 0; row < rows && column->band_bytes != NULL; row++) {
        cell_share share = share_of(column, scale, rows, row);
        draw_share(c, rows - 1 - row, x, scale, &share);
        filled = share.total > 0 ? row + 1 : filled;
    }
    if (column->band_bytes != NULL && pool >= filled && (double)column->pool_bytes <= scale->top_bytes) {
        paint_cell(c, rows - 1 - pool, x, theme_role(c->theme, ROLE_POOL), c->glyphs->pool);
    }
}

// A horizontal line through the cells that are still empty.
static void draw_level(const canvas *c, const graph_scale *scale, uint64_t bytes, role r,
                       const graph_column *columns, int count)
{
    int rows = c->area.h;
    int row = row_of(scale, (double)bytes, rows);
    if (bytes == 0 || (double)bytes > scale->top_bytes) {
        return;
    }
    for (int x = 0; x < c->area.w; x++) {
        const graph_column *column = x < count ? &columns[x] : NULL;
        bool known = column != NULL && column->band_bytes != NULL;
        cell_share share = known ? share_of(column, scale, rows, row) : (cell_share){0};
        if (share.total < 4) {
            paint_cell(c, rows - 1 - row, x, theme_role(c->theme, r), c->glyphs->dashed);
        }
    }
}

void graph_draw(const canvas *c, const graph_scale *scale, const graph_column *columns, int count)
{
    for (int x = 0; x < count; x++) {
        draw_column(c, x, scale, &columns[x]);
    }
    draw_level(c, scale, scale->pinned_bytes, ROLE_BASELINE, columns, count);
    draw_level(c, scale, scale->limit_bytes, ROLE_LIMIT, columns, count);
}

// ---- axis and legend ------------------------------------------------------------------------------------------

int graph_plot_width(int width)
{
    int plot = width - AXIS_WIDTH - (width >= LEGEND_LONG_MIN ? LEGEND_LONG : LEGEND_SHORT);
    return plot < 0 ? 0 : plot > COLUMNS_MAX ? COLUMNS_MAX : plot;
}

// With as many decimals as the axis has room for: the limit may be much larger than the peak that chose the unit.
static const char *axis_bytes(double bytes, byte_unit unit, char text[FORMAT_MAX])
{
    while (strlen(format_bytes((uint64_t)bytes, unit, text)) > AXIS_WIDTH - 1 && unit.decimals > 0) {
        unit.decimals--;
    }
    return text;
}

// In the place of the axis' own label.
static void label_level(const canvas *c, const graph_scale *scale, uint64_t bytes, role r, byte_unit unit)
{
    char text[FORMAT_MAX];
    int y = c->area.h - 1 - row_of(scale, (double)bytes, c->area.h);
    paint_blank(c, y, 0, AXIS_WIDTH - 1, theme_role(c->theme, ROLE_TEXT));
    paint_right(c, y, 0, AXIS_WIDTH - 1, r, axis_bytes((double)bytes, unit, text));
}

void graph_axis(const canvas *c, const graph_scale *scale, byte_unit unit)
{
    int rows = c->area.h, used = -1;
    double full = scale->full_bytes > 0 ? (double)scale->full_bytes : scale->top_bytes;
    bool limit_is_full = scale->limit_bytes > 0 && scale->limit_bytes == scale->full_bytes;
    for (int quarter = 4; quarter >= 0; quarter -= rows < 8 ? 2 : 1) {
        char text[FORMAT_MAX];
        int y = rows - 1 - row_of(scale, full * quarter / 4, rows);
        if (y == used) {
            continue;
        }
        used = y;
        role r = quarter == 4 && limit_is_full ? ROLE_LIMIT : ROLE_DIM;
        paint_right(c, y, 0, AXIS_WIDTH - 1, r, axis_bytes(full * quarter / 4, unit, text));
    }
    if (scale->pinned_bytes > 0 &&
        (scale->limit_bytes == 0 || row_of(scale, (double)scale->pinned_bytes, rows) !=
                                        row_of(scale, (double)scale->limit_bytes, rows))) {
        label_level(c, scale, scale->pinned_bytes, ROLE_BASELINE, unit);
    }
    if (!limit_is_full && scale->limit_bytes > 0) {
        label_level(c, scale, scale->limit_bytes, ROLE_LIMIT, unit);
    }
}

// How many bands hold more: where there are more bands than rows, the small ones have none.
static int rank_of(const uint64_t *band_bytes, unsigned band)
{
    int rank = 0;
    for (unsigned i = 0; i < BAND_COUNT; i++) {
        bool more = band_bytes[i] > band_bytes[band] || (band_bytes[i] == band_bytes[band] && i < band);
        rank += more ? 1 : 0;
    }
    return rank;
}

void graph_legend(const canvas *c, const graph_scale *scale, const uint64_t *band_bytes, byte_unit unit)
{
    bool names = c->area.w >= LEGEND_LONG - 1;
    int y = 0;
    for (int i = BAND_COUNT - 1; i >= 0 && y < c->area.h; i--) {
        unsigned band = band_stack[i];
        if (band_bytes == NULL || band_bytes[band] == 0 || rank_of(band_bytes, band) >= c->area.h) {
            continue;
        }
        char text[FORMAT_MAX];
        const char *rest = scale->rest_is_waste ? "waste" : "unknown";
        const char *name = band < HR_CATEGORY_COUNT ? hr_category_name((hr_category)band) : rest;
        paint_cell(c, y, 0, theme_letter(c->theme, band), (wchar_t)band_letter(scale, band));
        if (names) {
            paint_text(c, y, 2, 12, ROLE_DIM, name);
        }
        paint_right(c, y, names ? 14 : 1, c->area.w - (names ? 14 : 1), ROLE_TEXT,
                    format_bytes(band_bytes[band], unit, text));
        y++;
    }
}

static wchar_t mark_glyph(uint8_t marks)
{
    return marks & MARK_OOM ? L'!' : marks & MARK_KNOB ? L'▲' : L'\0';
}

static bool has_marks(const graph_column *columns, int from, int end)
{
    bool any = false;
    for (int x = from < 0 ? 0 : from; x < end && !any; x++) {
        any = mark_glyph(columns[x].marks) != L'\0';
    }
    return any;
}

// How long ago a column was, as far left as no mark stands in the words.
static void label_age(const canvas *c, const graph_column *columns, int count, double column_seconds)
{
    char age[FORMAT_MAX], text[2 * FORMAT_MAX];
    for (int x = 0; x < count / 2; x++) {
        snprintf(text, sizeof text, "%s ago", format_window((count - x) * column_seconds, age));
        const int width = glyphs_width(c->glyphs, text);
        if (x + width < count && !has_marks(columns, x - 1, x + width + 1)) { // and a blank on either side
            paint_text(c, 0, x, width, ROLE_DIM, text);
            return;
        }
    }
}

// The row below the time graph: when its columns were, and where a knob was turned or memory ran out.
static void draw_below(const canvas *c, const graph_column *columns, int count, double column_seconds)
{
    enum { NOW_WIDTH = 4 };
    label_age(c, columns, count, column_seconds);
    if (!has_marks(columns, count - NOW_WIDTH, count)) {
        paint_right(c, 0, 0, count, ROLE_DIM, "now");
    }
    for (int x = 0; x < count; x++) {
        wchar_t glyph = mark_glyph(columns[x].marks);
        if (glyph != L'\0') {
            role r = glyph == L'!' ? ROLE_BAD : ROLE_WARN;
            paint_cell(c, 0, x, theme_role(c->theme, r), glyphs_fold(c->glyphs, glyph));
        }
    }
}

// ---- with axis and legend --------------------------------------------------------------------------------------------

typedef struct graph_parts {
    canvas axis, plot, legend, below, when;
} graph_parts;

// Below the legend: of which moment it is.
static void draw_when(const canvas *c, const char *when, const char *whole)
{
    paint_text(c, 0, 0, c->area.w, ROLE_DIM, c->area.w >= LEGEND_LONG - 1 ? whole : when);
}

static graph_parts parts_of(const canvas *c)
{
    int plot = graph_plot_width(c->area.w), rows = c->area.h - 2;
    return (graph_parts){
        .axis = canvas_sub(c, 1, 0, rows, AXIS_WIDTH),
        .plot = canvas_sub(c, 1, AXIS_WIDTH, rows, plot),
        .legend = canvas_sub(c, 1, AXIS_WIDTH + plot + 1, rows, c->area.w - AXIS_WIDTH - plot - 1),
        .below = canvas_sub(c, c->area.h - 1, AXIS_WIDTH, 1, plot),
        .when = canvas_sub(c, c->area.h - 1, AXIS_WIDTH + plot + 1, 1, c->area.w - AXIS_WIDTH - plot - 1),
    };
}

// The bar alone where the name has no room.
void graph_phase(const canvas *c, int x, const char *name)
{
    int width = c->area.w - x - 1;
    paint_cell(c, 0, x, theme_role(c->theme, ROLE_DIM), c->glyphs->separator);
    if (glyphs_width(c->glyphs, name) <= width) {
        paint_text(c, 0, x + 1, width, ROLE_DIM, name);
    }
}

static void draw_steps_phases(const canvas *c, const profile *p)
{
    int last = -1;
    for (int x = 0; x < c->area.w; x++) {
        const profile_point *point = profile_column(p, (uint32_t)x, (uint32_t)c->area.w);
        if (point != NULL && point->phase != last) {
            last = point->phase;
            paint_blank(c, 0, x, c->area.w - x, theme_role(c->theme, ROLE_DIM));
            graph_phase(c, x, hr_phase_name((hr_phase)point->phase));
        }
    }
}

void graph_step(const canvas *c, const feed *f, uint64_t pinned_bytes)
{
    const run_state *m = feed_run_state(f);
    const profile *p = &m->step_last;
    graph_parts parts = parts_of(c);
    graph_column columns[COLUMNS_MAX];
    int count = p->count > 0 ? parts.plot.area.w : 0;
    for (int x = 0; x < count; x++) {
        const profile_point *point = profile_column(p, (uint32_t)x, (uint32_t)count);
        columns[x] = (graph_column){.band_bytes = point->band_bytes, .pool_bytes = m->heap.pool_bytes};
    }
    graph_scale scale = scale_for(f, pinned_bytes, m->step_peak_bytes);
    graph_axis(&parts.axis, &scale, feed_unit(f));
    graph_draw(&parts.plot, &scale, columns, count);
    draw_steps_phases(&parts.below, p);
    const profile_point *highest = profile_column(p, 0, 1);
    graph_legend(&parts.legend, &scale, highest == NULL ? NULL : highest->band_bytes, feed_unit(f));
    draw_when(&parts.when, "at peak", "at the step's peak");
}

void graph_time(const canvas *c, const feed *f, uint64_t pinned_bytes, unsigned level)
{
    const run_state *m = feed_run_state(f);
    graph_parts parts = parts_of(c);
    graph_column columns[COLUMNS_MAX] = {0};
    int count = parts.plot.area.w;
    for (int x = 0; x < count; x++) {
        const history_bucket *bucket = history_at(&m->history, level, (uint32_t)(count - 1 - x));
        if (bucket != NULL) {
            columns[x] =
                (graph_column){bucket->band_bytes, bucket->min_bytes, bucket->pool_bytes, bucket->marks};
        }
    }
    graph_scale scale = scale_for(f, pinned_bytes, history_peak_bytes(&m->history, level, (uint32_t)count));
    graph_axis(&parts.axis, &scale, feed_unit(f));
    graph_draw(&parts.plot, &scale, columns, count);
    draw_below(&parts.below, columns, count, (double)history_width_ns(level) * 1e-9);
    graph_legend(&parts.legend, &scale, count > 0 ? columns[count - 1].band_bytes : NULL, feed_unit(f));
    draw_when(&parts.when, "newest", "newest column's peak");
}
