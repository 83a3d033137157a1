// SPDX-License-Identifier: Apache-2.0
// Who holds the memory at the peak: the tensors alive at that instruction, largest first.
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/screens/bench/bench.h"

enum { COLUMN_TENSOR, COLUMN_BYTES, COLUMN_DTYPE, COLUMN_SHAPE };

static const table_column columns[] = {
    [COLUMN_TENSOR] = {.term = "tensor", .middle = true},
    [COLUMN_BYTES] = {.term = "bytes", .width = 9, .number = true},
    [COLUMN_DTYPE] = {.term = "dtype", .width = 8, .from_width = 70},
    [COLUMN_SHAPE] = {.term = "shape", .width = 17, .from_width = 46},
};

static size_t count(const void *of)
{
    const feed *f = of;
    return f->has_report ? f->report.memory.at_peak.tensor_count : 0;
}

static const hr_report_tensor *tensor_at(const feed *f, size_t row)
{
    return &f->report.memory.at_peak.tensors[row];
}

static void cell(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    const feed *f = of;
    const hr_report_tensor *tensor = tensor_at(f, row);
    char bytes[FORMAT_MAX];
    const char *cells[] = {[COLUMN_TENSOR] = tensor->name,
                           [COLUMN_BYTES] = format_cell_bytes(tensor->bytes, feed_unit(f), bytes),
                           [COLUMN_DTYPE] = tensor->dtype,
                           [COLUMN_SHAPE] = tensor->shape};
    snprintf(text, TABLE_CELL_MAX, "%s", cells[column]);
}

static double number(const void *of, size_t row, unsigned column)
{
    const feed *f = of;
    (void)column;
    return (double)tensor_at(f, row)->bytes;
}

// Tensors of one name are told apart by which of them it is.
static uint64_t key(const void *of, size_t row)
{
    const feed *f = of;
    const char *name = tensor_at(f, row)->name;
    uint64_t before = 0;
    for (size_t i = 0; i < row; i++) {
        before += strcmp(tensor_at(f, i)->name, name) == 0;
    }
    return name_key(name) + before;
}

static uint64_t version(const void *of)
{
    const feed *f = of;
    return f->report_version;
}

static int band(const void *of, size_t row)
{
    const feed *f = of;
    return (int)tensor_at(f, row)->category;
}

static const table_source source = {
    .columns = columns,
    .column_count = sizeof columns / sizeof *columns,
    .count = count,
    .cell = cell,
    .number = number,
    .key = key,
    .version = version,
    .band = band,
    .empty = "No step has been planned or run yet.",
};

static void draw(const canvas *c, const pane_view *v)
{
    char right[2 * HR_NAME_MAX];
    const hr_report_memory *memory = &v->feed->report.memory;
    snprintf(right, sizeof right, "%s · %s · %s", feed_unit(v->feed).name,
             hr_phase_name(memory->at_peak.phase), memory->at_peak.name);
    pane_draw_table(c, v, count(v->feed) > 0 ? right : "no step yet");
}

static void say(const pane_view *v, char text[PANE_TEXT_MAX])
{
    char bytes[HR_BYTES_TEXT_MAX];
    const hr_report_memory *memory = &v->feed->report.memory;
    if (count(v->feed) == 0) {
        snprintf(text, PANE_TEXT_MAX,
                 "No step has been planned or run yet, so there is no peak to take apart.");
        return;
    }
    const hr_report_tensor *first = tensor_at(v->feed, 0);
    snprintf(text, PANE_TEXT_MAX,
             "At the peak, in %s at %s, %zu tensors are alive; the largest is %s with %s.",
             hr_phase_name(memory->at_peak.phase), memory->at_peak.name, memory->at_peak.tensor_count,
             first->name, hr_bytes_human(first->bytes, bytes));
}

const pane_ops pane_peak = {
    .draw = draw, .table = &source, .table_y = 1, .say = say, .term = "requested_bytes"};
