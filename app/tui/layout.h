// SPDX-License-Identifier: Apache-2.0
// Where everything goes: a pure function of the terminal's size and of what is shown. Panes never overlap, never
// leave the screen; a pane that has no place has no rows.
//
//   bench     80×24 and up: knobs and memory left, graphs, table and log right
//   single    60×16 and up: one pane, the others on a strip of tabs
//   meter     30×6 and up: the memory as one bar, the knobs below
//   line      anything: "VRAM 3.61/4.00 GiB (90%)"
#ifndef TUI_LAYOUT_H
#define TUI_LAYOUT_H

#include <stdbool.h>

typedef struct rect {
    int y, x, h, w;
} rect;

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
    X(TITLE, "")                                                                                             \
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

typedef enum layout_class { LAYOUT_LINE, LAYOUT_METER, LAYOUT_SINGLE, LAYOUT_BENCH } layout_class;

typedef struct layout_wish {
    bool doctor;    // the Doctor screen instead of the Bench
    bool expanded;  // the focused pane alone
    pane_id focus;  // < PANE_FOCUS_COUNT
    int knob_count; // rows the knob list would like
} layout_wish;

typedef struct layout {
    layout_class kind;
    rect pane[PANE_COUNT];
} layout;

layout layout_make(int rows, int columns, const layout_wish *wish);
const char *pane_title(pane_id pane);
// The pane after (or, with -1, before) `focus` in the order of the tabs that this screen can show at all.
pane_id layout_next(const layout *l, const layout_wish *wish, int direction);
bool layout_can_show(const layout *l, const layout_wish *wish, pane_id pane);

#endif
