// SPDX-License-Identifier: Apache-2.0
// The memory of a first step, played before there is one: where a framework makes the optimizer's slots within the first
// update (program.late_slots), they lie where that step left room, and a heap that was built without it would be another.
//
//   first_step_until_update ─→ the slots are allocated ─→ first_step_end
#ifndef DEVICE_FIRST_STEP_H
#define DEVICE_FIRST_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/status.h"

#include "events/bus.h"
#include "memory/allocator.h"
#include "program/program.h"

typedef struct first_step {
    const program *p; // NULL: nothing is played
    allocator *heap;
    trace_bus *bus;    // may be NULL
    uint64_t *address; // [p->tensor_count] of what is alive
    uint32_t at;       // the next instruction
} first_step;

// Allocates and frees as p does before its first update; rounds of a loop are played once. Nothing is played of a program whose
// slots are not late, nor on an allocator that plans, nor where the heap has no room for it: then everything is given back, and
// the step itself will say so. NOMEM error.
HR_MUST_CHECK hr_status first_step_until_update(const program *p, allocator *heap, trace_bus *bus,
                                                first_step *out, hr_err *err);
// Plays the rest, as far as there is room and unless the slots failed (go_on), and gives back what is left. An empty one is fine.
// NOMEM error, with everything given back.
HR_MUST_CHECK hr_status first_step_end(first_step *s, bool go_on, hr_err *err);

#endif
