// SPDX-License-Identifier: Apache-2.0
// The selected layer: its tensors, and the instructions that work for it.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/screens/step/panes.h"

static uint64_t version(const void *of)
{
    const step_view *step = of;
    return step->feed->step_plan_version << 32 | step->layer;
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
    const step_view *step = of;
    return feed_step_plan(step->feed) == NULL ? 0 : step->layer_tensors;
}

static const hr_step_plan_tensor *tensor_at(const step_view *step, size_t row)
{
    return &step->feed->step_plan.tensors[step->of_layer[row]];
}

static double tensor_number(const void *of, size_t row, unsigned column)
{
    const step_view *step = of;
    const hr_step_plan_tensor *t = tensor_at(step, row);
    uint32_t at = column == BORN ? t->born : t->died;
    return column == BYTES ? (double)t->bytes : at == HR_NO_ID ? UNKNOWN : (double)at;
}

// Until when its bytes are needed.
static const char *needed(const step_view *step, size_t row)
{
    const hr_step_plan_tensor *t = tensor_at(step, row);
    return t->owner != step->of_layer[row]        ? "shares"
           : t->persistent                        ? "always"
           : t->born == HR_NO_ID                  ? "never" // what makes it was fused with what uses it
           : t->saved                             ? "backward"
           : t->category == HR_CATEGORY_GRADIENTS ? "update"
                                                  : "—";
}

static void tensor_cell(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    const step_view *step = of;
    if (column == NEEDED) {
        snprintf(text, TABLE_CELL_MAX, "%s", needed(step, row));
    } else {
        step_tensor_cell(step, tensor_at(step, row), tensor_columns[column].term,
                         tensor_number(step, row, column), text);
    }
}

static int tensor_band(const void *of, size_t row)
{
    const step_view *step = of;
    return (int)tensor_at(step, row)->category;
}

static role tensor_role(const void *of, size_t row)
{
    const step_view *step = of;
    const hr_step_plan_tensor *t = tensor_at(step, row);
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

static void draw_layer(const canvas *c, const pane_view *v)
{
    const step_view *step = v->rows;
    const hr_step_plan *p = feed_step_plan(step->feed);
    char right[160] = "", kept[FORMAT_MAX];
    bool focused = v->focused;
    const bool there = p != NULL && step->layer < p->layer_count;
    if (there && p->layers[step->layer].saved_bytes == HR_NONE) {
        snprintf(right, sizeof right, "%s", step_layer_name(p, step->layer));
    } else if (there) {
        snprintf(right, sizeof right, "%s keeps %s %s p", step_layer_name(p, step->layer),
                 format_bytes(p->layers[step->layer].saved_bytes, layer_unit(step), kept),
                 layer_unit(step).name);
    }
    pane_table_rule(c, v, right);
    if (step_is_there(c, step->feed)) {
        table_draw(c, 1, step, &tensors, &step->tables[PANE_LAYER], focused);
    }
}

static pane_request enter_tensor(const pane_view *v, void *own)
{
    step_view *step = own;
    (void)v;
    size_t row = table_selected(&step->tables[PANE_LAYER]);
    uint32_t born = row < tensor_count(step) ? tensor_at(step, row)->born : HR_NO_ID;
    if (born == HR_NO_ID) {
        return pane_says("it was there before the step: no instruction makes it");
    }
    step_go(step, born);
    return (pane_request){.kind = PANE_SHOWS_SCREEN, .screen = SCREEN_TIMELINE};
}

const pane_ops pane_layer = {.draw = draw_layer,
                             .settle = model_settle,
                             .table = &tensors,
                             .table_y = 1,
                             .enter = enter_tensor,
                             .enter_does = "birth",
                             .say = model_say};

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
    const step_view *step = of;
    return feed_step_plan(step->feed) == NULL ? 0 : step->layer_instrs;
}

static uint32_t work_at(const step_view *step, size_t row)
{
    return step->of_layer[step->layer_tensors + row];
}

static double work_number(const void *of, size_t row, unsigned column)
{
    const step_view *step = of;
    const hr_step_plan_instr *i = &step->feed->step_plan.instrs[work_at(step, row)];
    return column == FLOPS ? (double)i->flops : column == TIME ? i->seconds : (double)work_at(step, row);
}

// Without the layer's name, which the pane beside it has.
static const char *work_name(const step_view *step, const hr_step_plan_instr *i)
{
    const char *name = hr_step_plan_text(&step->feed->step_plan, i->name);
    const char *layer = step_layer_name(&step->feed->step_plan, step->layer);
    size_t length = strlen(layer);
    return strncmp(name, layer, length) == 0 && name[length] == '/' ? name + length + 1 : name;
}

static void work_cell(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    const step_view *step = of;
    const hr_step_plan_instr *i = &step->feed->step_plan.instrs[work_at(step, row)];
    char words[FORMAT_MAX];
    switch (column) {
    case INSTRUCTION:
        snprintf(text, TABLE_CELL_MAX, "%s", work_name(step, i));
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
        snprintf(text, TABLE_CELL_MAX, "%" PRIu32, work_at(step, row));
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

static void draw_work(const canvas *c, const pane_view *v)
{
    const step_view *step = v->rows;
    const hr_step_plan *p = feed_step_plan(step->feed);
    char right[64] = "", seconds[FORMAT_MAX];
    bool focused = v->focused;
    if (p != NULL && step->layer < p->layer_count) {
        step_time(step, p->layers[step->layer].seconds, seconds);
        if (c->area.w < TITLE_ROOM) {
            snprintf(right, sizeof right, "%s", seconds);
        } else {
            snprintf(right, sizeof right, "%zu · %s", work_count(step), seconds);
        }
    }
    pane_table_rule(c, v, right);
    if (step_is_there(c, step->feed)) {
        table_draw(c, 1, step, &work, &step->tables[PANE_WORK], focused);
    }
}

static pane_request enter_work(const pane_view *v, void *own)
{
    step_view *step = own;
    (void)v;
    size_t row = table_selected(&step->tables[PANE_WORK]);
    if (row >= work_count(step)) {
        return (pane_request){.kind = PANE_DONE};
    }
    step_go(step, work_at(step, row));
    return (pane_request){.kind = PANE_SHOWS_SCREEN, .screen = SCREEN_PROGRAM};
}

static void say_work(const pane_view *v, char text[PANE_TEXT_MAX])
{
    const step_view *step = v->rows;
    const hr_step_plan *p = feed_step_plan(step->feed);
    if (p == NULL || step->layer >= p->layer_count) {
        snprintf(text, PANE_TEXT_MAX, "%s", step_nothing(step->feed));
        return;
    }
    char flops[16], seconds[FORMAT_MAX];
    double time = p->layers[step->layer].seconds;
    snprintf(text, PANE_TEXT_MAX, "%zu instructions work for layer %s: %s FLOP, %s%s.", step->layer_instrs,
             step_layer_name(p, step->layer),
             step_count(step_number(p->layers[step->layer].flops), flops, sizeof flops),
             step_time(step, time, seconds),
             isnan(time) ? ": headroom doctor --calibrate measures this machine" : "");
}

const pane_ops pane_work = {.draw = draw_work,
                            .settle = model_settle,
                            .table = &work,
                            .table_y = 1,
                            .enter = enter_work,
                            .enter_does = "listing",
                            .say = say_work};
