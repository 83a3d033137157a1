// SPDX-License-Identifier: Apache-2.0
// The one table of optimizers: for each choice of optimizer.kind the operation that updates a variable, the slots it
// keeps beside the variable, and the constants it is written with. Build allocates from it, the optimizer pass emits
// from it.
#ifndef PROGRAM_OPTIMIZER_RULES_H
#define PROGRAM_OPTIMIZER_RULES_H

#include <stdbool.h>

#include "headroom/knobs.h"

#include "ops/op.h"

// The average of a variable, its last slot under optimizer.ema.
#define OPTIMIZER_EMA_SLOT "ema"

enum { OPTIMIZER_MAX_SLOTS = 3 };

// What a slot is, beside a variable of a given shape and type.
typedef enum slot_form {
    SLOT_LIKE,    // shape and type of the variable
    SLOT_ROWS,    // one for each row of its last two dimensions
    SLOT_COLUMNS, // one for each column
    SLOT_CODES,   // one byte for each element
    SLOT_SCALES,  // two float32 for each block of CODE8_BLOCK elements
} slot_form;

typedef struct optimizer_slot {
    const char *name; // "weights:NAME" is the tensor; NULL behind the last
    slot_form form;
} optimizer_slot;

typedef struct optimizer_rule {
    const char *kind; // choice of optimizer.kind; NULL for a form that only `otherwise` names
    hr_op op;
    optimizer_slot slot[OPTIMIZER_MAX_SLOTS + 1]; // operands behind variable and gradient, in this order
    bool takes_momentum;                          // optimizer.momentum
    bool takes_constants;                         // optimizer.beta1, beta2 and epsilon stand for those below
    double beta1, beta2, epsilon, weight_decay;
    double torch_epsilon,
        torch_weight_decay; // under optimizer.form torch; an epsilon of 0: there is one form only
    bool (*suits)(const hr_shape *variable); // NULL: every variable
    const struct optimizer_rule *otherwise;  // for those that it does not suit
} optimizer_rule;

// The rule that a variable of this shape follows. Never NULL.
const optimizer_rule *optimizer_rule_for(const hr_knobs *knobs, const hr_shape *variable);
unsigned optimizer_slot_count(const optimizer_rule *rule);
op_operand optimizer_slot_operand(const optimizer_slot *slot, const op_operand *variable);
// The attributes of an update instruction.
op_attr optimizer_attr(const optimizer_rule *rule, const hr_knobs *knobs);
// Whether an average of every variable is held (optimizer.ema).
bool optimizer_averages(const hr_knobs *knobs);

#endif
