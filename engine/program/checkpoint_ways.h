// SPDX-License-Identifier: Apache-2.0
// Ways to checkpoint one step, for checkpoint.strategy=budget. Private to program/.
//
// A way says of each layer which segment it is in, and of each segment what it keeps beside what other segments read. The ways
// are the cheapest paths (program/remat.h) under falling budgets, of what the draft of the step shows: storages without
// the allocator's rounding, and without workspaces. What a way really needs is known when it has been compiled. They
// depend on the step alone and on no budget of a user's, but that the dearest in memory are skipped where they show far more than the
// budget: so a smaller budget never has a higher peak.
#ifndef PROGRAM_CHECKPOINT_WAYS_H
#define PROGRAM_CHECKPOINT_WAYS_H

#include "program/checkpoint_segments.h"

enum { CHECKPOINT_WAYS_MOST = 256, CHECKPOINT_WAYS_AT_ONCE = 8 };

struct checkpoint_way {
    uint64_t cost, peak_bytes; // as the draft shows it
    uint32_t *segment;         // [model->own_layers] 1, 2, …
    uint8_t *keeps;            // [model->own_layers] segment_keeps
    uint32_t
        *steps; // of a way of instructions (program/checkpoint_evict.h), in place of these; NULL: it is none
    uint32_t step_count;
};

// In the order in which they are tried: each needs less than the one before it, and costs no less.
struct checkpoint_ways {
    arena memory;
    checkpoint_way way[CHECKPOINT_WAYS_MOST];
    uint32_t count;
    uint32_t level;         // from which more are found
    bool lowest;            // asked for: those that need least, whatever the budget
    bool by_value;          // asked for: ways of instructions, in place of segments
    bool done;              // there are no more
    uint64_t at_most_bytes; // what shows more is far above the budget
};

// Empties it, and it goes on from its level.
void checkpoint_ways_deinit(checkpoint_ways *w);

// The next ways of a step; of few layers all of them. `out` is empty before, and the caller deinits it. Those that need far more
// than the budget are left out. NOMEM only.
HR_MUST_CHECK hr_status checkpoint_ways_find(const draft *d, const segments *s, uint64_t budget_bytes,
                                             checkpoint_ways *out, hr_err *err);

// What a draft may show at most of a way that can keep the budget. It is more than what is needed by no more than a seventh, and less
// than it by what stays and by workspaces; where activations go to the host it is more by any amount.
uint64_t checkpoint_ways_at_most(const draft *d, uint64_t budget_bytes);

#endif
