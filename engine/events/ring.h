// SPDX-License-Identifier: Apache-2.0
// A ring of events in shared memory: one producer, any number of readers, each with a cursor of its own. The producer
// never waits and never looks at its readers: a slow one loses the oldest records and is told how many; sequence
// numbers show the gap and counters are absolute. Beside the events stands a heartbeat: what the producer is doing.
//
// The memory is a sealed memfd. Whoever is given its descriptor can neither write to it nor change its size, and so a
// reader of another process cannot harm the producer, nor the producer a reader by taking the memory away. (Linux before
// 5.1 has no seal against writing that leaves the producer's own mapping alone: there readers can write.)
#ifndef EVENTS_RING_H
#define EVENTS_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "headroom/event.h"
#include "headroom/status.h"

typedef struct trace_ring trace_ring;     // the producer's end
typedef struct trace_reader trace_reader; // one reader's

enum { TRACE_TIMEOUT_MAX_S = 600 }; // of a heartbeat: who says more is not believed

// Plain stores, relaxed: of no order with the events.
typedef struct trace_heartbeat {
    hr_position position;
    _Atomic uint64_t beats;      // grows while anything is being done
    _Atomic uint64_t commands;   // carried out so far
    _Atomic uint64_t saved_step; // of the latest autosave; HR_NONE: there is none
    _Atomic uint32_t state;      // hr_engine_state
    _Atomic uint32_t
        timeout_s; // without a beat for so long, while there is work: it hangs; at most TRACE_TIMEOUT_MAX_S
} trace_heartbeat;

// A copy of it.
typedef struct trace_heartbeat_copy {
    uint64_t step, beats, commands, saved_step;
    uint32_t instr, state, timeout_s;
    bool evaluates;
} trace_heartbeat_copy;

// Room for that many events, rounded up to 2^k. NOMEM.
HR_MUST_CHECK hr_status trace_ring_create(uint32_t capacity_events, trace_ring **out, hr_err *err);
void trace_ring_destroy(trace_ring *ring); // NULL is fine; readers keep what they have
void trace_ring_put(trace_ring *ring, const hr_event *event);
trace_heartbeat *trace_ring_heartbeat(trace_ring *ring); // the producer's to write
int trace_ring_fd(const trace_ring *ring);               // to be given away; borrowed
uint64_t trace_ring_put_count(const trace_ring *ring);

// A reader of the ring behind a descriptor that came from elsewhere, which stays the caller's. It begins with the
// oldest record there is. READ error when it is no ring of this version, whole and sealed.
HR_MUST_CHECK hr_status trace_reader_open(int fd, trace_reader **out, hr_err *err);
// A reader in the producer's own process; the ring must outlive it. NOMEM.
HR_MUST_CHECK hr_status trace_reader_of(const trace_ring *ring, trace_reader **out, hr_err *err);
void trace_reader_close(trace_reader *reader); // NULL is fine
// Up to `max` events in order; *lost_events (may be NULL): how many were overwritten since the last call.
size_t trace_reader_take(trace_reader *reader, hr_event *out, size_t max, uint64_t *lost_events);
bool trace_reader_waits(const trace_reader *reader);     // whether there is one to be taken
uint64_t trace_reader_taken(const trace_reader *reader); // records taken or lost so far
trace_heartbeat_copy trace_reader_heartbeat(const trace_reader *reader);

#endif
