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

enum {
    LAYER,
    KIND,
    OUTPUT,
    WIDTH,
    RANK,
    SPARSITY,
    PARAMETERS,
    WEIGHTS,
    ACTIVATIONS,
    KEPT,
    FLOPS,
    TIME,
    SHARE,
    BAR = 8,
    ROOMY = 96 // columns that those of compression need beside flops and share
};

static const table_column columns[] = {
    [LAYER] = {.term = "layer", .middle = true},
    [KIND] = {.term = "kind", .width = 16, .from_width = 118},
    [OUTPUT] = {.term = "output_shape", .width = 12, .from_width = 100},
    [WIDTH] = {.term = "width", .width = 6, .number = true, .from_width = ROOMY},
    [RANK] = {.term = "rank", .width = 7, .number = true},
    [SPARSITY] = {.term = "sparsity", .width = 8, .number = true},
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
    const int extra = body.h - 19; // beyond what 80×24 leaves
    rect below = cut_bottom(&body, 7 + extra * 2 / 5);
    l->pane[PANE_LAYER] = cut_left(&below, below.w * 5 / 8);
    l->pane[PANE_WORK] = below;
    l->pane[PANE_RANKS] = cut_bottom(&body, 3 + extra * 2 / 5);
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

// The share of the layer's weights that is zero as its ranks were measured; NaN: they were not, or of another layer.
static double measured_zeros(const step_view *step, size_t row)
{
    const feed *f = step->feed;
    return f->rank_count > 0 && f->rank[0].layer == row ? f->rank[0].zeros : (double)NAN;
}

// What is measured goes before what is planned.
static double sparsity(const step_view *step, size_t row)
{
    const double planned = step->feed->step_plan.layers[row].sparsity, measured = measured_zeros(step, row);
    return isnan(planned) || isnan(measured) ? planned : measured;
}

static double number(const void *of, size_t row, unsigned column)
{
    const step_view *step = of;
    const hr_step_plan_layer *layer = &step->feed->step_plan.layers[row];
    switch (column) {
    case WIDTH:
        return (double)layer->width;
    case RANK:
        return layer->rank_in;
    case SPARSITY:
        return sparsity(step, row);
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

// "32"; of a Tucker-2 core both ranks, "24x32".
static const char *rank_text(const hr_step_plan_layer *layer, char *text, size_t size)
{
    snprintf(text, size, layer->rank_in == layer->rank_out ? "%u" : "%ux%u", layer->rank_in, layer->rank_out);
    return text;
}

static void number_cell(const step_view *step, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    double value = number(step, row, column);
    char words[FORMAT_MAX];
    const char *shown = "";
    if (column == RANK) {
        shown = value == 0 ? "" : rank_text(&step->feed->step_plan.layers[row], words, sizeof words);
    } else if (column == WIDTH) {
        snprintf(words, sizeof words, "%.0f", value);
        shown = value == 0 ? "" : words;
    } else if (column == SPARSITY) {
        (void)format_percent(value, words);
        (void)strncat(words, isnan(measured_zeros(step, row)) ? " p" : " m",
                      sizeof words - strlen(words) - 1);
        shown = isnan(value) ? "" : words;
    } else if (column == PARAMETERS || column == FLOPS) {
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
    return step->feed->step_plan_version << 34 | step->feed->rank_version << 2 | (uint64_t)step->glyphs->set;
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

// What compression makes of the layers is shown where it does something; where that is narrow, in the place of others.
static bool says(const void *of, unsigned column, int pane_width)
{
    const step_view *step = of;
    const bool compresses = step->has_ranks || step->has_masks;
    switch (column) {
    case WIDTH:
        return compresses;
    case RANK:
        return step->has_ranks;
    case SPARSITY:
        return step->has_masks;
    case FLOPS:
    case SHARE:
        return !compresses || pane_width >= ROOMY;
    default:
        return true;
    }
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
    .says = says,
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

enum { ZEROS_MAX = 64 };

// " · zeros 49.9% m": of all weights with masks, where the session stands; "" without.
static const char *zeros_text(const step_view *step, char text[ZEROS_MAX])
{
    char share[FORMAT_MAX];
    text[0] = '\0';
    if (step->has_masks && step->feed->has_report && !isnan(step->feed->report.train.sparsity)) {
        snprintf(text, ZEROS_MAX, " · zeros %s m", format_percent(step->feed->report.train.sparsity, share));
    }
    return text;
}

static void draw(const canvas *c, const pane_view *v)
{
    const step_view *step = v->rows;
    const hr_step_plan *p = feed_step_plan(step->feed);
    char text[256], zeros[ZEROS_MAX];
    bool focused = v->focused;
    snprintf(text, sizeof text, "%zu layers%s · %s p", p == NULL ? 0 : p->layer_count,
             zeros_text(step, zeros), layer_unit(step).name);
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

// What compression makes of a layer, in a sentence that begins with a blank; "" where it makes nothing of it.
static const char *compression_text(const step_view *step, size_t row, char *text, size_t size)
{
    const hr_step_plan_layer *layer = &step->feed->step_plan.layers[row];
    const double measured = measured_zeros(step, row);
    char rank[24], reached[FORMAT_MAX], own[FORMAT_MAX], now[FORMAT_MAX + 32] = "", zeros[ZEROS_MAX];
    size_t length = 0;
    text[0] = '\0';
    if (layer->rank_in > 0) {
        length = (size_t)snprintf(text, size, " Its %" PRIu64 " units are made through rank %s.",
                                  layer->width, rank_text(layer, rank, sizeof rank));
    }
    if (!isnan(layer->sparsity) && length < size) {
        zeros_text(step, zeros);
        if (!isnan(measured)) {
            snprintf(now, sizeof now, ", %s are zero now (m)", format_percent(measured, own));
        }
        snprintf(text + length, size - length,
                 " Of the weights of its %" PRIu64 " units, masks take %s in the end (p)%s%s%s.",
                 layer->width, format_percent(layer->sparsity, reached), now,
                 zeros[0] == '\0' ? "" : "; of all masked weights now:",
                 zeros[0] == '\0' ? "" : zeros + sizeof " ·" - 1);
    }
    return text;
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
    char compression[320];
    if (says_requests(step)) {
        snprintf(text, PANE_TEXT_MAX,
                 "Blocks with a name of %s ask for %s in a step; what they are for is not recorded.",
                 hr_step_plan_text(p, layer->name), hr_bytes_human(layer->activation_bytes, activations));
        return;
    }
    snprintf(text, PANE_TEXT_MAX,
             "Layer %s, a %s, has %" PRIu64
             " parameters in %s; a step makes %s of activations there, %s of which "
             "backward keeps.%s",
             hr_step_plan_text(p, layer->name), hr_step_plan_text(p, layer->kind), layer->parameters,
             hr_bytes_human(layer->parameter_bytes, weights),
             hr_bytes_human(layer->activation_bytes, activations), hr_bytes_human(layer->saved_bytes, kept),
             compression_text(step, row, compression, sizeof compression));
}

const pane_ops pane_layers = {.draw = draw,
                              .settle = model_settle,
                              .table = &source,
                              .table_y = 2,
                              .enter = enter,
                              .enter_does = "listing",
                              .say = model_say};
