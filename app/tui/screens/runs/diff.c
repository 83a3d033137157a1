// SPDX-License-Identifier: Apache-2.0
// DIFF: two runs side by side: every knob that differs, then every counter that is known.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/tui/screens/runs/runs.h"

enum {
    COLUMN_NAME,
    COLUMN_A,
    COLUMN_B,
    COLUMN_DELTA,
    COLUMN_PERCENT,
    ROW_PRESET = HR_KNOB_COUNT + MEASURE_ALL,
    ROWS_MAX
};

static const table_column columns[] = {
    [COLUMN_NAME] = {.term = "name"},
    [COLUMN_A] = {.term = "a", .width = 8, .number = true},
    [COLUMN_B] = {.term = "b", .width = 8, .number = true},
    [COLUMN_DELTA] = {.term = "delta", .width = 8, .number = true},
    [COLUMN_PERCENT] = {.term = "percent", .width = 8, .number = true, .from_width = 50},
};

// A row is a knob (below HR_KNOB_COUNT), behind them a measure, or the preset.
typedef struct diff_rows {
    size_t count;
    unsigned char row[ROWS_MAX];
} diff_rows;

_Static_assert(ROWS_MAX < 256, "a row fits a byte");

static diff_rows rows_of(const run_pair *pair)
{
    diff_rows rows = {.count = 0};
    if (pair->b != NULL && strcmp(pair->a->preset, pair->b->preset) != 0) {
        rows.row[rows.count++] = ROW_PRESET;
    }
    for (int id = 0; pair->b != NULL && id < HR_KNOB_COUNT; id++) {
        if (run_knob_differs(pair->a, pair->b, (hr_knob_id)id)) {
            rows.row[rows.count++] = (unsigned char)id;
        }
    }
    for (int id = 0; pair->b != NULL && id < MEASURE_ALL; id++) {
        if (measures_tell((measure_id)id, &pair->a->measures, &pair->b->measures)) {
            rows.row[rows.count++] = (unsigned char)(HR_KNOB_COUNT + id);
        }
    }
    return rows;
}

static size_t count(const void *of)
{
    run_pair pair = runs_shown(of);
    return rows_of(&pair).count;
}

static uint64_t key(const void *of, size_t row)
{
    run_pair pair = runs_shown(of);
    return rows_of(&pair).row[row];
}

static uint64_t version(const void *of)
{
    const runs_view *v = of;
    run_pair pair = runs_shown(v);
    uint64_t numbers = pair.b == NULL ? 0 : (uint64_t)pair.a->number << 16 ^ pair.b->number;
    return feed_runs(v->feed)->version << 32 ^ numbers;
}

static const char *without_bytes(const char *term, char text[TABLE_CELL_MAX])
{
    size_t length = strlen(term);
    bool cuts = length > 6 && strcmp(term + length - 6, "_bytes") == 0;
    snprintf(text, TABLE_CELL_MAX, "%.*s", (int)(cuts ? length - 6 : length), term);
    return text;
}

static void preset_cell(const run_pair *pair, unsigned column, char text[TABLE_CELL_MAX])
{
    if (column <= COLUMN_B) {
        snprintf(text, TABLE_CELL_MAX, "%s",
                 column == COLUMN_NAME ? "preset"
                 : column == COLUMN_A  ? pair->a->preset
                                       : pair->b->preset);
    }
}

static void knob_cell(const run_pair *pair, hr_knob_id id, unsigned column, char text[TABLE_CELL_MAX])
{
    char value[HR_KNOB_TEXT_MAX] = "";
    if (column == COLUMN_NAME) {
        snprintf(text, TABLE_CELL_MAX, "%s", hr_knob_rows(NULL)[id].key);
    } else if (column <= COLUMN_B) {
        hr_knob_format(column == COLUMN_A ? &pair->a->knobs : &pair->b->knobs, id, value);
        snprintf(text, TABLE_CELL_MAX, "%.*s", TABLE_CELL_MAX - 1, value[0] == '\0' ? "unset" : value);
    }
}

static void measure_cell(const run_pair *pair, measure_id id, unsigned column, char text[TABLE_CELL_MAX])
{
    char value[FORMAT_MAX] = "";
    double before = pair->a->measures.value[id], after = pair->b->measures.value[id];
    byte_unit unit = runs_unit(pair);
    switch (column) {
    case COLUMN_NAME:
        without_bytes(measure_row_of(id)->term, text);
        return;
    case COLUMN_A:
        measure_format(id, before, unit, value);
        break;
    case COLUMN_B:
        measure_format(id, after, unit, value);
        break;
    case COLUMN_DELTA:
        measure_format_delta(id, before, after, unit, value);
        break;
    default:
        measure_format_percent(before, after, value);
        break;
    }
    snprintf(text, TABLE_CELL_MAX, "%s", value);
}

static void cell(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    run_pair pair = runs_shown(of);
    unsigned what = rows_of(&pair).row[row];
    if (what == ROW_PRESET) {
        preset_cell(&pair, column, text);
    } else if (what < HR_KNOB_COUNT) {
        knob_cell(&pair, (hr_knob_id)what, column, text);
    } else {
        measure_cell(&pair, (measure_id)(what - HR_KNOB_COUNT), column, text);
    }
}

static double number(const void *of, size_t row, unsigned column)
{
    run_pair pair = runs_shown(of);
    unsigned what = rows_of(&pair).row[row];
    if (what < HR_KNOB_COUNT || what == ROW_PRESET) {
        return UNKNOWN;
    }
    double before = pair.a->measures.value[what - HR_KNOB_COUNT];
    double after = pair.b->measures.value[what - HR_KNOB_COUNT];
    return column == COLUMN_A         ? before
           : column == COLUMN_B       ? after
           : column == COLUMN_PERCENT ? (after - before) / before
                                      : after - before;
}

static role role_of(const void *of, size_t row)
{
    run_pair pair = runs_shown(of);
    unsigned what = rows_of(&pair).row[row];
    return what < HR_KNOB_COUNT || what == ROW_PRESET ? ROLE_WARN : ROLE_TEXT;
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
    .empty = "One run alone has nothing to differ from. Turn a knob, or mark two runs with t.",
};

static const char *verdict(const run_pair *pair, char *text, size_t size)
{
    if (pair->b == NULL) {
        snprintf(text, size, "%s", source.empty);
    } else {
        run_verdict(pair, text, size);
    }
    return text;
}

// The verdict takes rows from below, as many as it needs.
static void draw(const canvas *c, const pane_view *v)
{
    char right[3 * FORMAT_MAX], one[FORMAT_MAX], other[FORMAT_MAX], text[512];
    size_t start, length;
    run_pair pair = runs_shown(v->rows);
    int rows = 0;
    right[0] = '\0';
    if (pair.b != NULL) {
        snprintf(right, sizeof right, "a %s · b %s · %s", runs_name(v->feed, pair.a, one),
                 runs_name(v->feed, pair.b, other), runs_unit(&pair).name);
        verdict(&pair, text, sizeof text);
        while (rows < c->area.h / 3 && wrap_row(c->glyphs, text, c->area.w - 1, rows, &start, &length)) {
            rows++;
        }
    }
    pane_table_rule(c, v, right);
    canvas table = canvas_sub(c, 0, 0, c->area.h - rows, c->area.w);
    canvas words = canvas_sub(c, c->area.h - rows, 1, rows, c->area.w - 1);
    table_draw(&table, 1, v->rows, &source, &v->tables[PANE_DIFF], v->focused);
    if (rows > 0) {
        paint_wrapped(&words, 0, ROLE_GOOD, text);
    }
}

static void say(const pane_view *v, char text[PANE_TEXT_MAX])
{
    const run_pair pair = runs_shown(v->rows);
    verdict(&pair, text, PANE_TEXT_MAX);
}

static const char *term_of(const pane_view *v)
{
    const run_pair pair = runs_shown(v->rows);
    const size_t row = table_selected(&v->tables[PANE_DIFF]);
    const diff_rows rows = rows_of(&pair);
    bool is_measure = row < rows.count && rows.row[row] >= HR_KNOB_COUNT && rows.row[row] != ROW_PRESET;
    return is_measure ? measure_row_of((measure_id)(rows.row[row] - HR_KNOB_COUNT))->term : NULL;
}

const pane_ops pane_diff = {
    .draw = draw, .table = &source, .table_y = 1, .say = say, .term = "diff", .term_of_row = term_of};
