// SPDX-License-Identifier: Apache-2.0
// The Bench: its place, and those of its panes that the feed alone decides.
#ifndef TUI_SCREENS_BENCH_H
#define TUI_SCREENS_BENCH_H

#include "app/tui/pane/pane.h"

extern const pane_ops pane_peak;
void place_bench(layout *l, rect body, const layout_wish *wish);

#endif
