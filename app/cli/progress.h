// SPDX-License-Identifier: Apache-2.0
// What a run says while it runs: on stderr one line rewritten in place on a terminal, a line each second elsewhere;
// or whole sentences, one each minute and at the end of an epoch. One thread.
#ifndef APP_CLI_PROGRESS_H
#define APP_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "headroom/event.h"

typedef struct progress {
    FILE *out;                       // of whole sentences (--plain); NULL: lines on stderr
    bool has_loss;                   // steps compute one: a NaN is a loss too
    bool terminal;                   // stderr is one
    uint64_t target_steps;           // 0: unknown
    hr_event_step last;              // the latest step's
    uint64_t steps;                  // 0: none was done yet
    bool answering;                  // a teacher answers before the first step
    uint64_t answers_ns;             // on the events' clock, when that was said last
    hr_event_losses losses;          // what the latest step's loss is made of
    uint64_t samples, busy_ns;       // since the last line
    uint64_t shown_ns;               // when the last line was written
    uint64_t said_ns;                // on the events' clock, when the last sentence was; 0: never
    uint64_t said_steps, peak_bytes; // done then, and the highest since
    bool has_saved;
    uint64_t saved_step; // of the last save that was said, with its file
    char saved_to[HR_EVENT_TEXT_MAX];
    unsigned columns; // of the line on the terminal
} progress;

uint64_t progress_now_ns(void); // of a clock that goes evenly
// `out`: where whole sentences go; NULL for lines on stderr. Borrowed.
void progress_begin(progress *p, FILE *out, uint64_t target_steps);
void progress_event(void *p, const hr_event *event); // an hr_event_sink
// Within a step that takes longer than a line may: how many of its rounds are done.
void progress_round(progress *p, uint32_t done, uint32_t rounds);
// A line of one's own in the place of the one before, where stderr is a terminal, and not more often than can be read.
void progress_line(progress *p, const char *line);
// Ends the line on the terminal, so that something else can be written; or takes it away.
void progress_end(progress *p);
void progress_clear(progress *p);

#endif
