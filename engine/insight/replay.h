// SPDX-License-Identifier: Apache-2.0
// A trace on allocators over pure numbers, one for every device of the trace. Blocks of a trace are numbered
// (formats/trace.h), so that between event and allocator stands one array:
//
//   alloc block 7 ─▶ allocator ─▶ address ─▶ addresses[7]        free block 7 ─▶ addresses[7] ─▶ allocator
//
// A request that fails leaves its address 0, and its free is ignored. One thread.
#ifndef INSIGHT_REPLAY_H
#define INSIGHT_REPLAY_H

#include "headroom/card.h"
#include "headroom/replay.h"

#include "base/vec.h"
#include "formats/dump.h"
#include "formats/trace.h"
#include "memory/allocator.h"

typedef struct replay_setup {
    allocator_config config;                 // of every device's allocator
    uint64_t limit_bytes[TRACE_DEVICES_MAX]; // of one device instead of the config's; 0: the config's
    const hr_card *card; // whose granularity the memory has; NULL: 2 MiB, as the plan device without a card
    trace_bus *bus;      // gets every event; NULL: none
    bool (*stop)(void *context);
    void *stop_context;
    bool keeps_failure_heap;
    bool tags_events;     // a block's tag is the event that asked for it, not its name
    bool ends_at_failure; // what comes behind the first request that is not served is not played
} replay_setup;

// What one device has come to.
typedef struct replay_device {
    allocator *heap; // NULL: the trace has no event of this device
    backing numbers;
    bool hopeless;             // everything was planned beforehand, and the plan does not fit
    uint64_t failures, served; // served: of those that failed when it was recorded
    uint64_t reach_bytes;      // from the first address that was given out to the end of the highest block
    uint64_t first_address;
    // At the first attainment of the largest in_use.
    struct {
        uint64_t in_use_bytes, requested_bytes, largest_free_bytes, pool_bytes;
        uint32_t event;
    } peak;
} replay_device;

typedef struct replay_failure {
    uint32_t event, step; // event HR_NO_ID: before the first one
    uint32_t device;
    uint64_t requested_bytes;
    heap_counters stats;
} replay_failure;

enum { REPLAY_FAILURES_MAX = HR_REPLAY_FAILURES_MAX };

typedef struct replay_player {
    const trace *t; // borrowed
    replay_setup setup;
    bool tags_events; // also where an allocator wants to hear of everything beforehand
    uint64_t *addresses;
    replay_device devices[TRACE_DEVICES_MAX];
    uint32_t at; // the next event
    uint32_t steps;
    replay_failure failures[REPLAY_FAILURES_MAX]; // the first ones
    uint64_t failure_count;
    heap_snapshot *failure_heap; // of the first one, when it is kept
} replay_player;

// KNOB and NOMEM errors. Needs replay_close in every case.
HR_MUST_CHECK hr_status replay_start(replay_player *p, const trace *t, const replay_setup *setup,
                                     hr_err *err);
// Plays up to, without, event `end` (UINT32_MAX: all), or to the first failure. NOMEM, INTERRUPTED.
HR_MUST_CHECK hr_status replay_play(replay_player *p, uint32_t end, hr_err *err);
void replay_close(replay_player *p);

// The device's heap as it is, with the names of the trace. The caller's to deinit. NOMEM.
HR_MUST_CHECK hr_status replay_snapshot(const replay_player *p, uint32_t device, heap_snapshot *out,
                                        hr_err *err);
// Name of the block that event asks for; NULL when it has none.
const char *replay_name(const trace *t, uint32_t event);

// ---- where it is played ---------------------------------------------------------------------------------------

// What the knobs say of it. Stays where it is: `setup` points at `card`.
typedef struct replay_stage {
    replay_setup setup; // without heap and bus
    hr_card card;
    uint64_t limit_bytes; // as it is reported; HR_NONE: as much as needed
} replay_stage;

// What a trace brings itself: a scenario the pool on which it shows, a heap the limit that it ran into. HR_NONE: nothing.
uint64_t replay_own_limit(const hr_replay_about *about);
// Errors of hr_replay_run.
HR_MUST_CHECK hr_status replay_prepare(const hr_replay *replay, const hr_knobs *set, replay_stage *out,
                                       hr_err *err);

// ---- what the public door is made of --------------------------------------------------------------------------

struct hr_heap {
    heap_snapshot snapshot; // names of its own
    dump_facts facts;       // texts are the snapshot's
};

struct hr_replay {
    trace trace; // without the heap of about.device
    hr_replay_about about;
    hr_heap *recorded; // NULL: there is none
};

// Takes over *t, which is empty then. NOMEM: *t is as it was.
HR_MUST_CHECK hr_status replay_of_trace(trace *t, hr_replay **out, hr_err *err);
// What can be said of a trace without an allocator. The texts are borrowed from the tables and the trace.
void replay_describe(const trace *t, hr_replay_about *out);
// Most that is asked for at once on that device.
uint64_t replay_asked_bytes(const trace *t, uint32_t device);

#endif
