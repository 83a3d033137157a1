// SPDX-License-Identifier: Apache-2.0
#include "app/tui/shell/panes.h"

#include <math.h>

#include "app/tui/screens/bench/bench.h"
#include "app/tui/screens/doctor/doctor.h"
#include "app/tui/screens/fit/fit.h"
#include "app/tui/screens/memory/memory.h"
#include "app/tui/screens/pipeline/pipeline.h"
#include "app/tui/screens/runs/runs.h"
#include "app/tui/screens/step/panes.h"

// With its screen's state, or the feed where it has none.
static const struct {
    const pane_ops *ops;
    size_t rows;
} panes[PANE_FOCUS_COUNT] = {
    [PANE_KNOBS] = {&pane_knobs, offsetof(app, bench)},
    [PANE_COUNTERS] = {&pane_counters, offsetof(app, bench)},
    [PANE_VRAM] = {&pane_vram, offsetof(app, bench)},
    [PANE_STEP] = {&pane_step, offsetof(app, bench)},
    [PANE_LOSS] = {&pane_loss, offsetof(app, bench)},
    [PANE_PEAK] = {&pane_peak, offsetof(app, feed)},
    [PANE_LOG] = {&pane_log, offsetof(app, bench)},
    [PANE_DOCTOR] = {&pane_doctor, offsetof(app, evidence)},
    [PANE_FIXES] = {&pane_fixes, offsetof(app, evidence)},
    [PANE_RUNS] = {&pane_runs, offsetof(app, runs)},
    [PANE_OVERLAY] = {&pane_overlay, offsetof(app, runs)},
    [PANE_DIFF] = {&pane_diff, offsetof(app, runs)},
    [PANE_FRONTIER] = {&pane_frontier, offsetof(app, feed)},
    [PANE_POINTS] = {&pane_points, offsetof(app, feed)},
    [PANE_FLOW] = {&pane_flow, offsetof(app, feed)},
    [PANE_STAGES] = {&pane_stages, offsetof(app, feed)},
    [PANE_SETTINGS] = {&pane_settings, offsetof(app, feed)},
    [PANE_TERMS] = {&pane_terms, offsetof(app, learn)},
    [PANE_MEANING] = {&pane_meaning, offsetof(app, learn)},
    [PANE_LESSONS] = {&pane_lessons, offsetof(app, learn)},
    [PANE_LESSON] = {&pane_lesson, offsetof(app, learn)},
    [PANE_SITUATIONS] = {&pane_situations, offsetof(app, learn)},
    [PANE_HEAP] = {&pane_heap, offsetof(app, memory)},
    [PANE_EVENTS] = {&pane_events, offsetof(app, memory)},
    [PANE_BLOCK] = {&pane_block, offsetof(app, memory)},
    [PANE_STACK] = {&pane_stack, offsetof(app, step)},
    [PANE_MINIMAP] = {&pane_minimap, offsetof(app, step)},
    [PANE_ALIVE] = {&pane_alive, offsetof(app, step)},
    [PANE_LISTING] = {&pane_listing, offsetof(app, step)},
    [PANE_TURNED] = {&pane_turned, offsetof(app, step)},
    [PANE_LAYERS] = {&pane_layers, offsetof(app, step)},
    [PANE_LAYER] = {&pane_layer, offsetof(app, step)},
    [PANE_WORK] = {&pane_work, offsetof(app, step)},
    [PANE_RANKS] = {&pane_ranks, offsetof(app, step)},
};

const pane_ops *pane_ops_of(pane_id pane)
{
    return panes[pane < PANE_FOCUS_COUNT ? pane : PANE_KNOBS].ops;
}

static uint64_t pinned_bytes(const baseline *b)
{
    const double peak = b->counter[COUNTER_PEAK];
    return b->pinned && !isnan(peak) ? (uint64_t)peak : 0;
}

pane_view pane_view_of(const app *a, pane_id pane)
{
    return (pane_view){.feed = &a->feed,
                       .tables = a->table,
                       .ops = pane_ops_of(pane),
                       .rows = pane_rows(a, pane),
                       .pane = pane,
                       .place = app_layout(a).pane[pane],
                       .focused = a->focus == pane,
                       .expands = a->shown == LAYOUT_FULL && !a->expanded,
                       .pinned_bytes = pinned_bytes(&a->bench.baseline)};
}

const void *pane_rows(const app *a, pane_id pane)
{
    return (const char *)a + panes[pane].rows;
}

void *pane_own(app *a, pane_id pane)
{
    return panes[pane].rows == offsetof(app, feed) ? NULL : (char *)a + panes[pane].rows;
}

table_place pane_table_place(const app *a, pane_id pane, rect r)
{
    return (table_place){&a->looks.glyphs, r.h, r.w, pane_ops_of(pane)->table_y, a->focus == pane};
}
