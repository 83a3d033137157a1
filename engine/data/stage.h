// SPDX-License-Identifier: Apache-2.0
// The producer is a chain of stages: source → shuffle → batch → prefetch. Each stage pulls from the one before
// it; later kinds (map, cache, …) only add rows. What a stage holds is counted in the host ledger.
//
// Up to `batch` the chain moves sample *numbers*: images stay in the source until a batch is written, so a
// shuffle of n samples holds 4n bytes and a restart replays an epoch's order without touching an image.
//
// A chain belongs to one thread at a time: the prefetch stage's producer while that runs, else the consumer.
#ifndef DATA_STAGE_H
#define DATA_STAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#include "data/slot.h"

#define DATA_NO_PLACE UINT32_MAX

// One sample or one batch of samples on its way. The stage that gave it owns the bytes until the next call.
typedef struct data_item {
    data_room room;  // after batch: [count, …] of every slot
    uint32_t sample; // before batch: the sample's number in its set
    uint64_t epoch;  // before batch: 0-based
    uint32_t place;  // before batch: where the sample lies in the pool; DATA_NO_PLACE: it is not kept there
    uint32_t count;  // samples
    uint32_t bad;    // after batch: of them, those that replace others that cannot be read
    uint64_t first_sample; // of the pipeline's items: samples given out before this one, over all epochs
    bool end;              // the epoch is over; nothing else is set
} data_item;

// Where an epoch stands: enough to go on bit-identically after a restart.
typedef struct data_position {
    uint64_t epoch;   // 0-based
    uint64_t samples; // given out in this epoch; with repeat an update may have taken more than it has
} data_position;

typedef struct data_stage data_stage;

typedef struct data_stage_ops {
    const char *name; // "shuffle"
    // One item, or out->end; the call after that begins the next epoch. After an error only seek and close.
    hr_status (*next)(data_stage *s, data_item *out, hr_err *err);
    // Starts epoch p.epoch after p.samples samples, as if they had been given out. O(p.samples), and behind repeat a shuffle draws
    // all epochs before again; no images read.
    hr_status (*seek)(data_stage *s, data_position p, hr_err *err);
    void (*close)(data_stage *s); // frees this stage only; see data_stage_close
    // optional: NULL means the stage has no such thing
    void (*write_to)(data_stage *s, const data_room *room); // the next item's bytes go there: borrowed
    void (*queue)(const data_stage *s, uint32_t *length, uint32_t *capacity); // thread-safe
} data_stage_ops;

// What a stage costs.
typedef struct stage_spent {
    uint64_t busy_ns; // at work, summed over threads
    uint64_t wall_ns; // at work, as the clock has it
    uint64_t wait_ns; // of prefetch: for room
    uint64_t items;
} stage_spent;

// The same since the stage was opened: the chain's thread adds to it, once an item.
typedef struct stage_times {
    atomic_uint_fast64_t busy_ns, wall_ns, wait_ns, items;
    atomic_uint threads; // that work on it; 0: it has none of its own
} stage_times;

struct data_stage {
    const data_stage_ops *ops;
    data_stage *before;                               // owned; NULL for a source
    atomic_uint_fast64_t held_bytes, peak_held_bytes; // the ledger; read by any thread
    atomic_uint_fast64_t pinned_bytes;                // beside it, of a device's pinned memory
    uint64_t in_flight_bytes;  // beside it, of samples that are being made; set when opened
    stage_times times, making; // of the stage, and of its part that makes samples, where it has one
};

// The ledger: bytes taken and given back. Called by the chain's thread only.
void data_stage_hold(data_stage *s, uint64_t bytes);
void data_stage_release(data_stage *s, uint64_t bytes);

// What a stage holds of each sample whose number it keeps: where the sample lies in a pool too, and its epoch where that is not its
// neighbours'.
uint32_t data_number_bytes(bool has_place, bool has_epoch);

// Called by the chain's thread only.
void stage_times_add(stage_times *t, const stage_spent *spent);
// Thread-safe; each figure by itself.
stage_spent stage_times_now(const stage_times *t);

// Where batches go: their form, and the memory that their buffers are to be of. What is refused there ordinary memory
// gives, and `refusal` says why.
typedef struct data_buffers {
    data_form form;
    pinned_memory pinned; // all zero: ordinary memory is what is wanted
    hr_err *refusal;      // borrowed; NULL with no pinned memory
} data_buffers;

// The room of a batch, and the same given back, counted.
HR_MUST_CHECK hr_status data_stage_take_room(data_stage *s, const data_buffers *buffers, uint32_t samples,
                                             data_room *room, hr_err *err);
void data_stage_give_back_room(data_stage *s, const data_form *form, uint32_t samples, data_room *room);

// Closes the stage and all before it. NULL is fine.
void data_stage_close(data_stage *s);

#endif
