// SPDX-License-Identifier: Apache-2.0
// Where everything goes: a pure function of the terminal's size and of what is shown. Panes never overlap, never
// leave the screen; a pane that has no place has no rows.
//
//   full      80×24 and up: all panes of the screen
//   single    60×16 and up: one pane, the others on a strip of tabs
//   meter     30×6 and up: the memory as one bar, the knobs below
//   line      anything: "VRAM 3.61/4.00 GiB (90%)"
#ifndef TUI_LAYOUT_H
#define TUI_LAYOUT_H

#include <stdbool.h>

#include "app/tui/term/rect.h"

// X(ID, "title"): titles are terms of the glossary.
#define PANE_MAP(X)                                                                                          \
    X(KNOBS, "knobs")                                                                                        \
    X(COUNTERS, "memory")                                                                                    \
    X(VRAM, "vram")                                                                                          \
    X(STEP, "step")                                                                                          \
    X(LOSS, "loss")                                                                                          \
    X(PEAK, "at_peak")                                                                                       \
    X(LOG, "log")                                                                                            \
    X(DOCTOR, "oom")                                                                                         \
    X(FIXES, "fixes")                                                                                        \
    X(RUNS, "runs")                                                                                          \
    X(OVERLAY, "overlay")                                                                                    \
    X(DIFF, "diff")                                                                                          \
    X(FRONTIER, "frontier")                                                                                  \
    X(POINTS, "points")                                                                                      \
    X(FLOW, "flow")                                                                                          \
    X(STAGES, "stages")                                                                                      \
    X(SETTINGS, "settings")                                                                                  \
    X(TERMS, "terms")                                                                                        \
    X(MEANING, "meaning")                                                                                    \
    X(SITUATIONS, "situations")                                                                              \
    X(LESSONS, "lessons")                                                                                    \
    X(LESSON, "lesson")                                                                                      \
    X(STACK, "timeline")                                                                                     \
    X(MINIMAP, "minimap")                                                                                    \
    X(ALIVE, "alive")                                                                                        \
    X(LISTING, "listing")                                                                                    \
    X(TURNED, "turned")                                                                                      \
    X(LAYERS, "layers")                                                                                      \
    X(LAYER, "layer")                                                                                        \
    X(WORK, "instructions")                                                                                  \
    X(RANKS, "ranks")                                                                                        \
    X(HEAP, "heap map")                                                                                      \
    X(EVENTS, "events")                                                                                      \
    X(BLOCK, "block")                                                                                        \
    X(TITLE, "")                                                                                             \
    X(KNOB_BAR, "")                                                                                          \
    X(TABS, "")                                                                                              \
    X(STRIP, "")                                                                                             \
    X(FOOTER, "")                                                                                            \
    X(METER, "")

typedef enum pane_id {
#define X(id, text) PANE_##id,
    PANE_MAP(X)
#undef X
        PANE_COUNT,
    PANE_FOCUS_COUNT = PANE_TITLE, // the panes before can have the focus
} pane_id;

typedef enum layout_class { LAYOUT_LINE, LAYOUT_METER, LAYOUT_SINGLE, LAYOUT_FULL } layout_class;

typedef struct screen_row screen_row;

typedef struct layout_wish {
    const screen_row *screen;
    bool expanded;  // the focused pane alone
    pane_id focus;  // < PANE_FOCUS_COUNT
    int knob_count; // rows the knob list would like
} layout_wish;

typedef struct layout {
    layout_class kind;
    rect pane[PANE_COUNT];
} layout;

struct screen_row {
    const pane_id *panes; // in the order of Tab, PANE_COUNT at the end; the first has the focus when it opens
    // Shares `body` (at least 80×19) out among its panes. The two most important ones have a place at every size.
    void (*place)(layout *l, rect body, const layout_wish *wish);
};

bool screen_row_has(const screen_row *screen, pane_id pane);

layout layout_make(int rows, int columns, const layout_wish *wish);
const char *pane_title(pane_id pane);
// The pane after (or, with -1, before) `focus` in the order of the tabs that this screen can show at all.
pane_id layout_next(const layout *l, const layout_wish *wish, int direction);
bool layout_can_show(const layout *l, const layout_wish *wish, pane_id pane);

// ---- for place functions --------------------------------------------------------------------------------------

int layout_clamp(int value, int low, int high);
// Cut rows or columns off *from and return them; beside a column cut off one column stays blank.
rect cut_top(rect *from, int rows);
rect cut_bottom(rect *from, int rows);
rect cut_left(rect *from, int columns);
// Knobs above, counters below: the left side of Bench and Doctor.
void place_knobs_and_counters(layout *l, rect side, const layout_wish *wish);

#endif
