// SPDX-License-Identifier: Apache-2.0
// The memory events of the last whole training step, and the heap: kept from the event stream while the training goes
// on, so that any moment of that step can be shown by walking back from now.
//
//   changes ├──── closed ────┤── between ──┤── the step that goes on ──┤ = the heap `now`
//            the last whole one  evaluations
//
// A step is closed by its STEP event, or by a refused request, behind which everything is given back; what a build
// allocates counts as a step until the first one is done. What is evaluated is no training step and never shown.
#ifndef TUI_HEAP_RECORD_H
#define TUI_HEAP_RECORD_H

#include "headroom/knobs.h"

#include "app/tui/feed/heap_mirror.h"

enum { HEAP_STEP_CHANGES_MAX = 16384, HEAP_CHANGES_MAX = 2 * HEAP_STEP_CHANGES_MAX };

typedef enum heap_step_kind {
    HEAP_STEP_NONE,
    HEAP_STEP_BUILD,
    HEAP_STEP_TRAINED,
    HEAP_STEP_REFUSED, // the heap as it was when a request was refused
    HEAP_STEP_PLANNED, // the same of a step that was planned only (Memory makes it)
} heap_step_kind;

typedef struct heap_step {
    heap_step_kind kind;
    char allocator[16]; // its kind
    uint64_t number;    // training steps done, this one included
    uint64_t missing;   // of its first changes, that were too many
} heap_step;

// The request of the last out-of-memory, until something is built or trained again.
typedef struct heap_refused {
    bool any;
    bool is_recorded; // in the step that is closed; else a dry run met it, and the heap is one that never was
    uint64_t requested_bytes, largest_free_bytes, in_use_bytes, pool_bytes;
    uint32_t tensor, instr;
    uint8_t category, phase;
} heap_refused;

// Starts zeroed.
typedef struct heap_record {
    heap_mirror now;
    heap_change *changes; // owned
    size_t room, count, closed, current;
    heap_step step;   // the closed one
    uint64_t version; // changes whenever the closed step or the refused request did
    uint64_t missing; // of the step that goes on
    bool in_build, joins;
    char allocator[16], next_allocator[16]; // kind of the one that runs, and of the next build's
    bool broken; // what is recorded of the step that goes on is not all, or not true
    bool agrees; // the heap has the sums that the last event said
    bool resumes;
    uint64_t resumed_seq;         // of the first event behind what broke it
    uint64_t damage, lost_events; // events that contradicted the heap; events that never came
    heap_refused refused;
} heap_record;

void heap_record_deinit(heap_record *r);
// Another training begins.
void heap_record_clear(heap_record *r);
// Whether the allocator of these knobs makes one region of those that touch: what is mapped piece by piece.
bool heap_joins_regions(const hr_knobs *knobs);
// The knobs of the next build; of the present one while its allocator has no region.
void heap_record_knobs(heap_record *r, const hr_knobs *knobs);
void heap_record_feed(heap_record *r, const hr_event *event);
// Events were overwritten: nothing is shown of the step that goes on. The heap heals with what comes, or by a snapshot.
void heap_record_lost(heap_record *r, uint64_t events);
// A snapshot that was asked for after a loss: it takes the heap's place, and what came since is done to it again. False:
// it does not reach up to what is recorded, or contradicts itself; nothing has changed then.
bool heap_record_restore(heap_record *r, const hr_session_heap *heap);

#endif
