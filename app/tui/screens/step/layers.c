// SPDX-License-Identifier: Apache-2.0
// The Model: what each layer costs in a planned step.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/preset.h"
#include "headroom/units.h"

#include "app/tui/screens/step/panes.h"
#include "app/tui/view/bar.h"

enum { LAYER, KIND, OUTPUT, PARAMETERS, WEIGHTS, ACTIVATIONS, KEPT, FLOPS, TIME, SHARE, BAR = 8 };

static const table_column columns[] = {
    [LAYER] = {.term = "layer", .middle = true},
    [KIND] = {.term = "kind", .width = 16, .from_width = 118},
    [OUTPUT] = {.term = "output_shape", .width = 12, .from_width = 100},
    [PARAMETERS] = {.term = "parameters", .width = 10, .number = true, .from_width = 90},
    [WEIGHTS] = {.term = "weights", .width = 8, .number = true},
    [ACTIVATIONS] = {.term = "activations", .width = 12, .number = true},
    [KEPT] = {.term = "kept_bytes", .width = 10, .number = true, .from_width = 66},
    [FLOPS] = {.term = "flops", .width = 6, .number = true},
    [TIME] = {.term = "time", .width = 8, .number = true, .from_width = 72},
    [SHARE] = {.term = "share", .width = BAR, .number = true, .from_width = 76},
};

void place_model(layout *l, rect body, const layout_wish *wish)
{
    (void)wish;
    rect below = cut_bottom(&body, 8 + (body.h - 19) * 2 / 5);
    l->pane[PANE_LAYER] = cut_left(&below, below.w * 5 / 8);
    l->pane[PANE_WORK] = below;
    l->pane[PANE_LAYERS] = body;
}

static size_t count(const void *of)
{
    const step_view *step = of;
    const hr_step_plan *p = feed_step_plan(step->feed);
    return p == NULL ? 0 : p->layer_count;
}

byte_unit layer_unit(const step_view *step)
{
    return byte_unit_for(step->largest_layer);
}

static double number(const void *of, size_t row, unsigned column)
{
    const step_view *step = of;
    const hr_step_plan_layer *layer = &step->feed->step_plan.layers[row];
    switch (column) {
    case PARAMETERS:
        return step_number(layer->parameters);
    case WEIGHTS:
        return step_number(layer->parameter_bytes);
    case ACTIVATIONS:
        return step_number(layer->activation_bytes);
    case KEPT:
        return step_number(layer->saved_bytes);
    case FLOPS:
        return step_number(layer->flops);
    case TIME:
        return layer->seconds;
    default:
        return (double)step_layer_bytes(layer);
    }
}

static void number_cell(const step_view *step, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    double value = number(step, row, column);
    char words[FORMAT_MAX];
    const char *shown = "";
    if (column == PARAMETERS || column == FLOPS) {
        shown = value == 0 ? "" : step_count(value, words, sizeof words);
    } else if (column == TIME) {
        shown = format_seconds(value, words);
    } else {
        const uint64_t bytes = isnan(value) ? HR_NONE : (uint64_t)value;
        shown = bytes == 0 ? "" : format_cell_bytes(bytes, layer_unit(step), words);
    }
    snprintf(text, TABLE_CELL_MAX, "%s", shown);
}

static void cell(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    const step_view *step = of;
    const hr_step_plan *p = &step->feed->step_plan;
    const hr_step_plan_layer *layer = &p->layers[row];
    const double largest = (double)step->largest_layer;
    switch (column) {
    case LAYER:
        snprintf(text, TABLE_CELL_MAX, "%s", hr_step_plan_text(p, layer->name));
        break;
    case KIND:
        snprintf(text, TABLE_CELL_MAX, "%s", hr_step_plan_text(p, layer->kind));
        break;
    case OUTPUT:
        snprintf(text, TABLE_CELL_MAX, "%s", hr_step_plan_text(p, layer->output_shape));
        break;
    case SHARE:
        bar_cell(step->glyphs, largest > 0 ? number(step, row, SHARE) / largest : 0, BAR, text,
                 TABLE_CELL_MAX);
        break;
    default:
        number_cell(step, row, column, text);
        break;
    }
}

static uint64_t key(const void *of, size_t row)
{
    const step_view *step = of;
    return name_key(hr_step_plan_text(&step->feed->step_plan, step->feed->step_plan.layers[row].name));
}

static uint64_t version(const void *of)
{
    const step_view *step = of;
    return step->feed->step_plan_version << 2 | (uint64_t)step->glyphs->set;
}

// What a recorded step's blocks are for it does not say.
static bool says_requests(const step_view *step)
{
    return hr_preset_is_trace(step->feed->preset);
}

static const char *heading(const void *of, unsigned column)
{
    return column == ACTIVATIONS && says_requests(of) ? "requested" : NULL;
}

static const table_source source = {
    .columns = columns,
    .column_count = sizeof columns / sizeof *columns,
    .count = count,
    .cell = cell,
    .number = number,
    .key = key,
    .version = version,
    .heading = heading,
    .empty = "The model has no layers.",
};

// ---- the pane -------------------------------------------------------------------------------------------------

typedef struct totals {
    uint64_t parameters, parameter_bytes, activation_bytes, saved_bytes;
    double flops;
} totals;

static totals add_up(const hr_step_plan *p)
{
    totals sum = {0};
    for (size_t k = 0; k < p->layer_count; k++) {
        const hr_step_plan_layer *layer = &p->layers[k];
        (void)hr_add_bytes(sum.parameters, layer->parameters, &sum.parameters);
        (void)hr_add_bytes(sum.parameter_bytes, layer->parameter_bytes, &sum.parameter_bytes);
        (void)hr_add_bytes(sum.activation_bytes, layer->activation_bytes, &sum.activation_bytes);
        (void)hr_add_bytes(sum.saved_bytes, layer->saved_bytes, &sum.saved_bytes);
        sum.flops += step_number(layer->flops);
    }
    return sum;
}

static const char *totals_text(const step_view *step, char *text, size_t size)
{
    const hr_step_plan *p = feed_step_plan(step->feed);
    totals sum = add_up(p);
    byte_unit unit = layer_unit(step);
    char parameters[16], flops[16], weights[FORMAT_MAX], activations[FORMAT_MAX], kept[FORMAT_MAX];
    char seconds[FORMAT_MAX];
    if (says_requests(step)) {
        snprintf(text, size, "all: requested %s", format_bytes(sum.activation_bytes, unit, activations));
        return text;
    }
    snprintf(text, size, "all: W %s · A %s, kept %s · %s · %s FLOP · %s parameters",
             format_bytes(sum.parameter_bytes, unit, weights),
             format_bytes(sum.activation_bytes, unit, activations), format_bytes(sum.saved_bytes, unit, kept),
             step_time(step, p->step_seconds, seconds), step_count(sum.flops, flops, sizeof flops),
             step_count((double)sum.parameters, parameters, sizeof parameters));
    return text;
}

static void draw(const canvas *c, const pane_view *v)
{
    const step_view *step = v->rows;
    const hr_step_plan *p = feed_step_plan(step->feed);
    char text[256];
    bool focused = v->focused;
    snprintf(text, sizeof text, "%zu layers · %s p", p == NULL ? 0 : p->layer_count, layer_unit(step).name);
    pane_table_rule(c, v, p == NULL ? "" : text);
    if (step_is_there(c, step->feed)) {
        paint_parts(c, 1, 1, c->area.w - 1, ROLE_FOCUS, totals_text(step, text, sizeof text));
        table_draw(c, 2, step, &source, &step->tables[PANE_LAYERS], focused);
    }
}

// HR_NO_ID: there is none.
static uint32_t selected_layer(const step_view *step)
{
    size_t row = table_selected(&step->tables[PANE_LAYERS]);
    return row < count(step) ? (uint32_t)row : HR_NO_ID;
}

pane_request model_settle(const pane_view *v, void *own)
{
    step_view *step = own;
    (void)v;
    table_settle(&step->tables[PANE_LAYERS], &source, step);
    step_settle_layer(step, selected_layer(step));
    return (pane_request){.kind = PANE_DONE};
}

// To the listing, at its first instruction.
static pane_request enter(const pane_view *v, void *own)
{
    step_view *step = own;
    (void)v;
    if (step->layer_instrs == 0) {
        return pane_says("this layer has no instruction of its own");
    }
    step_go(step, step->of_layer[step->layer_tensors]);
    return (pane_request){.kind = PANE_SHOWS_SCREEN, .screen = SCREEN_PROGRAM};
}

void model_say(const pane_view *v, char text[PANE_TEXT_MAX])
{
    const step_view *step = v->rows;
    const hr_step_plan *p = feed_step_plan(step->feed);
    uint32_t row = selected_layer(step);
    if (row == HR_NO_ID) {
        snprintf(text, PANE_TEXT_MAX, "%s", step_nothing(step->feed));
        return;
    }
    const hr_step_plan_layer *layer = &p->layers[row];
    char weights[HR_BYTES_TEXT_MAX], activations[HR_BYTES_TEXT_MAX], kept[HR_BYTES_TEXT_MAX];
    if (says_requests(step)) {
        snprintf(text, PANE_TEXT_MAX,
                 "Blocks with a name of %s ask for %s in a step; what they are for is not recorded.",
                 hr_step_plan_text(p, layer->name), hr_bytes_human(layer->activation_bytes, activations));
        return;
    }
    snprintf(text, PANE_TEXT_MAX,
             "Layer %s, a %s, has %" PRIu64
             " parameters in %s; a step makes %s of activations there, %s of which "
             "backward keeps.",
             hr_step_plan_text(p, layer->name), hr_step_plan_text(p, layer->kind), layer->parameters,
             hr_bytes_human(layer->parameter_bytes, weights),
             hr_bytes_human(layer->activation_bytes, activations), hr_bytes_human(layer->saved_bytes, kept));
}

const pane_ops pane_layers = {.draw = draw,
                              .settle = model_settle,
                              .table = &source,
                              .table_y = 2,
                              .enter = enter,
                              .enter_does = "listing",
                              .say = model_say};
