// SPDX-License-Identifier: Apache-2.0
// The panes of the screen: each draws one rectangle from the state, and changes nothing.
#ifndef TUI_WIDGETS_H
#define TUI_WIDGETS_H

#include "app/tui/app.h"
#include "app/tui/panes.h"
#include "app/tui/term/paint.h"

extern const pane_ops pane_knobs, pane_counters, pane_vram, pane_step, pane_loss, pane_log;

void widget_knobs(const canvas *c, const app *a);
void widget_knob_bar(const canvas *c, const feed *f); // the selected knob and its neighbours in one row
// What can be typed, in rows above the line.
void widget_candidates(const canvas *screen, rect line, const app *a);
void widget_prompt(const canvas *c, const app *a);

// ---- the stacked graph ----------------------------------------------------------------------------------------

typedef struct graph_column {
    const uint64_t *band_bytes; // BAND_COUNT of them; NULL: nothing known
    uint64_t floor_bytes, pool_bytes;
    uint8_t marks; // MARK_*
} graph_column;

typedef struct graph_scale {
    double top_bytes;      // value of the upper edge
    uint64_t full_bytes;   // the axis' highest label; 0: the upper edge
    uint64_t limit_bytes;  // capacity line; 0: none, or beyond the top
    uint64_t pinned_bytes; // baseline's peak; 0: none
    bool rest_is_waste;    // BAND_UNKNOWN is what the allocator adds to what is asked for, and nothing else
} graph_scale;

graph_scale graph_scale_of(const app *a, uint64_t limit_bytes, uint64_t peak_bytes);
void graph_draw(const canvas *c, const graph_scale *scale, const graph_column *columns, int count);
void graph_axis(const canvas *c, const graph_scale *scale, byte_unit unit);
// Letter, name and bytes of each band that has any, in the order of the stack from above.
void graph_legend(const canvas *c, const graph_scale *scale, const uint64_t *band_bytes, byte_unit unit);
// History level `level` with axis, legend and what happened when, below a title line.
void graph_time(const canvas *c, const app *a, unsigned level);
void graph_phase(const canvas *c, int x, const char *name); // "│forward", where a phase begins
// Columns for the bands when the pane has `width`: the rest is for axis and legend.
int graph_plot_width(int width);

// How a counter's value is written while it is not selected: in grey where it says nothing.
role counter_role(const feed *f, counter_id id);

#endif
