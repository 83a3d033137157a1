// SPDX-License-Identifier: Apache-2.0
// What the screen shows of the engine: built from the event stream alone, drawn whole each frame. A plain value,
// so that freezing the view is a copy. Records are not trusted: every index is checked, every text is cut.
#ifndef TUI_FEED_RUN_STATE_H
#define TUI_FEED_RUN_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/event.h"
#include "headroom/report.h"

#include "app/tui/feed/history.h"

enum { LOG_LENGTH = 256, LOG_TEXT_MAX = 512, RECENT_LENGTH = 128, STAGES_MAX = 14, TUNES_LENGTH = 32 };

typedef enum log_kind { LOG_NOTE, LOG_GOOD, LOG_WARN, LOG_BAD } log_kind;

typedef struct log_line {
    uint64_t time_ns; // since the first event
    log_kind kind;
    char text[LOG_TEXT_MAX];
} log_line;

typedef struct recent_step {
    double seconds, loss;
    double wait_seconds; // of these, for input
    uint64_t samples, floor_bytes;
} recent_step;

// The stages as they were when a step ended.
typedef struct stage_mark {
    uint64_t time_ns;
    uint32_t count; // of stages; 0: no mark
    hr_event_stage stage[STAGES_MAX];
} stage_mark;

typedef struct run_state {
    uint64_t first_ns, time_ns; // of the first and newest event
    bool any;
    uint32_t state; // hr_engine_state
    char state_text[HR_EVENT_TEXT_MAX];
    // memory
    heap_now heap;
    heap_now boundary; // at the last step boundary with every category known
    bool attributed;   // band_bytes are exact: BAND_UNKNOWN is waste
    bool counted;      // requested_bytes are exact, also where no category is told
    uint64_t limit_bytes;
    uint64_t peak_bytes;                        // since the start
    uint64_t epoch_peak_bytes;                  // since the last build
    uint64_t step_peak_bytes, step_floor_bytes; // of the last step
    uint64_t lost_events;
    history history;
    profile step_now, step_last;
    // training
    uint64_t steps, epoch;
    double loss, accuracy; // of the last step
    double eval_loss, eval_accuracy;
    hr_event_losses parts;      // what `loss` is made of; NaN where there is no teacher
    hr_event_answers answering; // of a teacher that answers before the first step; no samples: none does
    double loss_scale;          // of the last build's steps; 0: none is used
    uint64_t skipped;           // steps of the last build whose gradients were not finite
    hr_event_health worst; // of the last step's layers, the one that float16 would hold worst; no layer: ""
    recent_step recent[RECENT_LENGTH];
    uint32_t
        recent_count; // since the last knob or state change; the newest is (recent_count − 1) % RECENT_LENGTH
    series losses;
    hr_event_stage stage[STAGES_MAX];
    uint32_t stage_count;
    stage_mark
        marks[2]; // the older first: shares are from there to now, over 32 to 64 steps once there are as many
    uint32_t marked;   // steps since the newer
    uint64_t stage_ns; // when the stages were told last
    hr_event_tune
        tunes[TUNES_LENGTH]; // what pipeline.autotune decided; the newest is (tune_count - 1) % TUNES_LENGTH
    uint32_t tune_count;     // ever
    // last out-of-memory event
    uint64_t oom_count, oom_requested_bytes, oom_largest_free_bytes;
    uint8_t oom_category;
    // log
    uint64_t log_count; // lines ever; line i is log[i % LOG_LENGTH]
    log_line log[LOG_LENGTH];
} run_state;

void run_state_init(run_state *m);
void run_state_feed(run_state *m, const hr_event *event);
void run_state_lost(run_state *m, uint64_t events);
// The other side begins anew, with an empty heap: what it told before stays.
void run_state_restart(run_state *m);
void run_state_log(run_state *m, log_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
// Logs a message that also comes cut, as an event's text is: of the two only the whole one stays.
void run_state_log_once(run_state *m, log_kind kind, const char *text);

bool run_state_is_training(const run_state *m);
// How far a teacher is: "teacher answers 1240 of 60000, 310 a second, 190 s left"; false where none answers.
bool run_state_answers(const run_state *m, char *text, size_t size);
// Means over the recent steps; NaN before the first.
double run_state_step_seconds(const run_state *m);
double run_state_steps_per_second(const run_state *m); // NaN also while it does not train
// By how much the floor of a step grew over each of the last steps, where it did so at least three times running; else 0.
uint64_t run_state_growth_bytes(const run_state *m);
double run_state_wait_share(const run_state *m); // of the recent steps' time, what they waited for input
// Of the time of the recent steps, per thread, that the stage was at work, and that it waited; false where that is not known.
bool run_state_stage_shares(const run_state *m, uint32_t stage, double *busy, double *waits);
double run_state_examples_per_second(const run_state *m);
// Slope of the loss against training time, by least squares over the recent steps: negative while it learns.
double run_state_loss_per_second(const run_state *m);

#endif
