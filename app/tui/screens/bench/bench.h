// SPDX-License-Identifier: Apache-2.0
// The Bench: knobs, counters, graphs, loss, what holds the peak, and the log.
#ifndef TUI_SCREENS_BENCH_H
#define TUI_SCREENS_BENCH_H

#include "app/tui/pane/pane.h"

// What memory counters show; the same rows are pinned by a baseline and explained by help.
// X(ID, "label", "term")
#define COUNTER_MAP(X)                                                                                       \
    X(PEAK, "peak", "peak_in_use_bytes")                                                                     \
    X(IN_USE, "in_use", "in_use_bytes")                                                                      \
    X(POOL, "pool", "pool_bytes")                                                                            \
    X(REQUESTED, "requested", "requested_bytes")                                                             \
    X(WASTE, "waste", "waste_bytes")                                                                         \
    X(LARGEST_FREE, "largest_free", "largest_free_bytes")                                                    \
    X(FRAGMENTATION, "fragmentation", "fragmentation")                                                       \
    X(EVER, "peak since start", "peak")                                                                      \
    X(WINDOW, "peak on screen", "peak")                                                                      \
    X(STATIC, "static", "static_bytes")                                                                      \
    X(SAVED, "saved_for_backward", "saved_for_backward_bytes")                                               \
    X(HOST, "host", "host_bytes")

typedef enum counter_id {
#define X(id, label, term) COUNTER_##id,
    COUNTER_MAP(X)
#undef X
        COUNTER_COUNT
} counter_id;

typedef struct baseline {
    bool pinned;
    double counter[COUNTER_COUNT]; // bytes, or a fraction
    double step_seconds, loss_per_second;
} baseline;

typedef struct bench_state {
    const feed *feed;
    const glyphs *glyphs;
    unsigned zoom; // 0: the last step; k: history level k − 1
    size_t counter;
    size_t log_back; // rows scrolled
    uint32_t
        graph_columns; // of the memory graph as it was last shown, for the peak "on screen"; 0: it was not yet
    baseline baseline;
} bench_state;

extern const pane_ops pane_knobs, pane_counters, pane_vram, pane_step, pane_loss, pane_peak, pane_log;
void place_bench(layout *l, rect body, const layout_wish *wish);

void bench_knob_bar(const canvas *c, const feed *f); // the selected knob and its neighbours in one row

// deployed.c. Whether a technique of compress.* is on, and its bytes are known.
bool bench_compresses(const feed *f);
// Then draws what training holds, a stripped model and a deployed one below, as bars where there is room. Returns what is left.
canvas bench_draw_deployed(const canvas *c, const feed *f);
void bench_say_deployed(const feed *f, char *text, size_t size); // a sentence that begins with a blank, or ""

// A counter's value in bytes (or a fraction); NaN when unknown.
double counter_value(const bench_state *bench, counter_id id);
const char *counter_term(counter_id id);
const char *counter_label(counter_id id);
// How it is written while it is not selected: in grey where it says nothing.
role counter_role(const feed *f, counter_id id);

#endif
