// SPDX-License-Identifier: Apache-2.0
// When what waits on the host goes there and comes back, where the link has room. Private to program/.
//
//   d2h    ──out a──▶──out b──▶               each behind its last use in forward, as soon as the lane is free
//   h2d                     ──back b──▶──back a──▶    each as late as its first use in backward lets it
#ifndef PROGRAM_LINK_H
#define PROGRAM_LINK_H

#include <stdint.h>

typedef struct link_copy {
    uint32_t id;             // whose
    uint32_t behind, before; // instructions: its last use in forward, and its first one behind that
    uint64_t cost;           // of one direction
    uint32_t done,
        begin; // out: it is on the host before instruction `done`, and begins to come back before `begin`
} link_copy;

// until, [instruction_count + 1]: what all before each instruction cost. Forward ends before instruction forward_end: what goes out does
// so before, and what comes back, behind. Returns by how much the step is held up for that. `copies` are sorted by `before`.
uint64_t link_schedule(link_copy *copies, uint32_t count, const uint64_t *until, uint32_t instruction_count,
                       uint32_t forward_end);

#endif
