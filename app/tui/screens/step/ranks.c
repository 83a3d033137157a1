// SPDX-License-Identifier: Apache-2.0
// What lower ranks would make of the selected layer: a slider whose positions are the rows of a table. Bytes are known, errors are of the
// weights as they are: the session computes them when it is asked, between two steps.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/screens/step/panes.h"
#include "app/tui/view/bar.h"

enum { RANK, BYTES, SHARE, ERROR, ERROR_BAR, BAR = 24, TABLE_FROM = 7, SLIDER_MAX = 400 };

static const table_column columns[] = {
    [RANK] = {.term = "rank", .width = 7, .number = true},
    [BYTES] = {.term = "bytes", .width = 10, .number = true},
    [SHARE] = {.term = "share",
               .width = BAR,
               .number = true,
               .from_width = 60,
               .line = "bytes as factors, of the layer's weights as they are"},
    [ERROR] = {.term = "reconstruction_error", .width = 20, .number = true},
    [ERROR_BAR] = {.term = "lost",
                   .width = BAR,
                   .number = true,
                   .from_width = 90,
                   .line = "the same as a bar: the whole is the norm of the weights"},
};

// Points of another layer say nothing of this one.
static size_t count(const void *of)
{
    const step_view *step = of;
    const feed *f = step->feed;
    return f->rank_count > 0 && f->rank[0].layer == step->layer ? f->rank_count : 0;
}

static const hr_event_rank *point_at(const step_view *step, size_t row)
{
    return &step->feed->rank[row];
}

static double share_of(const hr_event_rank *p)
{
    return p->dense_bytes > 0 ? (double)p->bytes / (double)p->dense_bytes : 0;
}

static double number(const void *of, size_t row, unsigned column)
{
    const hr_event_rank *p = point_at(of, row);
    return column == RANK    ? p->rank
           : column == BYTES ? (double)p->bytes
           : column == SHARE ? share_of(p)
                             : p->error;
}

static void cell(const void *of, size_t row, unsigned column, char text[TABLE_CELL_MAX])
{
    const step_view *step = of;
    const hr_event_rank *p = point_at(step, row);
    char words[FORMAT_MAX];
    switch (column) {
    case RANK:
        snprintf(text, TABLE_CELL_MAX, "%" PRIu32, p->rank);
        break;
    case BYTES:
        snprintf(text, TABLE_CELL_MAX, "%s",
                 format_cell_bytes(p->bytes, byte_unit_for(p->dense_bytes), words));
        break;
    case ERROR:
        snprintf(text, TABLE_CELL_MAX, "%s", format_percent(p->error, words));
        break;
    default:
        bar_cell(step->glyphs, column == SHARE ? share_of(p) : p->error, BAR, text, TABLE_CELL_MAX);
        break;
    }
}

static uint64_t key(const void *of, size_t row)
{
    return point_at(of, row)->rank;
}

static uint64_t version(const void *of)
{
    const step_view *step = of;
    return step->feed->rank_version << 34 | (uint64_t)step->glyphs->set << 32 | step->layer;
}

static role role_of(const void *of, size_t row)
{
    const hr_event_rank *p = point_at(of, row);
    return p->bytes < p->dense_bytes ? ROLE_TEXT : ROLE_DIM; // it would stay as it is
}

static const table_source source = {
    .columns = columns,
    .column_count = sizeof columns / sizeof *columns,
    .count = count,
    .cell = cell,
    .number = number,
    .key = key,
    .version = version,
    .role_of = role_of,
    .selects = true,
    .empty = "Enter measures what lower ranks would make of the layer's weights as they are.",
};

// ---- the slider -----------------------------------------------------------------------------------------------

static const hr_event_rank *selected(const step_view *step, const table_view *v)
{
    const size_t row = table_selected(v);
    return row < count(step) ? point_at(step, row) : NULL;
}

// "rank 32 of 64 ▐████████        ▌": ranks double from one end to the other.
static void draw_slider(const canvas *c, int y, const hr_event_rank *p)
{
    char bar[SLIDER_MAX];
    const int at = paint_format(c, y, 1, c->area.w - 1, ROLE_FOCUS, "rank %" PRIu32 " of %" PRIu32 " ",
                                p->rank, p->full);
    const int left = 1 + at, room = c->area.w - left - 1;
    const double full = log2((double)p->full) + 1;
    if (room > 8) {
        bar_text(c->glyphs, (log2((double)p->rank) + 1) / full, room, bar, sizeof bar);
        paint_text(c, y, left, room, ROLE_FOCUS, bar);
        const int even = left + (int)((log2(fmax(p->break_even, 1)) + 1) / full * room);
        paint_text(c, y, even < left + room ? even : left + room - 1, 1, ROLE_DIM, "|");
    }
}

static void draw_numbers(const canvas *c, int y, const step_view *step, const hr_event_rank *p)
{
    const byte_unit unit = byte_unit_for(p->dense_bytes);
    char bytes[FORMAT_MAX], dense[FORMAT_MAX], share[FORMAT_MAX], error[FORMAT_MAX], text[200];
    format_bytes(p->bytes, unit, bytes);
    format_bytes(p->dense_bytes, unit, dense);
    format_percent(share_of(p), share);
    format_percent(p->error, error);
    if (isnan(p->error)) {
        snprintf(text, sizeof text, "%s of %s %s p, %s · error of the weights not computed", bytes, dense,
                 unit.name, share);
    } else {
        snprintf(text, sizeof text, "%s of %s %s p, %s · error %s m, at step %" PRIu32, bytes, dense,
                 unit.name, share, error, step->feed->rank_step);
    }
    paint_parts(c, y, 1, c->area.w - 1, ROLE_TEXT, text);
}

// "" where none is selected.
static const char *layer_name(const step_view *step)
{
    const hr_step_plan *p = feed_step_plan(step->feed);
    return p != NULL && step->layer < p->layer_count ? step_layer_name(p, step->layer) : "";
}

static void draw(const canvas *c, const pane_view *v)
{
    const step_view *step = v->rows;
    const table_view *table = &step->tables[PANE_RANKS];
    const hr_event_rank *p = selected(step, table);
    char right[160] = "", dense[FORMAT_MAX];
    if (p != NULL) {
        const byte_unit unit = byte_unit_for(p->dense_bytes);
        snprintf(right, sizeof right, "%s %s %s p · break_even %.1f · a: whole model", layer_name(step),
                 format_bytes(p->dense_bytes, unit, dense), unit.name, p->break_even);
    } else {
        snprintf(right, sizeof right, "%s", layer_name(step));
    }
    pane_table_rule(c, v, right);
    if (c->area.h >= TABLE_FROM) {
        table_draw(c, 1, step, &source, table, v->focused);
    } else if (p == NULL) {
        paint_text(c, 1, 1, c->area.w - 1, ROLE_DIM, source.empty);
    } else {
        draw_slider(c, 1, p);
        draw_numbers(c, 2, step, p);
    }
}

// ---- keys -----------------------------------------------------------------------------------------------------

static pane_request ask(const step_view *step)
{
    pane_request r = {.kind = PANE_ASKS_RANKS};
    snprintf(r.text, sizeof r.text, "%s", layer_name(step));
    return r.text[0] == '\0' ? pane_says("%s", step_nothing(step->feed)) : r;
}

static pane_request enter(const pane_view *v, void *own)
{
    (void)v;
    return ask(own);
}

static pane_request move(const pane_view *v, void *own, int rows, int width)
{
    (void)v;
    if (count(own) == 0) {
        return ask(own);
    }
    return (pane_request){.kind = PANE_MOVES_TABLE, .pane = PANE_RANKS, .rows = rows + width};
}

static pane_request apply(const pane_view *v)
{
    const step_view *step = v->rows;
    const hr_event_rank *p = selected(step, &v->tables[PANE_RANKS]);
    if (p == NULL) {
        return pane_says("Enter has the ranks of the selected layer made first");
    }
    if (p->bytes >= p->dense_bytes) {
        return pane_says("rank %" PRIu32 " makes nothing smaller here: break_even is %.1f", p->rank,
                         p->break_even);
    }
    pane_request r = {.kind = PANE_TURNS};
    snprintf(r.text, sizeof r.text, "compress.low_rank=%" PRIu32, p->rank);
    return r;
}

static pane_request settle(const pane_view *v, void *own)
{
    step_view *step = own;
    const pane_request done = model_settle(v, own);
    table_settle(&step->tables[PANE_RANKS], &source, step);
    return done;
}

static void say(const pane_view *v, char text[PANE_TEXT_MAX])
{
    const step_view *step = v->rows;
    const hr_event_rank *p = selected(step, &v->tables[PANE_RANKS]);
    char bytes[HR_BYTES_TEXT_MAX], dense[HR_BYTES_TEXT_MAX], error[FORMAT_MAX];
    if (p == NULL) {
        snprintf(text, PANE_TEXT_MAX, "%s", source.empty);
        return;
    }
    format_percent(p->error, error);
    snprintf(text, PANE_TEXT_MAX,
             "With rank %" PRIu32 " of %" PRIu32
             ", layer %s takes %s in place of %s%s%s%s; below rank %.1f it gets "
             "smaller. `a` turns compress.low_rank, one rank for the whole model; what has learned goes on "
             "with it from a save.",
             p->rank, p->full, layer_name(step), hr_bytes_human(p->bytes, bytes),
             hr_bytes_human(p->dense_bytes, dense),
             isnan(p->error) ? "; how far from its weights was not computed" : ", and is ",
             isnan(p->error) ? "" : error, isnan(p->error) ? "" : " of their norm away from its weights",
             p->break_even);
}

const pane_ops pane_ranks = {.draw = draw,
                             .settle = settle,
                             .table = &source,
                             .table_y = 1,
                             .move = move,
                             .enter = enter,
                             .enter_does = "measure",
                             .apply = apply,
                             .say = say};
