// SPDX-License-Identifier: Apache-2.0
#include "app/tui/shell/rows.h"

#include "app/tui/screens/bench/bench.h"
#include "app/tui/screens/doctor/doctor.h"
#include "app/tui/screens/fit/fit.h"
#include "app/tui/screens/learn/learn.h"
#include "app/tui/screens/memory/memory.h"
#include "app/tui/screens/pipeline/pipeline.h"
#include "app/tui/screens/runs/runs.h"
#include "app/tui/screens/step/panes.h"

#define PANES(...) ((const pane_id[]){__VA_ARGS__, PANE_COUNT})

static const screen_row screens[SCREEN_COUNT] = {
    [SCREEN_BENCH] = {PANES(PANE_KNOBS, PANE_COUNTERS, PANE_VRAM, PANE_STEP, PANE_LOSS, PANE_PEAK, PANE_LOG),
                      place_bench},
    [SCREEN_MEMORY] = {PANES(PANE_HEAP, PANE_EVENTS, PANE_BLOCK), place_memory},
    [SCREEN_DOCTOR] = {PANES(PANE_KNOBS, PANE_DOCTOR, PANE_FIXES, PANE_COUNTERS, PANE_VRAM, PANE_LOG),
                       place_doctor},
    [SCREEN_RUNS] = {PANES(PANE_RUNS, PANE_DIFF, PANE_OVERLAY), place_runs},
    [SCREEN_TIMELINE] = {PANES(PANE_STACK, PANE_ALIVE, PANE_MINIMAP), place_timeline},
    [SCREEN_PROGRAM] = {PANES(PANE_LISTING, PANE_TURNED), place_program},
    [SCREEN_MODEL] = {PANES(PANE_LAYERS, PANE_LAYER, PANE_WORK, PANE_RANKS), place_model},
    [SCREEN_LEARN] = {PANES(PANE_LESSONS, PANE_TERMS, PANE_MEANING, PANE_SITUATIONS, PANE_LESSON),
                      place_learn},
    [SCREEN_PIPELINE] = {PANES(PANE_FLOW, PANE_STAGES, PANE_SETTINGS), place_pipeline},
    [SCREEN_FIT] = {PANES(PANE_FRONTIER, PANE_POINTS), place_fit},
};

const screen_row *screen_row_of(screen_id screen)
{
    return &screens[screen < SCREEN_COUNT ? screen : SCREEN_BENCH];
}

bool screen_has(screen_id screen, pane_id pane)
{
    return screen_row_has(screen_row_of(screen), pane);
}
