// SPDX-License-Identifier: Apache-2.0
// The counters of the memory, one unit for all, and what changed since the pinned baseline.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/tui/feed/measures.h"
#include "app/tui/screens/bench/bench.h"

enum { DELTA_WIDTH = 9 };

// ---- values ---------------------------------------------------------------------------------------------------

static const struct {
    const char *label, *term;
} counters[] = {
#define X(id, label, term) [COUNTER_##id] = {label, term},
    COUNTER_MAP(X)
#undef X
};

const char *counter_label(counter_id id)
{
    return counters[id].label;
}

const char *counter_term(counter_id id)
{
    return counters[id].term;
}

// What the pipeline says it holds now, and what the step program keeps offloaded.
static double host_bytes(const feed *f)
{
    const run_state *m = feed_run_state(f);
    double sum = 0;
    bool known = m->stage_count > 0;
    for (uint32_t i = 0; i < m->stage_count; i++) {
        sum += (double)m->stage[i].host_bytes;
    }
    for (size_t i = 0; f->has_report && i < f->report.host.stage_count; i++) {
        bool offloaded = strcmp(f->report.host.stages[i].name, "offload") == 0;
        sum += offloaded ? (double)f->report.host.stages[i].peak_bytes : 0;
        known = known || offloaded;
    }
    return known ? sum : UNKNOWN;
}

static double known(uint64_t bytes)
{
    return bytes == HR_NONE ? UNKNOWN : (double)bytes;
}

double counter_value(const bench_state *bench, counter_id id)
{
    const run_state *m = feed_run_state(bench->feed);
    const hr_report_memory *report = bench->feed->has_report ? &bench->feed->report.memory : NULL;
    const uint32_t columns = bench->graph_columns > 0 ? bench->graph_columns : 1;
    if (!m->any) {
        return UNKNOWN;
    }
    switch (id) {
    case COUNTER_PEAK:
        return (double)m->epoch_peak_bytes;
    case COUNTER_EVER:
        return (double)m->peak_bytes;
    case COUNTER_WINDOW:
        return bench->zoom == 0 ? (double)m->step_peak_bytes
                                : (double)history_peak_bytes(&m->history, bench->zoom - 1, columns);
    case COUNTER_IN_USE:
        return (double)m->heap.in_use_bytes;
    case COUNTER_POOL:
        return (double)m->heap.pool_bytes;
    case COUNTER_REQUESTED:
        return m->counted ? (double)m->heap.requested_bytes : UNKNOWN;
    case COUNTER_WASTE:
        return m->counted ? (double)m->heap.in_use_bytes - (double)m->heap.requested_bytes : UNKNOWN;
    case COUNTER_LARGEST_FREE:
        return report == NULL ? UNKNOWN : known(report->largest_free_bytes);
    case COUNTER_FRAGMENTATION:
        return report == NULL ? UNKNOWN : report->fragmentation;
    case COUNTER_STATIC:
        return report == NULL ? UNKNOWN : known(report->static_bytes);
    case COUNTER_SAVED:
        return report == NULL ? UNKNOWN : known(report->saved_for_backward_bytes);
    case COUNTER_HOST:
        return host_bytes(bench->feed);
    case COUNTER_COUNT:
        break;
    }
    return UNKNOWN;
}

// ---- the pane -------------------------------------------------------------------------------------------------

role counter_role(const feed *f, counter_id id)
{
    bool says_nothing =
        id == COUNTER_FRAGMENTATION && f->has_report && measures_little_is_free(&f->report.memory);
    return says_nothing ? ROLE_DIM : ROLE_TEXT;
}

static void draw_counter(const canvas *c, int y, const bench_state *bench, bool focused, counter_id id)
{
    char text[FORMAT_MAX];
    byte_unit unit = feed_unit(bench->feed);
    double value = counter_value(bench, id), change = value - bench->baseline.counter[id];
    bool selected = focused && bench->counter == (size_t)id;
    int width = c->area.w - (bench->baseline.pinned ? DELTA_WIDTH : 0);
    role r = selected ? ROLE_SELECT : counter_role(bench->feed, id);
    if (selected) {
        paint_blank(c, y, 0, width, theme_role(c->theme, r));
    }
    if (id == COUNTER_FRAGMENTATION || isnan(value)) {
        format_percent(value, text);
    } else {
        format_bytes((uint64_t)value, unit, text);
    }
    if (id == COUNTER_WASTE) { // its mark in the graphs
        paint_cell(c, y, 0, theme_letter(c->theme, BAND_UNKNOWN), L'%');
    }
    int room = width - 2 - glyphs_width(c->glyphs, text); // one blank before, one after
    paint_text(c, y, 1, room, selected ? ROLE_SELECT : ROLE_DIM, counter_label(id));
    paint_right(c, y, 0, width, r, text);
    if (!bench->baseline.pinned) {
        return;
    }
    if (id == COUNTER_FRAGMENTATION) {
        format_delta(100 * change, "%", text);
    } else {
        format_delta_bytes(change, unit, text);
    }
    paint_right(c, y, width, DELTA_WIDTH, ROLE_BASELINE, text);
}

static void draw(const canvas *c, const pane_view *v)
{
    const bench_state *bench = v->rows;
    char right[64];
    bool planned = bench->feed->has_report && bench->feed->report.device.simulated;
    // Knobs that have not done a step, or whose step was refused: what stands here was of others.
    bool is_of_last =
        feed_run_state(bench->feed)->state == HR_ENGINE_OOM || feed_waiting_plan(bench->feed) != NULL;
    const char *source = is_of_last             ? "last step"
                         : planned              ? "planned"
                         : bench->feed->unknown ? ""
                                                : "measured";
    if (bench->baseline.pinned) {
        snprintf(right, sizeof right, "%s %s  Δ pin", feed_unit(bench->feed).name,
                 c->area.w < 40 ? "" : source);
    } else {
        snprintf(right, sizeof right, "%s %s", feed_unit(bench->feed).name, source);
    }
    paint_rule(c, v->focused, pane_title(PANE_COUNTERS), right);
    int rows = c->area.h - 1;
    int top = (int)bench->counter >= rows ? (int)bench->counter - rows + 1 : 0;
    for (int y = 0; y < rows && top + y < COUNTER_COUNT; y++) {
        draw_counter(c, 1 + y, bench, v->focused, (counter_id)(top + y));
    }
}

static pane_request move(const pane_view *v, void *own, int rows, int columns)
{
    bench_state *bench = own;
    const int64_t to = (int64_t)bench->counter + rows;
    (void)v;
    bench->counter = to < 0 ? 0 : to < COUNTER_COUNT ? (size_t)to : COUNTER_COUNT - 1;
    return (pane_request){.kind = columns == 0 ? PANE_DONE : PANE_ASKS_NOTHING};
}

static const char *term_of_row(const pane_view *v)
{
    const bench_state *bench = v->rows;
    return counter_term((counter_id)bench->counter);
}

static void say(const pane_view *v, char text[PANE_TEXT_MAX])
{
    const bench_state *bench = v->rows;
    char words[FORMAT_MAX];
    byte_unit unit = feed_unit(v->feed);
    double value = counter_value(bench, (counter_id)bench->counter);
    const char *label = counter_label((counter_id)bench->counter);
    if (bench->counter == COUNTER_FRAGMENTATION && !isnan(value) &&
        measures_little_is_free(&v->feed->report.memory)) {
        snprintf(text, PANE_TEXT_MAX,
                 "%s is %s, of so little that is free at the peak that it does not matter.", label,
                 format_percent(value, words));
    } else if (bench->counter == COUNTER_FRAGMENTATION || isnan(value)) {
        snprintf(text, PANE_TEXT_MAX, "%s is %s.", label,
                 isnan(value) ? "not known yet" : format_percent(value, words));
    } else {
        snprintf(text, PANE_TEXT_MAX, "%s is %s %s.", label, format_bytes((uint64_t)value, unit, words),
                 unit.name);
    }
}

const pane_ops pane_counters = {.draw = draw, .move = move, .say = say, .term_of_row = term_of_row};
