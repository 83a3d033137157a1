// SPDX-License-Identifier: Apache-2.0
// Why a request could not be served, from the numbers of the refusal and what its heap had for it.
#ifndef INSIGHT_DIAGNOSE_H
#define INSIGHT_DIAGNOSE_H

#include "headroom/report.h"

#include "events/heap_room.h"
#include "insight/diagnose_evidence.h"

//   capacity       more was asked for than the limit, whatever the allocator does
//   limit          the same, and the card would have had room: a knob sets the limit
//   leak           it would fit, but for what earlier steps retain: that is more than what is wasted where bytes are
//                  short, and what parts the hole where they are not
//   rounding       it would fit, but for what rounding and unsplit chunks waste, and that is at least what is
//                  retained; or but for the size of the pieces that the allocator takes from the device
//   other_stream   it would fit into memory that nothing uses, but that is another stream's, or waits for it
//   outside        it would fit, and the card itself has no more: others have it
//   fragmentation  it would fit, and enough bytes were free, but not in one piece
//   pipeline       it would fit, but for the batches that are held ahead on the device
//
// and of records what insight/diagnose_evidence.h says, which goes before.

// What the step asks for, what would hold it, and what its allocator wasted.
typedef struct step_needs {
    uint64_t asked_bytes;   // at its own peak, the sum of its requests (program_peak_bytes)
    uint64_t limit_bytes;   // the smallest limit that was tried and holds it with this allocator; 0: none was
    uint64_t waste_bytes;   // what rounding and unsplit chunks held at the refusal
    const char *limit_key;  // of the knob that keeps the limit below limit_bytes; NULL: none does
    uint64_t without_bytes; // the limit without it
    uint64_t ahead_bytes;   // of asked_bytes, batches that are held on the device beyond the one that is used
    const char *ahead_key;  // of the knob that has them there
    const oom_evidence *shown; // of a record; NULL: the step is a program
} step_needs;

// Reads the facts of `oom` (requested, free, largest free, in use, pool, limit, categories) and fills cause and
// sentence. `room` may be without `any`. `in_the_way` names a tensor that stands in its window; NULL: none.
void diagnose_oom(const step_needs *needs, const heap_room *room, const char *in_the_way, hr_report_oom *oom);

// A request of a step whose dry run fitted and that is not retained: the card had less than the limit. What its own
// context and other processes hold of it.
void diagnose_outside(uint64_t context_bytes, uint64_t others_bytes, hr_report_oom *oom);

// The same for an allocator that plans: what was refused is the one block of the whole step.
void diagnose_block(const step_needs *needs, hr_report_oom *oom);

// The same of a record: its heap with its refusal, and what its events show. The step is unknown. Fills all of `oom` but its
// fixes; HR_OOM_NONE and "" without a refusal.
void diagnose_record(const heap_snapshot *p, const oom_evidence *shown, hr_report_oom *oom);

#endif
