// SPDX-License-Identifier: Apache-2.0
// What computing again costs, for the ways of checkpoint.strategy=budget. Private to program/.
//
// Where the target's judge knows a card, nanoseconds there; elsewhere operations, and as many for a byte that is moved as cards do in
// the time of one. Costs of one target compare, others do not.
#ifndef PROGRAM_COSTS_H
#define PROGRAM_COSTS_H

#include "program/draft.h"

// cost, [instructions]: what each takes; an activation that another instruction does, too, nothing. NOMEM only.
HR_MUST_CHECK hr_status draft_costs(const draft *d, uint64_t *cost, hr_err *err);
// The same in operations, whatever the judge knows.
HR_MUST_CHECK hr_status draft_operations(const draft *d, uint64_t *cost, hr_err *err);

// One copy over the link, on a lane of its own; an eighth more than it takes alone.
uint64_t copy_cost(const hr_target *target, uint64_t bytes);
// A copy that nothing waits for costs this part of itself.
enum { COPY_PART = 64 };

// Of all that a compiled step runs again, of its copies to the host and back, and of what these hold up: they cannot be hidden behind
// more than forward on the way out, and more than backward on the way back.
uint64_t program_cost_again(const hr_target *target, const program *p);

#endif
