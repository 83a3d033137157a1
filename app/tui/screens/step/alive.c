// SPDX-License-Identifier: Apache-2.0
// The tensors alive at the cursor, largest first.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/screens/step/panes.h"

enum { TENSOR, BYTES, SHARE, DTYPE, SHAPE, BORN, DIED, AGE };

static const table_column columns[] = {
    [TENSOR] = {.term = "tensor", .middle = true},
    [BYTES] = {.term = "bytes", .width = 9, .number = true},
    [SHARE] = {.term = "share", .width = 6, .number = true},
    [DTYPE] = {.term = "dtype", .width = 8, .from_width = 90},
    [SHAPE] = {.term = "shape", .width = 17, .from_width = 74},
    [BORN] = {.term = "born", .width = 6, .number = true},
    [DIED] = {.term = "dies", .width = 6, .number = true},
    [AGE] = {.term = "age", .width = 6, .number = true, .from_width = 100},
};

static size_t count(const void *of)
{
    const step_view *step = of;
    return feed_step_plan(step->feed) == NULL ? 0 : step->alive_count;
}

static const hr_step_plan_tensor *tensor_at(const step_view *step, size_t row)
{
    return &step->feed->step_plan.tensors[step->alive[row]];
}

static double number(const void *of, size_t row, unsigned column)
{
    const step_view *step = of;
    const hr_step_plan_tensor *t = tensor_at(step, row);
    uint64_t all = step->feed->step_plan.instrs[step->alive_at].requested_bytes;
    switch (column) {
    case SHARE:
        return all > 0 ? (double)t->bytes / (double)all : UNKNOWN;
    case BORN:
        return t->born == HR_NO_ID ? UNKNOWN : (double)t->born;
    case DIED:
        return t->died == HR_NO_ID ? UNKNOWN : (double)t->died;
    case AGE:
        return t->born == HR_NO_ID ? UNKNOWN : (double)(step->alive_at - t->born);
    default:
        return (double)t->bytes;
    }
}

// No number: it was there before, or outlives the step.
static void cell(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    const step_view *step = of;
    char words[FORMAT_MAX];
    const double value = number(step, row, column);
    if (column == SHARE) {
        snprintf(text, TABLE_CELL_MAX, "%s", format_percent(value, words));
    } else {
        step_tensor_cell(step, tensor_at(step, row), columns[column].term, value, text);
    }
}

static uint64_t key(const void *of, size_t row)
{
    const step_view *step = of;
    return step->alive[row];
}

static uint64_t version(const void *of)
{
    const step_view *step = of;
    return step->feed->step_plan_version << 32 | step->alive_at;
}

static int band(const void *of, size_t row)
{
    const step_view *step = of;
    return (int)tensor_at(step, row)->category;
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
    .empty = "Nothing is alive here.",
};

static void draw(const canvas *c, const pane_view *v)
{
    const step_view *step = v->rows;
    const hr_step_plan_instr *i = step_cursor_instr(step);
    char right[128] = "", asked[FORMAT_MAX], waste[FORMAT_MAX];
    byte_unit unit = step_unit(step);
    bool focused = v->focused;
    if (i != NULL) {
        bool known = i->in_use_bytes >= i->requested_bytes;
        format_bytes(i->requested_bytes, unit, asked);
        format_bytes(known ? i->in_use_bytes - i->requested_bytes : HR_NONE, unit, waste);
        snprintf(right, sizeof right, "%s · %zu tensors · %s %s p, waste %s · after %" PRIu32,
                 step_tensor_unit(step).name, step->alive_count, asked, unit.name, waste, step->cursor);
    }
    pane_table_rule(c, v, right);
    if (step_is_there(c, step->feed)) {
        table_draw(c, 1, step, &source, &step->tables[PANE_ALIVE], focused);
    }
}

static pane_request settle(const pane_view *v, void *own)
{
    step_view *step = own;
    (void)v;
    step_settle_alive(step);
    return (pane_request){.kind = PANE_DONE};
}

static pane_request move(const pane_view *v, void *own, int rows, int columns_moved)
{
    step_view *step = own;
    (void)v;
    if (rows != 0) {
        return (pane_request){.kind = PANE_ASKS_NOTHING}; // the table's
    }
    step_move_columns(step, columns_moved);
    return (pane_request){.kind = PANE_DONE};
}

// To the birth of the selected tensor; being there, to its death; and back.
static pane_request enter(const pane_view *v, void *own)
{
    step_view *step = own;
    (void)v;
    const hr_step_plan *p = feed_step_plan(step->feed);
    size_t row = table_selected(&step->tables[PANE_ALIVE]);
    if (p == NULL) {
        return pane_says("%s", step_nothing(step->feed));
    }
    bool returns = step->jumped != HR_NO_ID && step->cursor == p->tensors[step->jumped].died;
    uint32_t tensor = returns ? step->jumped : row < step->alive_count ? step->alive[row] : HR_NO_ID;
    if (tensor == HR_NO_ID) {
        return pane_says("nothing is alive here");
    }
    uint32_t born = p->tensors[tensor].born, died = p->tensors[tensor].died;
    uint32_t to = step->cursor == born || born == HR_NO_ID ? died : born;
    if (to == HR_NO_ID) {
        return pane_says("%s was there before the step, and outlives it", step_tensor_name(p, tensor));
    }
    step->jumped = tensor;
    step_go(step, to);
    step_settle_alive(step);
    table_settle(&step->tables[PANE_ALIVE], &source, step);
    for (size_t k = 0; k < step->tables[PANE_ALIVE].count; k++) {
        if (step->alive[step->tables[PANE_ALIVE].order[k]] == tensor) {
            step->tables[PANE_ALIVE].cursor = k;
        }
    }
    return pane_says("%s %s at %" PRIu32 "; Enter goes to its %s", step_tensor_name(p, tensor),
                     to == born ? "is born" : "dies", to, to == born ? "death" : "birth");
}

static void say(const pane_view *v, char text[PANE_TEXT_MAX])
{
    const step_view *step = v->rows;
    const hr_step_plan *p = feed_step_plan(step->feed);
    char largest[HR_BYTES_TEXT_MAX], all[HR_BYTES_TEXT_MAX];
    if (step_cursor_instr(step) == NULL || step->alive_count == 0) {
        snprintf(text, PANE_TEXT_MAX, "%s", step_nothing(step->feed));
        return;
    }
    const hr_step_plan_tensor *t = &p->tensors[step->alive[0]];
    snprintf(text, PANE_TEXT_MAX,
             "After instruction %" PRIu32 " %zu tensors are alive with %s; the largest is %s with %s.",
             step->cursor, step->alive_count, hr_bytes_human(step_cursor_instr(step)->requested_bytes, all),
             hr_step_plan_text(p, t->name), hr_bytes_human(t->bytes, largest));
}

const pane_ops pane_alive = {.draw = draw,
                             .settle = settle,
                             .table = &source,
                             .table_y = 1,
                             .move = move,
                             .mark = step_mark,
                             .enter = enter,
                             .enter_does = "birth",
                             .zoom = step_zoom,
                             .say = say};
