// SPDX-License-Identifier: Apache-2.0
// Who waits for whom, and what would help: from the steps' waits, and the times of the pipeline's stages beside them.
#ifndef TUI_FEED_INPUT_BOUND_H
#define TUI_FEED_INPUT_BOUND_H

#include "app/tui/feed/feed.h"

enum { INPUT_HELP_MAX = 160 };
#define INPUT_BOUND_FROM 0.05 // share of the steps' time that is waited

typedef enum bound_by { BOUND_UNKNOWN, BOUND_COMPUTE, BOUND_INPUT } bound_by;

typedef struct input_bound {
    bound_by by;                // BOUND_UNKNOWN: no step has ended, or the device only plans
    double waits;               // share of the recent steps' time; UNKNOWN with it
    const char *stage;          // that is to blame; "" where no time of any is known, or none is
    double busy;                // share of its time that it was at work
    char why[INPUT_HELP_MAX];   // "map is at work 98 % of the time on 1 thread"
    char helps[INPUT_HELP_MAX]; // "pipeline.map_threads=2"; "" where no knob does
} input_bound;

input_bound input_bound_of(const feed *f);

#endif
