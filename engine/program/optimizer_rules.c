// SPDX-License-Identifier: Apache-2.0
#include "program/optimizer_rules.h"

#include <stddef.h>

#include "base/code8.h"

// Smaller tensors keep their moments in full (bitsandbytes' min_8bit_size).
enum { CODED_ELEMENTS = 4096 };

static bool is_matrix(const hr_shape *variable)
{
    return variable->rank >= 2;
}

static bool is_worth_codes(const hr_shape *variable)
{
    uint64_t elements = 0;
    return shape_elements(variable, &elements) && elements >= CODED_ELEMENTS;
}

#define ADAM_CONSTANTS                                                                                       \
    .takes_constants = true, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-7, .torch_epsilon = 1e-8
#define ADAM_SLOTS                                                                                           \
    {                                                                                                        \
        {"m", SLOT_LIKE},                                                                                    \
        {                                                                                                    \
            "v", SLOT_LIKE                                                                                   \
        }                                                                                                    \
    }
// Smallest size of a weight that the learning rate is relative to, exponent of the decay, and what is added to g².
#define ADAFACTOR_CONSTANTS .beta1 = 1e-3, .beta2 = -0.8, .epsilon = 1e-30

static const optimizer_rule small_adam = {.op = HR_OP_ADAM, .slot = ADAM_SLOTS, ADAM_CONSTANTS};
static const optimizer_rule vector_adafactor = {
    .op = HR_OP_ADAFACTOR, .slot = {{"v", SLOT_LIKE}}, ADAFACTOR_CONSTANTS};

// Constants and slots are Keras' (optimizers/*.py of Keras 3), codes and blocks of adam8bit bitsandbytes'; torch_ constants are
// those of torch/optim/adam.py and adamw.py.
static const optimizer_rule rules[] = {
    {.kind = "sgd", .op = HR_OP_SGD},
    {.kind = "momentum", .op = HR_OP_MOMENTUM, .slot = {{"momentum", SLOT_LIKE}}, .takes_momentum = true},
    {.kind = "rmsprop",
     .op = HR_OP_RMSPROP,
     .slot = {{"v", SLOT_LIKE}},
     .takes_constants = true,
     .beta1 = 0.9,
     .epsilon = 1e-7},
    {.kind = "adam", .op = HR_OP_ADAM, .slot = ADAM_SLOTS, ADAM_CONSTANTS},
    {.kind = "adamw",
     .op = HR_OP_ADAM,
     .slot = ADAM_SLOTS,
     ADAM_CONSTANTS,
     .weight_decay = 0.004,
     .torch_weight_decay = 0.01},
    {.kind = "adafactor",
     .op = HR_OP_ADAFACTOR,
     .slot = {{"r", SLOT_ROWS}, {"c", SLOT_COLUMNS}},
     ADAFACTOR_CONSTANTS,
     .suits = is_matrix,
     .otherwise = &vector_adafactor},
    {.kind = "adafactor_keras",
     .op = HR_OP_ADAFACTOR_KERAS,
     .slot = {{"r", SLOT_ROWS}, {"c", SLOT_COLUMNS}, {"v", SLOT_LIKE}},
     ADAFACTOR_CONSTANTS,
     .suits = is_matrix,
     .otherwise = &vector_adafactor},
    {.kind = "lion",
     .op = HR_OP_LION,
     .slot = {{"m", SLOT_LIKE}},
     .takes_constants = true,
     .beta1 = 0.9,
     .beta2 = 0.99},
    {.kind = "adam8bit",
     .op = HR_OP_ADAM8BIT,
     .slot = {{"m8", SLOT_CODES}, {"v8", SLOT_CODES}, {"scales", SLOT_SCALES}},
     ADAM_CONSTANTS,
     .suits = is_worth_codes,
     .otherwise = &small_adam},
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

// Without the last dimension, or without the last but one.
static hr_shape without_dimension(const hr_shape *shape, uint32_t from_end)
{
    const uint32_t gone = shape->rank - from_end;
    hr_shape less = {.rank = shape->rank - 1};
    for (uint32_t k = 0; k < less.rank; k++) {
        less.dim[k] = shape->dim[k < gone ? k : k + 1];
    }
    return less;
}

static hr_shape two_for_each_block(const hr_shape *shape)
{
    uint64_t elements = 0;
    (void)shape_elements(shape, &elements);
    const uint64_t blocks = elements / CODE8_BLOCK + (elements % CODE8_BLOCK != 0);
    return shape_of(2, (const int64_t[]){2, (int64_t)blocks});
}

op_operand optimizer_slot_operand(const optimizer_slot *slot, const op_operand *variable)
{
    op_operand o = *variable;
    switch (slot->form) {
    case SLOT_LIKE:
        break;
    case SLOT_ROWS:
        o.shape = without_dimension(&variable->shape, 1);
        break;
    case SLOT_COLUMNS:
        o.shape = without_dimension(&variable->shape, 2);
        break;
    case SLOT_CODES:
        o.dtype = HR_U8;
        break;
    case SLOT_SCALES:
        o.shape = two_for_each_block(&variable->shape);
        o.dtype = HR_F32;
        break;
    }
    return o;
}

static double knob_or(const hr_knobs *knobs, hr_knob_id id, bool applies, double otherwise)
{
    return applies && hr_knob_is_set(knobs, id) ? hr_knob_real(knobs, id) : otherwise;
}

op_attr optimizer_attr(const optimizer_rule *rule, const hr_knobs *knobs)
{
    const bool torch = hr_knob_is(knobs, HR_KNOB_OPTIMIZER_FORM, "torch") && rule->torch_epsilon > 0;
    const double decay = torch ? rule->torch_weight_decay : rule->weight_decay,
                 epsilon = torch ? rule->torch_epsilon : rule->epsilon;
    return (op_attr){.momentum = rule->takes_momentum ? hr_knob_real(knobs, HR_KNOB_OPTIMIZER_MOMENTUM) : 0,
                     .flags = torch ? OP_FLAG_TORCH : 0,
                     .beta1 = knob_or(knobs, HR_KNOB_OPTIMIZER_BETA1, rule->takes_constants, rule->beta1),
                     .beta2 = knob_or(knobs, HR_KNOB_OPTIMIZER_BETA2,
                                      rule->takes_constants && rule->beta2 > 0, rule->beta2),
                     .epsilon = knob_or(knobs, HR_KNOB_OPTIMIZER_EPSILON,
                                        rule->takes_constants && rule->epsilon > 0, epsilon),
                     .rate = knob_or(knobs, HR_KNOB_OPTIMIZER_WEIGHT_DECAY, true, decay)};
}

bool optimizer_averages(const hr_knobs *knobs)
{
    return hr_knob_is_set(knobs, HR_KNOB_OPTIMIZER_EMA);
}
