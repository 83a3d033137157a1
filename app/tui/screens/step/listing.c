// SPDX-License-Identifier: Apache-2.0
// The Program: every instruction of the planned step as it is listed, with what it costs.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/screens/step/panes.h"
#include "app/tui/view/bar.h"

enum { NUMBER, INSTRUCTION, IMPLEMENTATION, PHASE, LAYER, IN_USE, CHANGE, FLOPS, TIME, SHARE, BAR = 8 };

static const table_column columns[] = {
    [NUMBER] = {.term = "number", .width = 6, .number = true},
    [INSTRUCTION] = {.term = "instruction"},
    [IMPLEMENTATION] = {.term = "implementation", .width = 21, .from_width = 110},
    [PHASE] = {.term = "phase", .width = 8, .from_width = 100},
    [LAYER] = {.term = "layer", .width = 16, .from_width = 130, .middle = true},
    [IN_USE] = {.term = "in_use", .width = 9, .number = true},
    [CHANGE] = {.term = "change", .width = 8, .number = true},
    [FLOPS] = {.term = "flops", .width = 6, .number = true, .from_width = 100},
    [TIME] = {.term = "time", .width = 8, .number = true, .from_width = 90},
    [SHARE] = {.term = "share", .width = BAR, .number = true},
};

void place_program(layout *l, rect body, const layout_wish *wish)
{
    (void)wish;
    l->pane[PANE_TURNED] = cut_bottom(&body, 6 + (body.h - 19) / 4);
    l->pane[PANE_LISTING] = body;
}

static size_t count(const void *of)
{
    const step_view *step = of;
    const hr_step_plan *p = feed_step_plan(step->feed);
    return p == NULL ? 0 : p->instr_count;
}

static double number(const void *of, size_t row, unsigned column)
{
    const step_view *step = of;
    const hr_step_plan_instr *i = &step->feed->step_plan.instrs[row];
    double in_use = i->in_use_bytes > 0 ? (double)i->in_use_bytes : UNKNOWN;
    switch (column) {
    case IN_USE:
        return in_use;
    case CHANGE:
        return step_change_bytes(&step->feed->step_plan, (uint32_t)row);
    case FLOPS:
        return (double)i->flops;
    case TIME:
        return i->seconds;
    case SHARE:
        return step->feed->step_plan.limit_bytes > 0 ? in_use / (double)step->feed->step_plan.limit_bytes
                                                     : UNKNOWN;
    default:
        return (double)row;
    }
}

static void number_cell(const step_view *step, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    double value = number(step, row, column);
    char words[FORMAT_MAX];
    const char *shown = "";
    switch (column) {
    case NUMBER:
        snprintf(words, sizeof words, "%zu", row);
        shown = words;
        break;
    case IN_USE:
        shown = format_cell_bytes(isnan(value) ? HR_NONE : (uint64_t)value, step_unit(step), words);
        break;
    case CHANGE:
        shown = step_delta(value, step_tensor_unit(step), words);
        break;
    case FLOPS:
        shown = value == 0 ? "" : step_count(value, words, sizeof words);
        break;
    default: // TIME
        shown = value == 0 ? "" : format_seconds(value, words);
        break;
    }
    snprintf(text, TABLE_CELL_MAX, "%s", shown);
}

static void cell(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    const step_view *step = of;
    const hr_step_plan_instr *i = &step->feed->step_plan.instrs[row];
    switch (column) {
    case INSTRUCTION:
        step_short_line(&step->feed->step_plan, (uint32_t)row, text, TABLE_CELL_MAX);
        break;
    case IMPLEMENTATION:
        snprintf(text, TABLE_CELL_MAX, "%s", hr_step_plan_text(&step->feed->step_plan, i->impl));
        break;
    case PHASE:
        snprintf(text, TABLE_CELL_MAX, "%s", hr_phase_name((hr_phase)i->phase));
        break;
    case LAYER:
        snprintf(text, TABLE_CELL_MAX, "%s", step_layer_name(&step->feed->step_plan, i->layer));
        break;
    case SHARE:
        bar_cell(step->glyphs, number(step, row, SHARE), BAR, text, TABLE_CELL_MAX);
        break;
    default:
        number_cell(step, row, column, text);
        break;
    }
}

static uint64_t version(const void *of)
{
    const step_view *step = of;
    return step->feed->step_plan_version << 2 | (uint64_t)step->glyphs->set;
}

static int band(const void *of, size_t row)
{
    const step_view *step = of;
    const hr_step_plan_instr *i = &step->feed->step_plan.instrs[row];
    return i->is_alloc || i->is_free ? (int)step->feed->step_plan.tensors[i->tensor].category : -1;
}

static role role_of(const void *of, size_t row)
{
    const step_view *step = of;
    const hr_step_plan *p = &step->feed->step_plan;
    return row == p->refused_instr                             ? ROLE_BAD
           : row == step->marked                               ? ROLE_BASELINE
           : !step_is_reached(p, (uint32_t)row)                ? ROLE_DIM
           : row == p->peak_instr                              ? ROLE_WARN
           : p->instrs[row].is_alloc || p->instrs[row].is_free ? ROLE_DIM
                                                               : ROLE_TEXT;
}

static const table_source source = {
    .columns = columns,
    .column_count = sizeof columns / sizeof *columns,
    .count = count,
    .cell = cell,
    .number = number,
    .version = version,
    .band = band,
    .role_of = role_of,
    .empty = "The step is being planned.",
};

// ---- one cursor for table and step ------------------------------------------------------------------------------

static void show_cursor(step_view *step)
{
    table_view *v = &step->tables[PANE_LISTING];
    uint32_t cursor = step->cursor;
    if (cursor < v->count && v->order[cursor] == cursor) {
        v->cursor = cursor;
        return;
    }
    for (size_t k = 0; k < v->count; k++) {
        if (v->order[k] == cursor) {
            v->cursor = k;
            return;
        }
    }
}

// The cursor of the listing and that of the step are one: takes over which of the two moved.
static pane_request settle(const pane_view *view, void *own)
{
    step_view *step = own;
    (void)view;
    table_view *v = &step->tables[PANE_LISTING];
    size_t selected = table_selected(v);
    bool same_rows = v->settled && v->version == version(step);
    if (same_rows && selected != SIZE_MAX && selected != step->listed) {
        step_go(step, (uint32_t)selected);
    }
    table_settle(v, &source, step);
    show_cursor(step);
    step->listed = table_selected(v);
    return (pane_request){.kind = PANE_DONE};
}

// ---- the pane -------------------------------------------------------------------------------------------------

static void draw(const canvas *c, const pane_view *v)
{
    const step_view *step = v->rows;
    const hr_step_plan *p = feed_step_plan(step->feed);
    char right[192] = "", seconds[FORMAT_MAX], verdict[160];
    bool focused = v->focused;
    if (p != NULL && !p->fits) {
        step_verdict(step->feed, verdict, sizeof verdict);
        snprintf(right, sizeof right, "%s", verdict);
    } else if (p != NULL) {
        const size_t shown = step->tables[PANE_LISTING].count;
        bool all = shown == p->instr_count;
        char some[32] = "";
        snprintf(some, sizeof some, "%zu of ", shown);
        snprintf(right, sizeof right, "%s%zu instructions · %s p, change %s · %s%s%s", all ? "" : some,
                 p->instr_count, step_unit(step).name, step_tensor_unit(step).name,
                 step_time(step, p->step_seconds, seconds), p->step_basis != HR_TIME_UNKNOWN ? " " : "",
                 p->step_basis != HR_TIME_UNKNOWN ? hr_time_basis_brief(p->step_basis) : "");
    }
    pane_table_rule(c, v, right);
    if (step_is_there(c, step->feed)) {
        table_draw(c, 1, step, &source, &step->tables[PANE_LISTING], focused);
    }
}

static pane_request enter(const pane_view *v, void *own)
{
    (void)v;
    (void)own;
    return (pane_request){.kind = PANE_SHOWS_SCREEN, .screen = SCREEN_TIMELINE};
}

const pane_ops pane_listing = {.draw = draw,
                               .settle = settle,
                               .table = &source,
                               .table_y = 1,
                               .mark = step_mark,
                               .enter = enter,
                               .enter_does = "timeline",
                               .say = step_say};
