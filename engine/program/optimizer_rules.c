// SPDX-License-Identifier: Apache-2.0
#include "program/optimizer_rules.h"

#include <stddef.h>

// Constants and slots are Keras' (optimizers/*.py of Keras 3).
static const optimizer_rule rules[] = {
    {.kind = "sgd", .op = HR_OP_SGD},
    {.kind = "momentum", .op = HR_OP_MOMENTUM, .slot = {{"momentum", SLOT_LIKE}}, .takes_momentum = true},
    {.kind = "adam",
     .op = HR_OP_ADAM,
     .slot = {{"m", SLOT_LIKE}, {"v", SLOT_LIKE}},
     .beta1 = 0.9,
     .beta2 = 0.999,
     .epsilon = 1e-7},
};

const optimizer_rule *optimizer_rule_for(const hr_knobs *knobs, const hr_shape *variable)
{
    const optimizer_rule *rule = rules;
    for (size_t k = 0; k < sizeof rules / sizeof *rules; k++) {
        if (hr_knob_is(knobs, HR_KNOB_OPTIMIZER_KIND, rules[k].kind)) {
            rule = &rules[k];
        }
    }
    return rule->suits == NULL || rule->suits(variable) ? rule : rule->otherwise;
}

unsigned optimizer_slot_count(const optimizer_rule *rule)
{
    unsigned count = 0;
    while (rule->slot[count].name != NULL) {
        count++;
    }
    return count;
}

op_operand optimizer_slot_operand(const optimizer_slot *slot, const op_operand *variable)
{
    op_operand o = *variable;
    switch (slot->form) {
    case SLOT_LIKE:
        break;
    }
    return o;
}

op_attr optimizer_attr(const optimizer_rule *rule, const hr_knobs *knobs)
{
    return (op_attr){.momentum = rule->takes_momentum ? hr_knob_real(knobs, HR_KNOB_OPTIMIZER_MOMENTUM) : 0,
                     .beta1 = rule->beta1,
                     .beta2 = rule->beta2,
                     .epsilon = rule->epsilon};
}
