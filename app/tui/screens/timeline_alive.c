// SPDX-License-Identifier: Apache-2.0
// The tensors alive at the cursor, largest first.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/screens/timeline.h"

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
    const app *a = of;
    return feed_step_plan(&a->feed) == NULL ? 0 : a->step.alive_count;
}

static const hr_step_plan_tensor *tensor_at(const app *a, size_t row)
{
    return &a->feed.step_plan.tensors[a->step.alive[row]];
}

static double number(const void *of, size_t row, unsigned column)
{
    const app *a = of;
    const hr_step_plan_tensor *t = tensor_at(a, row);
    uint64_t all = a->feed.step_plan.instrs[a->step.alive_at].requested_bytes;
    switch (column) {
    case SHARE:
        return all > 0 ? (double)t->bytes / (double)all : UNKNOWN;
    case BORN:
        return t->born == HR_NO_ID ? UNKNOWN : (double)t->born;
    case DIED:
        return t->died == HR_NO_ID ? UNKNOWN : (double)t->died;
    case AGE:
        return t->born == HR_NO_ID ? UNKNOWN : (double)(a->step.alive_at - t->born);
    default:
        return (double)t->bytes;
    }
}

// No number: it was there before, or outlives the step.
static void cell(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    const app *a = of;
    char words[FORMAT_MAX];
    const double value = number(a, row, column);
    if (column == SHARE) {
        snprintf(text, TABLE_CELL_MAX, "%s", format_percent(value, words));
    } else {
        step_tensor_cell(a, tensor_at(a, row), columns[column].term, value, text);
    }
}

static uint64_t key(const void *of, size_t row)
{
    const app *a = of;
    return a->step.alive[row];
}

static uint64_t version(const void *of)
{
    const app *a = of;
    return a->feed.step_plan_version << 32 | a->step.alive_at;
}

static int band(const void *of, size_t row)
{
    const app *a = of;
    return (int)tensor_at(a, row)->category;
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

static void draw(const canvas *c, const app *a)
{
    const hr_step_plan_instr *i = step_cursor_instr(a);
    char right[128] = "", asked[FORMAT_MAX], waste[FORMAT_MAX];
    byte_unit unit = step_unit(a);
    bool focused = a->focus == PANE_ALIVE;
    if (i != NULL) {
        bool known = i->in_use_bytes >= i->requested_bytes;
        format_bytes(i->requested_bytes, unit, asked);
        format_bytes(known ? i->in_use_bytes - i->requested_bytes : HR_NONE, unit, waste);
        snprintf(right, sizeof right, "%s · %zu tensors · %s %s p, waste %s · after %" PRIu32,
                 step_tensor_unit(a).name, a->step.alive_count, asked, unit.name, waste, a->step.cursor);
    }
    const pane_view v = pane_view_of(a, PANE_ALIVE);
    pane_table_rule(c, &v, right);
    if (step_is_there(c, &a->feed)) {
        table_draw(c, 1, a, &source, &a->table[PANE_ALIVE], focused);
    }
}

static bool move(app *a, int rows, int columns_moved)
{
    if (rows != 0) {
        return false; // the table's
    }
    step_move_columns(a, columns_moved);
    return true;
}

// To the birth of the selected tensor; being there, to its death; and back.
static void enter(app *a)
{
    step_settle_alive(a);
    table_settle(&a->table[PANE_ALIVE], &source, a);
    step_view *v = &a->step;
    const hr_step_plan *p = feed_step_plan(&a->feed);
    size_t row = table_selected(&a->table[PANE_ALIVE]);
    if (p == NULL) {
        step_say_nothing(&a->feed);
        return;
    }
    bool returns = v->jumped != HR_NO_ID && v->cursor == p->tensors[v->jumped].died;
    uint32_t tensor = returns ? v->jumped : row < v->alive_count ? v->alive[row] : HR_NO_ID;
    if (tensor == HR_NO_ID) {
        feed_say(&a->feed, MESSAGE_NOTE, "nothing is alive here");
        return;
    }
    uint32_t born = p->tensors[tensor].born, died = p->tensors[tensor].died;
    uint32_t to = v->cursor == born || born == HR_NO_ID ? died : born;
    if (to == HR_NO_ID) {
        feed_say(&a->feed, MESSAGE_NOTE, "%s was there before the step, and outlives it",
                 step_tensor_name(p, tensor));
        return;
    }
    v->jumped = tensor;
    step_go(a, to);
    step_settle_alive(a);
    table_settle(&a->table[PANE_ALIVE], &source, a);
    for (size_t k = 0; k < a->table[PANE_ALIVE].count; k++) {
        if (v->alive[a->table[PANE_ALIVE].order[k]] == tensor) {
            a->table[PANE_ALIVE].cursor = k;
        }
    }
    feed_say(&a->feed, MESSAGE_NOTE, "%s %s at %" PRIu32 "; Enter goes to its %s",
             step_tensor_name(p, tensor), to == born ? "is born" : "dies", to,
             to == born ? "death" : "birth");
}

static void say(app *a)
{
    const hr_step_plan *p = feed_step_plan(&a->feed);
    char largest[HR_BYTES_TEXT_MAX], all[HR_BYTES_TEXT_MAX];
    step_settle_alive(a);
    if (step_cursor_instr(a) == NULL || a->step.alive_count == 0) {
        step_say_nothing(&a->feed);
        return;
    }
    const hr_step_plan_tensor *t = &p->tensors[a->step.alive[0]];
    feed_say(&a->feed, MESSAGE_NOTE,
             "After instruction %" PRIu32 " %zu tensors are alive with %s; the largest is %s with %s.",
             a->step.cursor, a->step.alive_count, hr_bytes_human(step_cursor_instr(a)->requested_bytes, all),
             hr_step_plan_text(p, t->name), hr_bytes_human(t->bytes, largest));
}

const pane_ops pane_alive = {.by_app.draw = draw,
                             .by_app.settle = step_settle_alive,
                             .table = &source,
                             .table_y = 1,
                             .by_app.move = move,
                             .by_app.mark = step_mark,
                             .by_app.enter = enter,
                             .enter_does = "birth",
                             .by_app.zoom = step_zoom,
                             .by_app.say = say};
