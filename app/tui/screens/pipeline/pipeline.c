// SPDX-License-Identifier: Apache-2.0
// Pipeline: the stages of the input as a table.
#include "app/tui/screens/pipeline/pipeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { COLUMN_STAGE, COLUMN_QUEUE, COLUMN_HOST, COLUMN_PEAK, BAR_CELLS = 8 };

// ---- stages ---------------------------------------------------------------------------------------------------

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

static void draw_stages(const canvas *c, const pane_view *v)
{
    pane_draw_table(c, v, stages_unit(v->feed).name);
}

const pane_ops pane_stages = {.draw = draw_stages, .table = &stages, .table_y = 1, .say = pipeline_say};

// ---- its place ------------------------------------------------------------------------------------------------

void place_pipeline(layout *l, rect body, const layout_wish *wish)
{
    (void)wish;
    l->pane[PANE_FLOW] = cut_top(&body, layout_clamp(body.h / 2, 11, 20));
    l->pane[PANE_STAGES] = cut_left(&body, body.w / 2 + 2);
    l->pane[PANE_SETTINGS] = body;
}
