// SPDX-License-Identifier: Apache-2.0
// The runs of this session. A run is one configuration of one training: what happened under it between two builds or
// turns of a knob. It begins with its first finished step, or with the out-of-memory that was all of it; a training that
// comes back to a configuration, by undo for instance, goes on with its run. One that begins anew, or whose worker died,
// has another.
//
//   turn, build ─▶ (waits) ─ a step ─▶ RUNNING ─ a turn, a build ─▶ ENDED ─ turned back, a step ─▶ RUNNING
//                     └─ does not fit ─▶ OOM ◀─┤
//                                              └─ its worker died ─▶ FAILED
//
// The log is bounded: when it is full the oldest goes that is neither the first run nor the pinned one.
#ifndef TUI_RUN_LOG_H
#define TUI_RUN_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/event.h"
#include "headroom/knobs.h"
#include "headroom/report.h"

#include "app/tui/feed/measures.h"
#include "app/tui/feed/run_state.h"

enum { RUN_TIMED_STEPS = 5, RUN_LOG_MAX = 64, RUN_PROFILE = 128, RUN_NAME_MAX = 64, RUN_CAUSE_MAX = 24 };

// X(ID, "name")
#define RUN_RESULT_MAP(X)                                                                                    \
    X(RUNNING, "running")                                                                                    \
    X(ENDED, "ended")                                                                                        \
    X(OOM, "oom")                                                                                            \
    X(FAILED, "failed")

typedef enum run_result {
#define X(id, text) RUN_##id,
    RUN_RESULT_MAP(X)
#undef X
} run_result;

typedef struct run {
    uint32_t number; // 1, 2, 3 … within the session
    char preset[RUN_NAME_MAX];
    char name[RUN_NAME_MAX]; // given by the user; "": none
    hr_knobs knobs;
    measures measures;
    double seconds;        // of all its steps
    uint64_t began_at;     // steps that its weights had been trained before its first
    uint32_t goes_on_from; // the number of the run whose weights those were; 0: none of the log
    uint32_t returns;      // times it was gone on with after another
    run_result result;
    char cause[RUN_CAUSE_MAX];     // of OOM; "": not known
    uint64_t profile[RUN_PROFILE]; // in_use over the events of its last step: the highest of each part
    uint32_t profile_count;        // RUN_PROFILE, or 0: no step was seen whole
    series losses;
} run;

typedef struct run_log {
    run runs[RUN_LOG_MAX]; // by number
    size_t count;
    uint32_t last;    // number of the newest run ever
    uint32_t pinned;  // number of the baseline; 0: none
    uint32_t current; // of the present configuration, when it has `begun`
    uint32_t trained; // of the newest step: its weights are what the next run goes on from; 0: none
    bool open;        // that run goes on
    bool begun;       // the present configuration has a run already
    uint64_t version; // of all this
} run_log;

// To be called behind run_state_feed and the knobs that follow from the event.
void run_log_event(run_log *log, const run_state *m, const hr_knobs *knobs, const char *preset,
                   const hr_event *e);
// What only the engine's report knows; one that belongs to another configuration is passed over.
void run_log_report(run_log *log, const hr_report *report);
// The training ended, and with it the newest run; or its worker died.
void run_log_close(run_log *log);
void run_log_fail(run_log *log);

// Gives a run of the log its name; "" takes it away. False: no run has that number.
bool run_log_name(run_log *log, uint32_t number, const char *name);

const run *run_log_at(const run_log *log, size_t row); // NULL beyond the last
const run *run_log_find(const run_log *log, uint32_t number);
const run *run_log_newest(const run_log *log);  // NULL: there was none
const run *run_log_current(const run_log *log); // of the present configuration; NULL: it has none yet
const char *run_result_name(run_result result);
double run_steps_per_second(const run *r); // NaN before the first step

bool run_knob_differs(const run *a, const run *b, hr_knob_id id);

// "batch.size=64 execution.mode=graph": where `r` differs from `from`, cut at `size`. "" for no difference.
const char *run_pairs(const run *from, const run *r, char *text, size_t size);

// The same against the first run of the log, and what sets `r` apart from the others first: a value that all have who are
// not the first comes last.
const char *run_distinction(const run_log *log, const run *r, char *text, size_t size);

// The two runs that DIFF and OVERLAY show: marked ones, else the selected one against the baseline or the first.
typedef struct run_pair {
    const run *a, *b; // b NULL: there is nothing to compare it with; a NULL: there is no run
} run_pair;

run_pair run_log_pair(const run_log *log, const uint64_t *marked, unsigned marks, uint32_t selected);

// What b changed, in a sentence or two; b is not NULL. Losses are compared only where both runs began at step 0, times only
// where both have RUN_TIMED_STEPS steps. Returns text.
const char *run_verdict(const run_pair *pair, char *text, size_t size);

#endif
