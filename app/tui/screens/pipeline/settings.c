// SPDX-License-Identifier: Apache-2.0
// SETTINGS: the knobs that decide the pipeline, and beside each what the values next to its own would do to the host's memory,
// to what a step copies and to how long it waits.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/screens/pipeline/pipeline.h"

enum { COLUMN_KNOB, COLUMN_VALUE, COLUMN_HOST, COLUMN_MEANING };
enum { NEIGHBOUR_ROWS = 2 };

static const table_column setting_columns[] = {
    [COLUMN_KNOB] = {.term = "knob", .width = 15},
    [COLUMN_VALUE] = {.term = "value", .width = 8, .middle = true},
    [COLUMN_HOST] = {.term = "host",
                     .width = 12,
                     .number = true,
                     .line = "what the values left and right of this one would add to it, planned"},
    [COLUMN_MEANING] = {.term = "meaning", .from_width = 56},
};

// Of the panel: the pipeline's own, and the batch it makes.
static bool is_setting(hr_knob_id id)
{
    const char *key = hr_knob_rows(NULL)[id].key;
    return strncmp(key, "pipeline.", 9) == 0 || id == HR_KNOB_BATCH_SIZE || id == HR_KNOB_BATCH_REMAINDER;
}

// The panel's index of a row; the panel's size beyond the last.
static size_t panel_index(size_t row)
{
    size_t all, at = 0;
    const hr_knob_id *panel = knob_edit_panel(&all);
    for (; at < all; at++) {
        if (is_setting(panel[at]) && row-- == 0) {
            break;
        }
    }
    return at;
}

static size_t count_settings(const void *of)
{
    size_t all, rows = 0;
    (void)of;
    knob_edit_panel(&all);
    while (panel_index(rows) < all) {
        rows++;
    }
    return rows;
}

static hr_knob_id setting_at(size_t row)
{
    size_t all;
    const hr_knob_id *panel = knob_edit_panel(&all);
    const size_t at = panel_index(row);
    return at < all ? panel[at] : HR_KNOB_COUNT;
}

// ---- neighbours -----------------------------------------------------------------------------------------------

// NULL: nothing is known of it, or of the knobs as they are.
static const whatif_cell *neighbour(const feed *f, hr_knob_id id, int side)
{
    const whatif_cell *cell = feed_whatif(f, id, side), *present = &f->answers.present;
    return cell != NULL && !cell->refused && present->known && !present->refused ? cell : NULL;
}

static byte_unit host_unit(const feed *f)
{
    const uint64_t bytes = f->answers.present.plan.host_bytes;
    return byte_unit_for(bytes == HR_NONE ? 0 : bytes);
}

static const char *delta(const feed *f, uint64_t bytes, uint64_t present_bytes, char text[FORMAT_MAX])
{
    if (bytes == HR_NONE || present_bytes == HR_NONE) {
        snprintf(text, FORMAT_MAX, "—");
        return text;
    }
    return format_delta_bytes((double)bytes - (double)present_bytes, host_unit(f), text);
}

// "-1.50 +1.50"
static void say_host_deltas(const feed *f, hr_knob_id id, char text[TABLE_CELL_MAX])
{
    char change[WHATIF_SIDES][FORMAT_MAX];
    for (int side = 0; side < WHATIF_SIDES; side++) {
        const whatif_cell *cell = neighbour(f, id, side);
        snprintf(change[side], FORMAT_MAX, "%s", "·");
        if (cell != NULL && cell->plan.host_missing_bytes > 0) {
            snprintf(change[side], FORMAT_MAX, "%s", "OOM");
        } else if (cell != NULL) {
            delta(f, cell->plan.host_bytes, f->answers.present.plan.host_bytes, change[side]);
        }
    }
    snprintf(text, TABLE_CELL_MAX, "%s %s", change[WHATIF_LESS], change[WHATIF_MORE]);
}

typedef enum plan_form { FORM_WHOLE, FORM_SHORT, FORM_SHORTEST, FORMS } plan_form;

// "host -1.50 p, h2d ±0 p, stall 3.1% e"; with less room the letters stand in the title, and what does not change goes.
static void say_plan(const feed *f, const whatif_cell *cell, plan_form form, char *text, size_t size)
{
    const hr_whatif *plan = &cell->plan, *present = &f->answers.present.plan;
    const char *letter = cell->estimated ? "e" : "p";
    char host[FORMAT_MAX], h2d[FORMAT_MAX], stall[FORMAT_MAX];
    delta(f, plan->host_bytes, present->host_bytes, host);
    delta(f, plan->h2d_bytes, present->h2d_bytes, h2d);
    format_percent(plan->stall, stall);
    if (form == FORM_WHOLE) {
        snprintf(text, size, "host %s %s, h2d %s %s, stall %s e", host, letter, h2d, letter, stall);
        return;
    }
    snprintf(stall, sizeof stall, isfinite(plan->stall) ? "%.0f%%" : "—", 100 * plan->stall);
    if (form == FORM_SHORT) {
        snprintf(text, size, "host %s h2d %s stall %s", host, h2d, stall);
    } else if (plan->h2d_bytes == present->h2d_bytes) {
        snprintf(text, size, "host %s stall %s", host, stall);
    } else {
        snprintf(text, size, "%s, h2d %s, %s", host, h2d, stall);
    }
}

// One line: the value beside the present one, and what it would do.
static void draw_neighbour(const canvas *c, int y, const feed *f, hr_knob_id id, int side)
{
    char value[HR_KNOB_TEXT_MAX] = "", plan[160], line[sizeof value + sizeof plan + 16];
    const whatif_cell *cell = feed_whatif(f, id, side), *known = neighbour(f, id, side);
    const char *arrow = side == WHATIF_LESS ? "◂" : "▸";
    if (f->unknown || !knob_edit_reach(&f->knobs, id, side == WHATIF_LESS ? KNOB_EDIT_LESS : KNOB_EDIT_MORE,
                                       f->live.limit_bytes, value, NULL)) {
        return;
    }
    if (known == NULL) {
        snprintf(line, sizeof line, "%s %s%s", arrow, value,
                 cell != NULL && cell->refused ? ": refused here" : "");
        paint_text(c, y, 1, c->area.w - 2, ROLE_DIM, line);
        return;
    }
    for (int form = FORM_WHOLE; form < FORMS; form++) {
        say_plan(f, known, (plan_form)form, plan, sizeof plan);
        snprintf(line, sizeof line, "%s %s%s %s", arrow, value, known->plan.fits ? "" : " !", plan);
        if (glyphs_width(c->glyphs, line) <= c->area.w - 1) {
            break;
        }
    }
    paint_text(c, y, 1, c->area.w - 1, known->plan.fits ? ROLE_TEXT : ROLE_BAD, line);
}

// ---- the table ------------------------------------------------------------------------------------------------

// "prefetch": the screen says of what.
static const char *short_key(const char *key)
{
    static const char group[] = "pipeline.";
    return strncmp(key, group, sizeof group - 1) == 0 ? key + sizeof group - 1 : key;
}

static void setting_cell(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    const feed *f = of;
    char value[HR_KNOB_TEXT_MAX], deltas[TABLE_CELL_MAX];
    hr_knob_id id = setting_at(row);
    const hr_knob_row *knob = &hr_knob_rows(NULL)[id];
    hr_knob_format(&f->knobs, id, value);
    say_host_deltas(f, id, deltas);
    const char *cells[] = {[COLUMN_KNOB] = short_key(knob->key),
                           [COLUMN_VALUE] = value[0] == '\0' ? "unset" : value,
                           [COLUMN_HOST] = deltas,
                           [COLUMN_MEANING] = knob->line};
    snprintf(text, TABLE_CELL_MAX, "%.*s", TABLE_CELL_MAX - 1, cells[column]);
}

static uint64_t settings_version(const void *of)
{
    const feed *f = of;
    size_t answered = 0;
    for (size_t row = 0; setting_at(row) < HR_KNOB_COUNT; row++) {
        answered += feed_whatif(f, setting_at(row), WHATIF_LESS) != NULL;
        answered += feed_whatif(f, setting_at(row), WHATIF_MORE) != NULL;
    }
    return f->question ^ (uint64_t)f->turned.done << 32 ^ (uint64_t)answered << 48;
}

static const table_source settings = {
    .columns = setting_columns,
    .column_count = sizeof setting_columns / sizeof *setting_columns,
    .count = count_settings,
    .cell = setting_cell,
    .version = settings_version,
    .empty = "This build has no knobs of the pipeline.",
};

static void draw_settings(const canvas *c, const pane_view *v)
{
    const size_t row = table_selected(&v->tables[PANE_SETTINGS]);
    char right[48];
    snprintf(right, sizeof right, "Δ %s p · stall e", host_unit(v->feed).name);
    if (row != SIZE_MAX) {
        draw_neighbour(c, 1, v->feed, setting_at(row), WHATIF_LESS);
        draw_neighbour(c, 2, v->feed, setting_at(row), WHATIF_MORE);
    }
    pane_draw_table(c, v, right);
}

static pane_request enter_setting(const pane_view *v, void *own)
{
    (void)own;
    const size_t row = table_selected(&v->tables[PANE_SETTINGS]);
    return row == SIZE_MAX ? (pane_request){0}
                           : (pane_request){.kind = PANE_EDITS_KNOB, .knob = panel_index(row)};
}

static size_t say_side(const feed *f, hr_knob_id id, int side, char *text, size_t size)
{
    const whatif_cell *cell = neighbour(f, id, side);
    char plan[160];
    if (cell == NULL) {
        return 0;
    }
    say_plan(f, cell, FORM_WHOLE, plan, sizeof plan);
    return (size_t)snprintf(text, size, " With %s: %s%s, in %s.", cell->value,
                            cell->plan.fits ? "" : "does not fit, ", plan, host_unit(f).name);
}

static void say_setting(const pane_view *v, char text[PANE_TEXT_MAX])
{
    const size_t row = table_selected(&v->tables[PANE_SETTINGS]);
    char value[TABLE_CELL_MAX];
    if (row != SIZE_MAX) {
        const hr_knob_id id = setting_at(row);
        const hr_knob_row *knob = &hr_knob_rows(NULL)[id];
        setting_cell(v->feed, row, COLUMN_VALUE, value);
        size_t used =
            (size_t)snprintf(text, PANE_TEXT_MAX, "%.80s, %.400s, is %.400s.", knob->key, knob->line, value);
        used += say_side(v->feed, id, WHATIF_LESS, text + used, PANE_TEXT_MAX - used);
        (void)say_side(v->feed, id, WHATIF_MORE, text + used, PANE_TEXT_MAX - used);
    }
}

const pane_ops pane_settings = {.draw = draw_settings,
                                .table = &settings,
                                .table_y = 1 + NEIGHBOUR_ROWS,
                                .enter = enter_setting,
                                .enter_does = "edit",
                                .say = say_setting,
                                .term = "settings"};
