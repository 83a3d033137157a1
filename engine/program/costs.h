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

// Of all that a compiled step runs again.
uint64_t program_cost_again(const hr_target *target, const program *p);

#endif
