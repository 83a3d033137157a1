// SPDX-License-Identifier: Apache-2.0
// The Bench: knobs and memory left, graphs, table and log right.
#include "app/tui/screens/bench/bench.h"

enum {
    KNOBS_WIDEST = 60,     // with what every neighbour does to peak and time
    SIDE_BY_SIDE_MIN = 76, // columns that step and loss need beside each other
};

// Shares the right side out: the memory graph grows most, the log least.
static void place_right(layout *l, rect side)
{
    int extra = side.h - 20; // beyond what 80×24 leaves
    l->pane[PANE_LOG] = cut_bottom(&side, 3 + extra / 6);
    l->pane[PANE_PEAK] = cut_bottom(&side, 4 + extra / 4);
    rect loss = cut_bottom(&side, 4 + extra / 5);
    if (side.w >= SIDE_BY_SIDE_MIN) {
        l->pane[PANE_STEP] = cut_left(&loss, loss.w / 2);
    }
    l->pane[PANE_LOSS] = loss;
    l->pane[PANE_VRAM] = side;
}

void place_bench(layout *l, rect body, const layout_wish *wish)
{
    place_knobs_and_counters(l, cut_left(&body, layout_clamp(body.w * 3 / 8, 30, KNOBS_WIDEST)), wish);
    place_right(l, body);
}
