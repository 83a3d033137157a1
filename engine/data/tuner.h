// SPDX-License-Identifier: Apache-2.0
// pipeline.autotune at work on a chain: measures what its stages and the step cost, has autotune.h decide between two batches,
// and applies it. The consumer's thread only; nothing is decided while nobody asks for a batch.
#ifndef DATA_TUNER_H
#define DATA_TUNER_H

#include "data/autotune.h"
#include "data/stage.h"
#include "data/tuned.h"

enum { TUNER_DECISIONS = 16 };

// A point from which costs are counted.
typedef struct tuner_mark {
    uint64_t time_ns, wait_ns, batches; // wait_ns and batches: since the tuner began
    stage_spent batch, making;
} tuner_mark;

typedef struct tuner {
    tuned_by by;
    autotune_limits limits;
    data_stage *batch, *prefetch; // borrowed; prefetch NULL: the chain has none
    autotune_state state;         // headroom
    autotune_buffer buffer;       // tensorflow: of prefetch
    uint64_t due_ns, period_ns;   // tensorflow: the next climb
    autotune_setting now;
    tuner_mark begun, since; // since the tuner began; since what is measured was set
    uint64_t wait_ns, batches;
    uint32_t skip; // batches that are not measured: what follows a change was made before it
    hr_event_tune decisions[TUNER_DECISIONS];
    uint32_t count; // of decisions that were not taken yet; more are lost
} tuner;

// `batch` and `prefetch` are stages of one chain, whose making and buffers are as tuned says.
void tuner_begin(tuner *t, const data_tuned *tuned, uint64_t batch_bytes, uint64_t sample_bytes,
                 data_stage *batch, data_stage *prefetch);
// Before a batch is asked for, and once it is there.
void tuner_before(tuner *t);
void tuner_after(tuner *t, uint64_t waited_ns);
// What was measured counts no more: the chain was sought.
void tuner_interrupt(tuner *t);
// Fills out[0..TUNER_DECISIONS) with what was decided since the last call; returns how many.
uint32_t tuner_take(tuner *t, hr_event_tune *out);

#endif
