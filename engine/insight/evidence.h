// SPDX-License-Identifier: Apache-2.0
// What a record shows of a refusal beyond the heap that refused: memory that need not have been there, and what it cost to
// go on so long. Facts; which of them is the cause is insight/diagnose.h's.
//
//   births of one size and name ─┬─ some of every step stay ───────────────▶ leak
//                                ├─ one a step, first come first gone ─────▶ queue: batches that wait on the device
//   the request ─────────────────┴─ one chunk of its size, the same thing ─▶ twin
//
// Steps are what the record marks, else the troughs of what lives.
#ifndef INSIGHT_EVIDENCE_H
#define INSIGHT_EVIDENCE_H

#include "headroom/report.h"

#include "events/heap_room.h"
#include "formats/trace.h"

typedef struct oom_part {
    heap_without without; // it; zeroes: there is none
    uint32_t blocks;
    uint64_t block_bytes;   // of the largest
    uint32_t largest;       // blocks of that size
    uint64_t most_bytes;    // what it comes to as far as the record goes
    uint64_t step_bytes;    // of a leak: how much more with every step
    char name[HR_NAME_MAX]; // of the largest: who asks for it; "": it has no name
} oom_part;

// Starts zeroed.
typedef struct oom_evidence {
    oom_part leak, queue, twin;
    uint32_t steps;    // whole ones, over which it was looked at
    bool steps_marked; // by the record
    uint64_t
        last_peak_bytes; // most that was asked for in the last of them and behind it; HR_NONE: there are not two
    uint64_t retries;    // times that the pool went back to the device for one request
    uint64_t retry_bytes, retry_ns;
} oom_evidence;

// Of the device's events, of which that of number `end` was refused (the count of them: what came behind the last one), and the
// heap that refused; its refusal says what was asked for. What came later tells what stays, too. `t` NULL: there is a heap alone. Without a refusal only what is seen of events is filled. NOMEM.
HR_MUST_CHECK hr_status evidence_of(const trace *t, uint32_t device, uint32_t end, const heap_snapshot *p,
                                    oom_evidence *out, hr_err *err);

#endif
