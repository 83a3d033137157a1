// SPDX-License-Identifier: Apache-2.0
// The words of compress.prune and compress.prune_structure, with the defaults of the TensorFlow Model Optimization Toolkit (tfmot).
#ifndef KNOBS_PRUNE_H
#define KNOBS_PRUNE_H

#include <stdint.h>

#include "headroom/knobs.h"

typedef enum prune_structure {
    PRUNE_BY_ELEMENT,
    PRUNE_BY_BLOCK,
    PRUNE_BY_GROUP,
    PRUNE_BY_FILTER
} prune_structure;

// What is wrong with them, one sentence each (constraints.c).
typedef enum prune_problem {
    PRUNE_FINE,
    PRUNE_STRANGE,           // neither none nor of the form of constant or polynomial
    PRUNE_SPARSITY,          // outside of 0 to below 1
    PRUNE_BACKWARDS,         // ends before it begins
    PRUNE_NEVER,             // a frequency below 1
    PRUNE_POWER,             // not above 0
    PRUNE_STRANGE_STRUCTURE, // neither element nor block:RxC nor n:m nor filter
    PRUNE_WHOLE_GROUPS       // n:m with n not below m
} prune_problem;

typedef struct prune_choice {
    bool prunes;        // not none
    double from, to;    // sparsity
    int32_t begin, end; // updates; end -1: it does not end
    int32_t frequency;
    double power;
    prune_structure structure;
    int32_t rows, columns; // of a block; of GROUP rows weights of columns become 0
} prune_choice;

prune_problem prune_choice_of(const hr_knobs *knobs, prune_choice *out);

bool prune_is_on(const hr_knobs *knobs);
// The first update that makes masks, counted from 1 where they are new; 0 where none does.
uint64_t prune_first_update(const hr_knobs *knobs);
// Each is one problem of its own, for the rows of constraints.c.
bool prune_is_strange(const hr_knobs *knobs); // of neither schedule
bool constant_is_strange(const hr_knobs *knobs);
bool polynomial_is_strange(const hr_knobs *knobs);
bool constant_takes_all(const hr_knobs *knobs);
bool polynomial_takes_all(const hr_knobs *knobs);
bool constant_ends_first(const hr_knobs *knobs);
bool polynomial_ends_first(const hr_knobs *knobs);
bool constant_has_no_turn(const hr_knobs *knobs);
bool polynomial_has_no_turn(const hr_knobs *knobs);
bool prune_has_no_power(const hr_knobs *knobs);
bool prune_structure_is_strange(const hr_knobs *knobs);
bool prune_groups_are_whole(const hr_knobs *knobs);
bool prune_meets_adapters(const hr_knobs *knobs);

#endif
