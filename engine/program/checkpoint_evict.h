// SPDX-License-Identifier: Apache-2.0
// Ways to checkpoint one step at the grain of an instruction, for checkpoint.strategy=budget. Private to program/.
//
// The step's instructions are gone through under an inner budget. Where results would pass it, a value that can be made again is let go
// of: the one whose making again costs least for its bytes and the time until it is read next. What is read and not there is made
// again from what is, at any depth. This is dynamic tensor rematerialization (Kirisame and others, 2021), but that the readers to come
// are known. The inner budgets are parts of what the plain step needs: no budget of a user's is in them.
#ifndef PROGRAM_CHECKPOINT_EVICT_H
#define PROGRAM_CHECKPOINT_EVICT_H

#include "program/checkpoint_ways.h"

// A step of a way: the index of an instruction that runs, again where it ran before; or a tensor with one of these bits: what lies in
// its storage is let go of, or nobody would read it any more, or, before all else, is sent to the host for backward.
#define CHECKPOINT_GOES   UINT32_C(0x80000000)
#define CHECKPOINT_ENDS   UINT32_C(0x40000000)
#define CHECKPOINT_LEAVES UINT32_C(0x20000000)

// Adds to `out`, which is empty, the ways that are found, the cheapest first, each lower than the one before it. may_drop, [tensors]:
// what can be made again at all. The budget is only noted (at_most_bytes). NOMEM only.
HR_MUST_CHECK hr_status evictions_find(const draft *d, uint32_t forward_count, const bool *may_drop,
                                       uint64_t budget_bytes, checkpoint_ways *out, hr_err *err);

// The draft's instructions become those of the way. self, [tensors]: all HR_NO_ID, written to. NOMEM only.
HR_MUST_CHECK hr_status evictions_replay(draft *d, const checkpoint_way *way, uint32_t *self, hr_err *err);

#endif
