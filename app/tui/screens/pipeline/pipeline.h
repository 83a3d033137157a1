// SPDX-License-Identifier: Apache-2.0
// Pipeline: what feeds the step.
#ifndef TUI_SCREENS_PIPELINE_H
#define TUI_SCREENS_PIPELINE_H

#include "app/tui/pane/pane.h"

extern const pane_ops pane_flow, pane_stages, pane_settings;
void place_pipeline(layout *l, rect body, const layout_wish *wish);

// A stage as the engine tells of it now, or, where it only reports its peak, as that.
typedef struct stage_view {
    const char *name;
    bool live;                       // has a queue and bytes of now
    uint32_t length, capacity;       // items; capacity 0: it has no queue
    uint64_t host_bytes, peak_bytes; // HR_NONE: unknown
} stage_view;

enum { STAGE_VIEWS_MAX = STAGES_MAX + 9 };

size_t pipeline_views(const feed *f, stage_view views[STAGE_VIEWS_MAX]);
// A queue's fill as `width` cells: "●●··".
const char *pipeline_bar(uint32_t length, uint32_t capacity, int width, char text[64]);

// A row for each stage that is at work, and the step's: how many there are, and the rows. 0: no times are known.
int pipeline_time_rows(const feed *f);
void pipeline_draw_times(const canvas *c, int y, const feed *f);

enum { DECISION_TEXT_MAX = 256 };
// "1.2 s headroom: map_threads 1 → 2, making outlasts the step"; `figures`: and what was measured. Returns text.
const char *pipeline_decision(const hr_event_tune *t, bool figures, char *text, size_t size);
// The newest decisions of pipeline.autotune, at most `rows`, the newest last. Returns how many.
int pipeline_draw_decisions(const canvas *c, int y, int rows, const feed *f);

// In whole sentences: who waits for whom, the host's bytes, what is copied. Returns text.
const char *pipeline_words(const feed *f, char *text, size_t size);
void pipeline_say(const pane_view *v, char text[PANE_TEXT_MAX]);

#endif
