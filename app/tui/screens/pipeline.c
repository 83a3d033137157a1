// SPDX-License-Identifier: Apache-2.0
// Pipeline: the stages of the input as a table, and the knobs that decide them.
#include "app/tui/screens/pipeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/tui/screens/screens.h"
#include "app/tui/shell/act.h"

enum { COLUMN_STAGE, COLUMN_QUEUE, COLUMN_HOST, COLUMN_PEAK, BAR_CELLS = 8 };

// ---- stages ---------------------------------------------------------------------------------------------------

static uint64_t peak_of(const feed *f, const char *name)
{
    const size_t most = sizeof f->report.host.stages / sizeof *f->report.host.stages;
    for (size_t i = 0; f->has_report && i < f->report.host.stage_count && i < most; i++) {
        if (strcmp(f->report.host.stages[i].name, name) == 0) {
            return f->report.host.stages[i].peak_bytes;
        }
    }
    return HR_NONE;
}

static bool is_live(const run_state *m, const char *name)
{
    uint32_t i = 0;
    while (i < m->stage_count && strcmp(m->stage[i].name, name) != 0) {
        i++;
    }
    return i < m->stage_count;
}

size_t pipeline_views(const feed *f, stage_view views[STAGE_VIEWS_MAX])
{
    const run_state *m = feed_run_state(f);
    const size_t most = sizeof f->report.host.stages / sizeof *f->report.host.stages;
    size_t count = 0;
    for (uint32_t i = 0; i < m->stage_count; i++) {
        const hr_event_stage *s = &m->stage[i];
        views[count++] = (stage_view){s->name,           true,          s->queue_length,
                                      s->queue_capacity, s->host_bytes, peak_of(f, s->name)};
    }
    for (size_t i = 0; f->has_report && i < f->report.host.stage_count && i < most; i++) {
        const char *name = f->report.host.stages[i].name;
        if (!is_live(m, name)) {
            views[count++] =
                (stage_view){.name = name, .host_bytes = HR_NONE, .peak_bytes = peak_of(f, name)};
        }
    }
    return count;
}

const char *pipeline_bar(uint32_t length, uint32_t capacity, int width, char text[64])
{
    int filled = capacity == 0 ? 0 : (int)((uint64_t)length * (uint64_t)width / capacity);
    text[0] = '\0';
    for (int i = 0; i < width && i < 16; i++) {
        strcat(text, i < filled ? "●" : "·");
    }
    return text;
}

static const table_column columns[] = {
    [COLUMN_STAGE] = {.term = "stage"},
    [COLUMN_QUEUE] = {.term = "queue", .width = 14},
    [COLUMN_HOST] = {.term = "host_bytes", .width = 10, .number = true},
    [COLUMN_PEAK] = {.term = "peak_bytes", .width = 10, .number = true, .from_width = 48},
};

static size_t count(const void *of)
{
    const feed *f = of;
    stage_view views[STAGE_VIEWS_MAX];
    return pipeline_views(f, views);
}

// Rows change with every step, and their number with a build.
static uint64_t version(const void *of)
{
    const feed *f = of;
    return feed_run_state(f)->steps << 8 ^ f->report_version << 40 ^ count(f);
}

static byte_unit stages_unit(const feed *f)
{
    stage_view views[STAGE_VIEWS_MAX];
    uint64_t highest = 0;
    size_t rows = pipeline_views(f, views);
    for (size_t i = 0; i < rows; i++) {
        highest =
            views[i].peak_bytes != HR_NONE && views[i].peak_bytes > highest ? views[i].peak_bytes : highest;
        highest =
            views[i].host_bytes != HR_NONE && views[i].host_bytes > highest ? views[i].host_bytes : highest;
    }
    return byte_unit_for(highest);
}

static void cell(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    const feed *f = of;
    stage_view views[STAGE_VIEWS_MAX];
    char bar[64], bytes[FORMAT_MAX];
    pipeline_views(f, views);
    const stage_view *v = &views[row];
    switch (column) {
    case COLUMN_STAGE:
        snprintf(text, TABLE_CELL_MAX, "%s", v->name);
        break;
    case COLUMN_QUEUE:
        if (v->capacity > 0) {
            snprintf(text, TABLE_CELL_MAX, "%s %" PRIu32 "/%" PRIu32,
                     pipeline_bar(v->length, v->capacity, BAR_CELLS, bar), v->length, v->capacity);
        }
        break;
    default:
        format_bytes(column == COLUMN_HOST ? v->host_bytes : v->peak_bytes, stages_unit(f), bytes);
        snprintf(text, TABLE_CELL_MAX, "%s", bytes);
        break;
    }
}

static double number(const void *of, size_t row, unsigned column)
{
    const feed *f = of;
    stage_view views[STAGE_VIEWS_MAX];
    pipeline_views(f, views);
    uint64_t bytes = column == COLUMN_HOST ? views[row].host_bytes : views[row].peak_bytes;
    return bytes == HR_NONE ? UNKNOWN : (double)bytes;
}

static const table_source stages = {
    .columns = columns,
    .column_count = sizeof columns / sizeof *columns,
    .count = count,
    .cell = cell,
    .number = number,
    .version = version,
    .empty = "No stage has said anything: either no step has ended yet, or the device only plans and no data "
             "moves.",
};

static void draw_stages(const canvas *c, const app *a)
{
    bool focused = a->focus == PANE_STAGES;
    widget_table_rule(c, a, PANE_STAGES, stages_unit(&a->feed).name);
    table_draw(c, 1, &a->feed, &stages, &a->table[PANE_STAGES], focused);
}

static void say_stages(app *a)
{
    char text[768];
    feed_say(&a->feed, MESSAGE_NOTE, "%s", pipeline_words(&a->feed, text, sizeof text));
}

static const char *term_stages(const app *a)
{
    const table_view *v = &a->table[PANE_STAGES];
    return v->sort >= 0 && v->sort < (int)stages.column_count ? columns[v->sort].term : "stages";
}

const pane_ops pane_stages = {.draw = draw_stages,
                              .table = &stages,
                              .table_of_feed = true,
                              .table_y = 1,
                              .say = say_stages,
                              .term = term_stages};

// ---- settings -------------------------------------------------------------------------------------------------

enum { COLUMN_KNOB, COLUMN_VALUE, COLUMN_MEANING };

static const table_column setting_columns[] = {
    [COLUMN_KNOB] = {.term = "knob", .width = 18},
    [COLUMN_VALUE] = {.term = "value", .width = 12, .middle = true},
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

static void setting_cell(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    const feed *f = of;
    size_t all;
    char value[HR_KNOB_TEXT_MAX];
    hr_knob_id id = knob_edit_panel(&all)[panel_index(row)];
    const hr_knob_row *knob = &hr_knob_rows(NULL)[id];
    hr_knob_format(&f->knobs, id, value);
    const char *cells[] = {[COLUMN_KNOB] = knob->key,
                           [COLUMN_VALUE] = value[0] == '\0' ? "unset" : value,
                           [COLUMN_MEANING] = knob->line};
    snprintf(text, TABLE_CELL_MAX, "%.*s", TABLE_CELL_MAX - 1, cells[column]);
}

static uint64_t settings_version(const void *of)
{
    const feed *f = of;
    return f->question ^ (uint64_t)f->turned.done << 32;
}

static const table_source settings = {
    .columns = setting_columns,
    .column_count = sizeof setting_columns / sizeof *setting_columns,
    .count = count_settings,
    .cell = setting_cell,
    .version = settings_version,
    .empty = "This build has no knobs of the pipeline.",
};

static void draw_settings(const canvas *c, const app *a)
{
    bool focused = a->focus == PANE_SETTINGS;
    widget_table_rule(c, a, PANE_SETTINGS, "Enter edits");
    table_draw(c, 1, &a->feed, &settings, &a->table[PANE_SETTINGS], focused);
}

static void enter_setting(app *a)
{
    size_t row = table_selected(&a->table[PANE_SETTINGS]);
    if (row != SIZE_MAX) {
        a->feed.knob = panel_index(row);
        act_edit(a);
    }
}

static void say_setting(app *a)
{
    size_t row = table_selected(&a->table[PANE_SETTINGS]);
    char key[TABLE_CELL_MAX], value[TABLE_CELL_MAX], line[TABLE_CELL_MAX];
    if (row != SIZE_MAX) {
        setting_cell(&a->feed, row, COLUMN_KNOB, key);
        setting_cell(&a->feed, row, COLUMN_VALUE, value);
        setting_cell(&a->feed, row, COLUMN_MEANING, line);
        feed_say(&a->feed, MESSAGE_NOTE, "%s, %s, is %s.", key, line, value);
    }
}

static const char *term_settings(const app *a)
{
    (void)a;
    return "settings";
}

const pane_ops pane_settings = {.draw = draw_settings,
                                .table = &settings,
                                .table_of_feed = true,
                                .table_y = 1,
                                .enter = enter_setting,
                                .enter_does = "edit",
                                .say = say_setting,
                                .term = term_settings};

// ---- its place ------------------------------------------------------------------------------------------------

void place_pipeline(layout *l, rect body, const layout_wish *wish)
{
    (void)wish;
    l->pane[PANE_FLOW] = cut_top(&body, layout_clamp(body.h / 2, 10, 16));
    l->pane[PANE_STAGES] = cut_left(&body, body.w / 2 + 2);
    l->pane[PANE_SETTINGS] = body;
}
