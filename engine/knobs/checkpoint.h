// SPDX-License-Identifier: Apache-2.0
// The words of checkpoint.strategy.
#ifndef KNOBS_CHECKPOINT_H
#define KNOBS_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "headroom/knobs.h"

typedef enum checkpoint_kind {
    CHECKPOINT_NONE,
    CHECKPOINT_EVERY,     // segments of `layers` layers
    CHECKPOINT_SQRT,      // as many segments as layers in one
    CHECKPOINT_BLOCKS,    // a segment ends where nothing but one sum goes on: residual blocks
    CHECKPOINT_SELECTIVE, // normalisations, activations, dropout and attention scores are computed again
    CHECKPOINT_LIST,      // segments end behind the named layers
    CHECKPOINT_BUDGET,    // what costs least among what stays within a peak
} checkpoint_kind;

typedef struct checkpoint_strategy {
    checkpoint_kind kind;
    uint32_t layers;       // EVERY
    const char *names;     // LIST: "a,b,c", in the knobs
    uint64_t budget_bytes; // BUDGET: of the peak in use
} checkpoint_strategy;

// KNOB error with the words there are when checkpoint.strategy is none of them.
HR_MUST_CHECK hr_status checkpoint_strategy_of(const hr_knobs *knobs, checkpoint_strategy *out, hr_err *err);
// Is it budget:SIZE? Then the program depends on the allocator and its limit, too.
bool checkpoint_is_budget(const hr_knobs *knobs);

#endif
