// SPDX-License-Identifier: Apache-2.0
// A forward instruction that runs again in backward. Private to program/.
#ifndef PROGRAM_CHECKPOINT_AGAIN_H
#define PROGRAM_CHECKPOINT_AGAIN_H

#include "program/draft.h"

typedef struct draft_again {
    uint32_t *self; // [tensors before any ran again] the latest that was made again of it, HR_NO_ID
    const bool *
        gone; // of these: what the next to run again makes; of the others its results are read by nobody. NULL: all
} draft_again;

// What runs in its place: batch normalisation is not measured again, y is made of x and the statistics that were kept.
hr_op draft_op_again(hr_op op);

// Where a reader finds tensor `id` now.
uint32_t draft_self(const draft *d, const draft_again *a, uint32_t id);

// Appends instruction n of the draft to `list`, to run again, and its results to the draft. NOMEM only.
HR_MUST_CHECK hr_status draft_run_again(draft *d, uint32_t n, const draft_again *a, instr_list *list,
                                        hr_err *err);

#endif
