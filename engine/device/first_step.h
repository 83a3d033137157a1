// SPDX-License-Identifier: Apache-2.0
// The memory of a first step, played before there is one: what a framework makes within it to stay (tensor.made_at: slots
// of the optimizer, workspaces of a library) lies where that step left room, and a heap that was built without it would be another.
//
//   first_step_begin ─→ ( first_step_until ─→ what is made there is allocated )* ─→ first_step_end
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

// Nothing is played of a program that leaves nothing to its first step (program.late), nor on an allocator that plans. NOMEM error.
HR_MUST_CHECK hr_status first_step_begin(const program *p, allocator *heap, trace_bus *bus, first_step *out,
                                         hr_err *err);
// Allocates and frees as the program does before that instruction; rounds of a loop are played once. Where the heap has no room
// for it everything is given back and nothing is played from then on: the step itself will say so. An empty one is fine. NOMEM
// error, with everything given back.
HR_MUST_CHECK hr_status first_step_until(first_step *s, uint32_t instr_index, hr_err *err);
// Plays the rest, as far as there is room and unless what was to stay failed (go_on), and gives back what is left. An empty one is
// fine. NOMEM error, with everything given back.
HR_MUST_CHECK hr_status first_step_end(first_step *s, bool go_on, hr_err *err);

#endif
