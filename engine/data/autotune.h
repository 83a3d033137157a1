// SPDX-License-Identifier: Apache-2.0
// How many threads make a batch and how many batches are made ready (pipeline.autotune), decided from what was measured. Pure
// functions: no clock, no thread, no pipeline. The state is a value, and what a decision changes is returned.
//
// headroom measures a setting for some batches at a time and goes on from the least:
//
//   MAKING   making a batch outlasts the step: as many threads as would hide it if they shared it evenly; kept when batches
//            come sooner, else taken back
//   READY    the step still waits, because batches are made unevenly: twice as many ready; kept when it waits less
//   MORE     the step still waits: one thread more at a time, kept when batches come sooner
//   FEWER    threads take cores from the step: one less at a time, kept when batches come as soon
//   SETTLED  nothing changes until the step waits for more of its time than when it settled
//
// tensorflow decides as tf.data does (tensorflow/core/framework/model.cc, prefetch_autotuner.cc): a climb on a model of
// processing times, and a rule of its own for the buffer of prefetch.
#ifndef DATA_AUTOTUNE_H
#define DATA_AUTOTUNE_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/event.h"

typedef struct autotune_setting {
    uint32_t threads, prefetch; // prefetch: batches; 0: the chain has no such stage
} autotune_setting;

typedef struct autotune_limits {
    autotune_setting least, most; // the same where a number is not to be decided
    uint32_t cores;
    uint64_t budget_bytes; // tensorflow: of what is buffered
    uint64_t sample_bytes, batch_bytes;
} autotune_limits;

// What a setting cost, from its first batch on.
typedef struct autotune_measures {
    uint64_t batches;    // that the step has taken
    uint64_t elapsed_ns; // for these
    uint64_t wait_ns;    // of it, the step waited
    uint64_t made;       // batches that were made
    uint64_t draw_ns;    // for these, on one thread whatever the setting
    uint64_t making_ns;  // for these, summed over the threads
    uint64_t wall_ns;    // for these, from the beginning of making to its end
} autotune_measures;

typedef struct autotune_decision {
    autotune_setting from, to;
    hr_tune_reason reason;
} autotune_decision;

// ---- headroom -------------------------------------------------------------------------------------------------

typedef enum autotune_phase {
    AUTOTUNE_MAKING,
    AUTOTUNE_READY,
    AUTOTUNE_MORE,
    AUTOTUNE_FEWER,
    AUTOTUNE_SETTLED
} autotune_phase;

typedef struct autotune_state {
    autotune_phase phase;
    bool tries; // `now` is tried: `before` is what it is taken back to
    autotune_setting now, before;
    double batch_ns, waits_ns; // of `before`, a batch
    double settled_share;      // of the step's time, that it waited when it settled
    uint64_t spent_ns;         // since the search began
} autotune_state;

autotune_state autotune_begin(const autotune_limits *limits);
// Whether the measures tell enough of the state's setting for a decision.
bool autotune_knows(const autotune_state *s, const autotune_measures *m);
// What the measures of s->now decide. Returns how many decisions there are, 0 to 2: a change that is taken back and what is
// done instead are two. Measures are to begin anew when s->now has changed.
uint32_t autotune_decide(autotune_state *s, const autotune_limits *limits, const autotune_measures *m,
                         autotune_decision out[2]);

// ---- tensorflow -----------------------------------------------------------------------------------------------

enum { AUTOTUNE_FIRST_PERIOD_MS = 10, AUTOTUNE_LAST_PERIOD_MS = 60000 };

// HillClimb with the model input time of 0 that tf.data uses: every number begins at its least, and the one is raised by 1
// that lowers the modelled output time most, a buffer only if it does by more than 1 ns, which at that input time none
// does. Ends when all are at most, when the output time is below the processing time divided by the cores, or when more than
// the budget is buffered at most.
uint32_t autotune_climb(const autotune_limits *limits, const autotune_measures *m, uint32_t prefetch,
                        hr_tune_reason *why);

// PrefetchAutotuner: a buffer that was seen full and later empty is doubled, from 2048 on raised by 2048.
typedef struct autotune_buffer {
    uint64_t limit;
    bool was_full;
} autotune_buffer;

// Called as a batch is taken, with how many were ready. True: b->limit has grown. It does not grow beyond `most`, nor where
// the bytes for more are not in the budget beside `used_bytes`.
bool autotune_consumed(autotune_buffer *b, uint64_t ready, uint64_t most, uint64_t batch_bytes,
                       uint64_t used_bytes, uint64_t budget_bytes);

#endif
