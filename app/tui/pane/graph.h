// SPDX-License-Identifier: Apache-2.0
// Memory by category, stacked, with the capacity line: one column per moment.
#ifndef TUI_PANE_GRAPH_H
#define TUI_PANE_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "app/tui/feed/feed.h"
#include "app/tui/term/paint.h"

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

// pinned_bytes: the baseline's peak; 0: none.
graph_scale graph_scale_of(uint64_t pinned_bytes, uint64_t limit_bytes, uint64_t peak_bytes);
void graph_draw(const canvas *c, const graph_scale *scale, const graph_column *columns, int count);
void graph_axis(const canvas *c, const graph_scale *scale, byte_unit unit);
// Letter, name and bytes of each band that has any, in the order of the stack from above.
void graph_legend(const canvas *c, const graph_scale *scale, const uint64_t *band_bytes, byte_unit unit);
// History level `level` with axis, legend and what happened when, below a title line.
void graph_time(const canvas *c, const feed *f, uint64_t pinned_bytes, unsigned level);
void graph_step(const canvas *c, const feed *f, uint64_t pinned_bytes); // the same of the last step
void graph_phase(const canvas *c, int x, const char *name);             // "│forward", where a phase begins
// Columns for the bands when the pane has `width`: the rest is for axis and legend.
int graph_plot_width(int width);

#endif
