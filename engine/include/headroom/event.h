// SPDX-License-Identifier: Apache-2.0
// The one event stream. Flat, versioned, pointer-free records; workbench, exporters, diagnosis, lesson checks
// and tests read these and nothing else.
#ifndef HEADROOM_EVENT_H
#define HEADROOM_EVENT_H

#include <stdatomic.h>
#include <stdint.h>

#include "headroom/category.h"

enum { HR_EVENT_VERSION = 2, HR_EVENT_TEXT_MAX = 64, HR_EVENT_STAGE_MAX = 16, HR_RANK_POINTS = 48 };

// "None" where an id stands: of a tensor, an instruction, a layer, a parameter.
#define HR_NO_ID UINT32_MAX

// X(NAME, "name in traces", what it carries). Traces and rings hold the numbers: a new one goes to the end.
#define HR_EVENT_MAP(X)                                                                                      \
    X(NONE, "none")                                                                                          \
    X(ALLOC, "alloc")       /* memory */                                                                     \
    X(FREE, "free")         /* memory */                                                                     \
    X(GROW, "grow")         /* memory: a region came from the backing */                                     \
    X(SHRINK, "shrink")     /* memory: a region went back */                                                 \
    X(OOM, "oom")           /* memory: requested_bytes were not to be had; the heap as it was then */        \
    X(BUILD, "build")       /* note: a new counter epoch; count = instructions */                            \
    X(STEP, "step")         /* step: a training step ended */                                                \
    X(EVAL, "eval")         /* step: an evaluation ended; loss and accuracy */                               \
    X(EPOCH, "epoch")       /* note: an epoch of data ended; count = how many so far */                      \
    X(STATE, "state")       /* note: count = hr_engine_state; text = why */                                  \
    X(KNOB, "knob")         /* note: count = hr_knob_id; text = new value */                                 \
    X(SAVED, "saved")       /* note: a save was written; count = step; text = file */                        \
    X(SCALE, "scale")       /* scale: a step under dynamic loss scaling changed or skipped something */      \
    X(HEALTH, "health")     /* health: one per layer whose gradients float16 would not hold */               \
    X(PIPELINE, "pipeline") /* stage: one per stage at step end */                                           \
    X(TUNE, "tune")         /* tune: pipeline.autotune decided something */                                  \
    X(LOG, "log")           /* note: text; count = 1: a command line says it, too */                         \
    X(RANK, "rank")         /* rank: of one layer, one per rank (HR_COMMAND_RANKS) */                        \
    X(ANSWERS, "answers")   /* answers: a teacher that answers first did a batch (compress.distill_cache) */ \
    X(LOSSES, "losses") /* losses: in front of a step's record, what its loss is made of (compress.distill) */

typedef enum hr_event_kind {
#define X(name, text) HR_EVENT_##name,
    HR_EVENT_MAP(X)
#undef X
        HR_EVENT_COUNT
} hr_event_kind;

typedef struct hr_event_memory {
    uint64_t address;
    uint64_t requested_bytes;
    uint64_t allocated_bytes;    // of the chunk, the region, or 0 for OOM
    uint64_t in_use_bytes;       // absolute, after the event
    uint64_t pool_bytes;         // absolute, after the event
    uint64_t largest_free_bytes; // OOM only; 0 elsewhere
    uint32_t tensor;             // id in the current program, or HR_NO_ID
    uint32_t stream;
} hr_event_memory;

typedef struct hr_event_step {
    double loss;          // mean over the step's (or evaluation's) samples
    double accuracy;      // fraction; NaN where not measured
    uint64_t duration_ns; // of the step; simulated on the plan device
    uint64_t wait_ns;     // of duration_ns, waiting for the pipeline
    uint64_t samples;
    uint64_t peak_in_use_bytes;  // within this step
    uint64_t floor_in_use_bytes; // smallest within this step
    uint32_t count;              // epoch index, evaluation index
    uint32_t reserved;
} hr_event_step;

// Times and items count from the opening of the stage's chain and only grow, so that the difference of two records is what
// lies between them, whatever was lost. An item is what the stage gives: a batch, or a sample where it makes samples.
typedef struct hr_event_stage {
    uint64_t host_bytes;
    uint64_t busy_ns; // at work, summed over its threads
    uint64_t wait_ns; // of prefetch: for room to make the next batch in
    uint64_t items;
    uint32_t queue_length;
    uint32_t queue_capacity;
    uint32_t threads; // that work on it now; 0: none of its own
    uint32_t cores;   // that its threads may have
    char name[HR_EVENT_STAGE_MAX];
} hr_event_stage;

// Why pipeline.autotune decided. X(NAME, "in words")
#define HR_TUNE_REASON_MAP(X)                                                                                \
    X(MAKING, "making outlasts the step")                                                                    \
    X(UNEVEN, "batches come unevenly")                                                                       \
    X(WAITS, "the step still waits")                                                                         \
    X(FEWER, "fewer may leave the step more")                                                                \
    X(NO_GAIN, "gained nothing: taken back")                                                                 \
    X(HIDDEN, "settled: the step no longer waits")                                                           \
    X(MOST, "settled: more gains nothing")                                                                   \
    X(TIME, "settled: the search took its time")                                                             \
    X(ANEW, "waits more than before: anew")                                                                  \
    X(ALL, "hill climb: all there are")                                                                      \
    X(CORES, "hill climb: below a share of the cores")                                                       \
    X(BUDGET, "hill climb: memory budget reached")                                                           \
    X(DRAINED, "was full, then empty")

typedef enum hr_tune_reason {
#define X(name, text) HR_TUNE_##name,
    HR_TUNE_REASON_MAP(X)
#undef X
        HR_TUNE_REASON_COUNT
} hr_tune_reason;

// One decision, and what was measured of a batch up to then: at `from`.
typedef struct hr_event_tune {
    uint32_t threads_from, threads_to;   // pipeline.map_threads
    uint32_t prefetch_from, prefetch_to; // pipeline.prefetch
    uint32_t reason;                     // hr_tune_reason
    uint32_t as_tensorflow;              // 1: pipeline.autotune=tensorflow decided, 0: headroom
    uint64_t making_ns;                  // from the beginning of making a batch to its end
    uint64_t step_ns;                    // of the step without waiting
    uint64_t wait_ns;                    // the step waited
    uint64_t after_ns;                   // since the chain was opened
} hr_event_tune;

typedef struct hr_event_scale {
    double scale;      // loss scale after the step
    uint64_t skipped;  // steps so far whose gradients were not finite: nothing was updated
    uint32_t happened; // 1: this step's update happened
    uint32_t reserved;
} hr_event_scale;

// Shares of a layer's gradients, as they reach the update (scaled).
typedef struct hr_event_health {
    float flushed;     // below 6e-8 and not zero: float16 has no such number
    float overflowing; // above 65504 or not finite
    uint64_t elements;
    char layer[32];
} hr_event_health;

// What a layer's weights would be as factors of `rank` (compress.low_rank): those that would not be fewer stay as they are.
typedef struct hr_event_rank {
    uint64_t bytes, dense_bytes; // as factors, and as they are
    double error;           // |W - UV| / |W| in the Frobenius norm, of the weights at hand; NaN: not computed
    double break_even;      // rank from which factors are no fewer; of several weights the largest
    double zeros;           // share of the weights at hand that are zero; NaN: not known
    uint32_t layer;         // of the model
    uint32_t rank, full;    // full: the largest there is
    uint32_t point, points; // which it is, of how many: ranks grow
    uint32_t reserved;
} hr_event_rank;

// Before the first step. The first record has none answered; behind the one that has all a build follows.
typedef struct hr_event_answers {
    uint64_t answered, samples;
    uint64_t spent_ns;          // on all batches so far; no pause counts
    uint64_t peak_in_use_bytes; // of the heap that is there meanwhile
} hr_event_answers;

// loss = alpha student + (1 - alpha) distill, and what layers add of their own; alpha: compress.distill_alpha.
typedef struct hr_event_losses {
    double student; // from the labels, as it was without a teacher; NaN: alpha is 0, and it is not looked at
    double distill; // distance of its logits from the teacher's
} hr_event_losses;

typedef struct hr_event {
    uint16_t version;
    uint8_t kind;     // hr_event_kind
    uint8_t category; // hr_category of the tensor; HR_CATEGORY_COUNT: a recorded step does not say it
    uint8_t phase;    // hr_phase; HR_PHASE_COUNT: it does not say it
    uint8_t device;
    uint16_t reserved;
    uint32_t step;    // training steps completed before this event
    uint32_t instr;   // index in the current program, or HR_NO_ID
    uint64_t seq;     // 0, 1, 2 … without gaps at the producer
    uint64_t time_ns; // monotonic; simulated on the plan device
    union {
        hr_event_memory memory;
        hr_event_step step;
        hr_event_stage stage;
        hr_event_tune tune;
        hr_event_scale scale;
        hr_event_health health;
        hr_event_rank rank;
        hr_event_answers answers;
        hr_event_losses losses;
        struct {
            uint64_t count;
            char text[HR_EVENT_TEXT_MAX - 8];
        } note;
    } u;
} hr_event;

_Static_assert(sizeof(hr_event) == 96, "an event is 96 bytes on every machine");

const char *hr_event_name(hr_event_kind kind);
const char *hr_tune_reason_text(hr_tune_reason reason);

// Where the engine is at this moment, for whoever reads it from another thread or process: after a crash it says what
// was going on. Stored relaxed, instruction by instruction; nothing else is ordered by it.
typedef struct hr_position {
    _Atomic uint64_t step;      // training steps done
    _Atomic uint32_t instr;     // in the program at hand; HR_NO_ID: in none
    _Atomic uint32_t evaluates; // 1: the program at hand is an evaluation's
} hr_position;

#endif
