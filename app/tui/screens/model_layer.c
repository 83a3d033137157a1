// SPDX-License-Identifier: Apache-2.0
// The selected layer: its tensors, and the instructions that work for it.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/screens/model_layers.h"

static uint64_t version(const void *of)
{
    const app *a = of;
    return a->feed.step_plan_version << 32 | a->step.layer;
}

static void settle(app *a)
{
    step_settle_layer(a, model_selected_layer(a));
}

// ---- tensors --------------------------------------------------------------------------------------------------

enum { TENSOR, BYTES, DTYPE, SHAPE, NEEDED, BORN, DIES };

static const table_column tensor_columns[] = {
    [TENSOR] = {.term = "tensor", .middle = true},
    [BYTES] = {.term = "bytes", .width = 9, .number = true},
    [DTYPE] = {.term = "dtype", .width = 8, .from_width = 90},
    [SHAPE] = {.term = "shape", .width = 17, .from_width = 70},
    [NEEDED] = {.term = "needed", .width = 8},
    [BORN] = {.term = "born", .width = 5, .number = true, .from_width = 58},
    [DIES] = {.term = "dies", .width = 5, .number = true, .from_width = 58},
};

static size_t tensor_count(const void *of)
{
    const app *a = of;
    return feed_step_plan(&a->feed) == NULL ? 0 : a->step.layer_tensors;
}

static const hr_step_plan_tensor *tensor_at(const app *a, size_t row)
{
    return &a->feed.step_plan.tensors[a->step.of_layer[row]];
}

static double tensor_number(const void *of, size_t row, unsigned column)
{
    const app *a = of;
    const hr_step_plan_tensor *t = tensor_at(a, row);
    uint32_t at = column == BORN ? t->born : t->died;
    return column == BYTES ? (double)t->bytes : at == HR_NO_ID ? UNKNOWN : (double)at;
}

// Until when its bytes are needed.
static const char *needed(const app *a, size_t row)
{
    const hr_step_plan_tensor *t = tensor_at(a, row);
    return t->owner != a->step.of_layer[row]      ? "shares"
           : t->persistent                        ? "always"
           : t->born == HR_NO_ID                  ? "never" // what makes it was fused with what uses it
           : t->saved                             ? "backward"
           : t->category == HR_CATEGORY_GRADIENTS ? "update"
                                                  : "—";
}

static void tensor_cell(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    const app *a = of;
    if (column == NEEDED) {
        snprintf(text, TABLE_CELL_MAX, "%s", needed(a, row));
    } else {
        step_tensor_cell(a, tensor_at(a, row), tensor_columns[column].term, tensor_number(a, row, column),
                         text);
    }
}

static int tensor_band(const void *of, size_t row)
{
    const app *a = of;
    return (int)tensor_at(a, row)->category;
}

static role tensor_role(const void *of, size_t row)
{
    const app *a = of;
    const hr_step_plan_tensor *t = tensor_at(a, row);
    return t->born == HR_NO_ID && !t->persistent ? ROLE_DIM : ROLE_TEXT;
}

static const table_source tensors = {
    .columns = tensor_columns,
    .column_count = sizeof tensor_columns / sizeof *tensor_columns,
    .count = tensor_count,
    .cell = tensor_cell,
    .number = tensor_number,
    .version = version,
    .band = tensor_band,
    .role_of = tensor_role,
    .empty = "This layer has no tensor of its own.",
};

static void draw_layer(const canvas *c, const app *a)
{
    const hr_step_plan *p = feed_step_plan(&a->feed);
    char right[160] = "", kept[FORMAT_MAX];
    bool focused = a->focus == PANE_LAYER;
    if (p != NULL && a->step.layer < p->layer_count) {
        snprintf(right, sizeof right, "%s keeps %s %s p", step_layer_name(p, a->step.layer),
                 format_bytes(p->layers[a->step.layer].saved_bytes, layer_unit(a), kept), layer_unit(a).name);
    }
    const pane_view v = pane_view_of(a, PANE_LAYER);
    pane_table_rule(c, &v, right);
    if (step_is_there(c, &a->feed)) {
        table_draw(c, 1, a, &tensors, &a->table[PANE_LAYER], focused);
    }
}

static void enter_tensor(app *a)
{
    settle(a);
    table_settle(&a->table[PANE_LAYER], &tensors, a);
    size_t row = table_selected(&a->table[PANE_LAYER]);
    uint32_t born = row < tensor_count(a) ? tensor_at(a, row)->born : HR_NO_ID;
    if (born == HR_NO_ID) {
        feed_say(&a->feed, MESSAGE_NOTE, "it was there before the step: no instruction makes it");
        return;
    }
    step_go(a, born);
    app_show_screen(a, SCREEN_TIMELINE);
}

static void say_tensors(app *a)
{
    pane_layers.by_app.say(a);
}

const pane_ops pane_layer = {.by_app.draw = draw_layer,
                             .by_app.settle = settle,
                             .table = &tensors,
                             .table_y = 1,
                             .by_app.enter = enter_tensor,
                             .enter_does = "birth",
                             .by_app.say = say_tensors};

// ---- instructions ---------------------------------------------------------------------------------------------

enum { NUMBER, INSTRUCTION, PHASE, FLOPS, TIME, TITLE_ROOM = 36 };

static const table_column work_columns[] = {
    [NUMBER] = {.term = "number", .width = 6, .number = true},
    [INSTRUCTION] = {.term = "instruction", .middle = true},
    [PHASE] = {.term = "phase", .width = 8, .from_width = 46},
    [FLOPS] = {.term = "flops", .width = 6, .number = true, .from_width = 38},
    [TIME] = {.term = "time", .width = 8, .number = true},
};

static size_t work_count(const void *of)
{
    const app *a = of;
    return feed_step_plan(&a->feed) == NULL ? 0 : a->step.layer_instrs;
}

static uint32_t work_at(const app *a, size_t row)
{
    return a->step.of_layer[a->step.layer_tensors + row];
}

static double work_number(const void *of, size_t row, unsigned column)
{
    const app *a = of;
    const hr_step_plan_instr *i = &a->feed.step_plan.instrs[work_at(a, row)];
    return column == FLOPS ? (double)i->flops : column == TIME ? i->seconds : (double)work_at(a, row);
}

// Without the layer's name, which the pane beside it has.
static const char *work_name(const app *a, const hr_step_plan_instr *i)
{
    const char *name = hr_step_plan_text(&a->feed.step_plan, i->name);
    const char *layer = step_layer_name(&a->feed.step_plan, a->step.layer);
    size_t length = strlen(layer);
    return strncmp(name, layer, length) == 0 && name[length] == '/' ? name + length + 1 : name;
}

static void work_cell(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    const app *a = of;
    const hr_step_plan_instr *i = &a->feed.step_plan.instrs[work_at(a, row)];
    char words[FORMAT_MAX];
    switch (column) {
    case INSTRUCTION:
        snprintf(text, TABLE_CELL_MAX, "%s", work_name(a, i));
        break;
    case PHASE:
        snprintf(text, TABLE_CELL_MAX, "%s", hr_phase_name((hr_phase)i->phase));
        break;
    case FLOPS:
        snprintf(text, TABLE_CELL_MAX, "%s", step_count((double)i->flops, words, sizeof words));
        break;
    case TIME:
        snprintf(text, TABLE_CELL_MAX, "%s", format_seconds(i->seconds, words));
        break;
    default:
        snprintf(text, TABLE_CELL_MAX, "%" PRIu32, work_at(a, row));
        break;
    }
}

static const table_source work = {
    .columns = work_columns,
    .column_count = sizeof work_columns / sizeof *work_columns,
    .count = work_count,
    .cell = work_cell,
    .number = work_number,
    .version = version,
    .empty = "No instruction works for this layer.",
};

static void draw_work(const canvas *c, const app *a)
{
    const hr_step_plan *p = feed_step_plan(&a->feed);
    char right[64] = "", seconds[FORMAT_MAX];
    bool focused = a->focus == PANE_WORK;
    if (p != NULL && a->step.layer < p->layer_count) {
        step_time(a, p->layers[a->step.layer].seconds, seconds);
        if (c->area.w < TITLE_ROOM) {
            snprintf(right, sizeof right, "%s", seconds);
        } else {
            snprintf(right, sizeof right, "%zu · %s", work_count(a), seconds);
        }
    }
    const pane_view v = pane_view_of(a, PANE_WORK);
    pane_table_rule(c, &v, right);
    if (step_is_there(c, &a->feed)) {
        table_draw(c, 1, a, &work, &a->table[PANE_WORK], focused);
    }
}

static void enter_work(app *a)
{
    settle(a);
    table_settle(&a->table[PANE_WORK], &work, a);
    size_t row = table_selected(&a->table[PANE_WORK]);
    if (row < work_count(a)) {
        step_go(a, work_at(a, row));
        app_show_screen(a, SCREEN_PROGRAM);
    }
}

static void say_work(app *a)
{
    const hr_step_plan *p = feed_step_plan(&a->feed);
    settle(a);
    if (p == NULL || a->step.layer >= p->layer_count) {
        step_say_nothing(&a->feed);
        return;
    }
    char flops[16], seconds[FORMAT_MAX];
    double time = p->layers[a->step.layer].seconds;
    feed_say(&a->feed, MESSAGE_NOTE, "%zu instructions work for layer %s: %s FLOP, %s%s.",
             a->step.layer_instrs, step_layer_name(p, a->step.layer),
             step_count((double)p->layers[a->step.layer].flops, flops, sizeof flops),
             step_time(a, time, seconds),
             isnan(time) ? ": headroom doctor --calibrate measures this machine" : "");
}

const pane_ops pane_work = {.by_app.draw = draw_work,
                            .by_app.settle = settle,
                            .table = &work,
                            .table_y = 1,
                            .by_app.enter = enter_work,
                            .enter_does = "listing",
                            .by_app.say = say_work};
