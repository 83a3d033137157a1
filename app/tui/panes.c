// SPDX-License-Identifier: Apache-2.0
#include "app/tui/panes.h"

#include "app/tui/screens/bench/bench.h"
#include "app/tui/screens/doctor/doctor.h"
#include "app/tui/screens/fit/fit.h"
#include "app/tui/screens/memory/memory.h"
#include "app/tui/screens/pipeline/pipeline.h"
#include "app/tui/screens/runs/runs.h"
#include "app/tui/screens/timeline.h"
#include "app/tui/shell/frame.h"
#include "app/tui/widgets/widgets.h"

// With what the functions of its table take: a part of the state, or, of panes that are in no folder yet, all of it.
static const struct {
    const pane_ops *ops;
    size_t rows;
} panes[PANE_FOCUS_COUNT] = {
    [PANE_KNOBS] = {&pane_knobs, 0},
    [PANE_COUNTERS] = {&pane_counters, 0},
    [PANE_VRAM] = {&pane_vram, 0},
    [PANE_STEP] = {&pane_step, 0},
    [PANE_LOSS] = {&pane_loss, 0},
    [PANE_PEAK] = {&pane_peak, offsetof(app, feed)},
    [PANE_LOG] = {&pane_log, 0},
    [PANE_DOCTOR] = {&pane_doctor, 0},
    [PANE_FIXES] = {&pane_fixes, offsetof(app, feed)},
    [PANE_RUNS] = {&pane_runs, offsetof(app, runs)},
    [PANE_OVERLAY] = {&pane_overlay, offsetof(app, runs)},
    [PANE_DIFF] = {&pane_diff, offsetof(app, runs)},
    [PANE_FRONTIER] = {&pane_frontier, 0},
    [PANE_POINTS] = {&pane_points, offsetof(app, feed)},
    [PANE_FLOW] = {&pane_flow, 0},
    [PANE_STAGES] = {&pane_stages, offsetof(app, feed)},
    [PANE_SETTINGS] = {&pane_settings, offsetof(app, feed)},
    [PANE_TERMS] = {&pane_terms, offsetof(app, learn)},
    [PANE_MEANING] = {&pane_meaning, 0},
    [PANE_SITUATIONS] = {&pane_situations, offsetof(app, learn)},
    [PANE_HEAP] = {&pane_heap, offsetof(app, memory)},
    [PANE_EVENTS] = {&pane_events, offsetof(app, memory)},
    [PANE_BLOCK] = {&pane_block, offsetof(app, memory)},
    [PANE_STACK] = {&pane_stack, 0},
    [PANE_MINIMAP] = {&pane_minimap, 0},
    [PANE_ALIVE] = {&pane_alive, 0},
    [PANE_LISTING] = {&pane_listing, 0},
    [PANE_TURNED] = {&pane_turned, 0},
    [PANE_LAYERS] = {&pane_layers, 0},
    [PANE_LAYER] = {&pane_layer, 0},
    [PANE_WORK] = {&pane_work, 0},
};

const pane_ops *pane_ops_of(pane_id pane)
{
    return panes[pane < PANE_FOCUS_COUNT ? pane : PANE_KNOBS].ops;
}

pane_view pane_view_of(const app *a, pane_id pane)
{
    return (pane_view){.feed = &a->feed,
                       .tables = a->table,
                       .ops = pane_ops_of(pane),
                       .rows = pane_rows(a, pane),
                       .pane = pane,
                       .focused = a->focus == pane,
                       .expands = a->shown == LAYOUT_FULL && !a->expanded};
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
