// SPDX-License-Identifier: Apache-2.0
#include "app/tui/panes.h"

#include "app/tui/screens/doctor/doctor.h"
#include "app/tui/screens/fit/fit.h"
#include "app/tui/screens/memory.h"
#include "app/tui/screens/pipeline/pipeline.h"
#include "app/tui/screens/screens.h"
#include "app/tui/screens/timeline.h"
#include "app/tui/widgets/widgets.h"

static const pane_ops *const panes[PANE_FOCUS_COUNT] = {
    [PANE_KNOBS] = &pane_knobs,       [PANE_COUNTERS] = &pane_counters,
    [PANE_VRAM] = &pane_vram,         [PANE_STEP] = &pane_step,
    [PANE_LOSS] = &pane_loss,         [PANE_PEAK] = &pane_peak,
    [PANE_LOG] = &pane_log,           [PANE_DOCTOR] = &pane_doctor,
    [PANE_FIXES] = &pane_fixes,       [PANE_RUNS] = &pane_runs,
    [PANE_OVERLAY] = &pane_overlay,   [PANE_DIFF] = &pane_diff,
    [PANE_FRONTIER] = &pane_frontier, [PANE_POINTS] = &pane_points,
    [PANE_FLOW] = &pane_flow,         [PANE_STAGES] = &pane_stages,
    [PANE_SETTINGS] = &pane_settings, [PANE_TERMS] = &pane_terms,
    [PANE_MEANING] = &pane_meaning,   [PANE_SITUATIONS] = &pane_situations,
    [PANE_HEAP] = &pane_heap,         [PANE_EVENTS] = &pane_events,
    [PANE_BLOCK] = &pane_block,       [PANE_STACK] = &pane_stack,
    [PANE_MINIMAP] = &pane_minimap,   [PANE_ALIVE] = &pane_alive,
    [PANE_LISTING] = &pane_listing,   [PANE_TURNED] = &pane_turned,
    [PANE_LAYERS] = &pane_layers,     [PANE_LAYER] = &pane_layer,
    [PANE_WORK] = &pane_work,
};

const pane_ops *pane_ops_of(pane_id pane)
{
    return panes[pane < PANE_FOCUS_COUNT ? pane : PANE_KNOBS];
}

pane_view pane_view_of(const app *a, pane_id pane)
{
    return (pane_view){.feed = &a->feed,
                       .tables = a->table,
                       .ops = pane_ops_of(pane),
                       .rows = pane_rows(a, pane),
                       .pane = pane,
                       .focused = a->focus == pane};
}

const void *pane_rows(const app *a, pane_id pane)
{
    return pane_ops_of(pane)->table_of_feed ? (const void *)&a->feed : a;
}

table_place pane_table_place(const app *a, pane_id pane, rect r)
{
    return (table_place){&a->looks.glyphs, r.h, r.w, pane_ops_of(pane)->table_y, a->focus == pane};
}
