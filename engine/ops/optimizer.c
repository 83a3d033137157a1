// SPDX-License-Identifier: Apache-2.0
// Updates: variables, slots and sums are outputs and inputs at once (the same tensors, named in `updates`). What an
// update costs is counted per element of its first operand.
#include "ops/rows.h"

#define PER_ELEMENT(name, count)                                                                             \
    static uint64_t name(const op_query *q)                                                                  \
    {                                                                                                        \
        return (count)*op_in_elements(q, 0);                                                                 \
    }

PER_ELEMENT(sgd_flops, 4)
PER_ELEMENT(momentum_flops, 6)
PER_ELEMENT(rmsprop_flops, 10)
PER_ELEMENT(adam_flops, 14)
PER_ELEMENT(lion_flops, 9)
PER_ELEMENT(adafactor_flops, 16)
PER_ELEMENT(adam8bit_flops, 24)
PER_ELEMENT(one_flop, 1)
PER_ELEMENT(two_flops, 2)
PER_ELEMENT(three_flops, 3)

// `slots` tensors behind variable and gradient are updated with the variable; a mask (OP_FLAG_MASKED) and `finite` may stand
// behind them.
#define UPDATE(text, slots, mask, cost, tiling)                                                              \
    {                                                                                                        \
        .name = (text), .traits = {COST_UPDATE, OP_COSTLY, OP_NO_ACT, (tiling)}, .min_in = 2 + (slots),      \
        .max_in = 4 + (slots), .min_out = 1 + (slots), .max_out = 1 + (slots), .flops = (cost),              \
        .in_place = -1, .updates = (mask),                                                                   \
    }

const op_row op_row_SGD = UPDATE("sgd", 0, 0x1, sgd_flops, OP_BY_ELEMENT);
const op_row op_row_MOMENTUM = UPDATE("momentum", 1, 0x5, momentum_flops, OP_BY_ELEMENT);
const op_row op_row_RMSPROP = UPDATE("rmsprop", 1, 0x5, rmsprop_flops, OP_BY_ELEMENT);
const op_row op_row_ADAM = UPDATE("adam", 2, 0xd, adam_flops, OP_BY_ELEMENT);
const op_row op_row_LION = UPDATE("lion", 1, 0x5, lion_flops, OP_BY_ELEMENT);
const op_row op_row_ADAM8BIT = UPDATE("adam8bit", 3, 0x1d, adam8bit_flops, OP_WHOLE);

// Three results are the variable and its two factors; two are the variable and its v.
const op_row op_row_ADAFACTOR = {.name = "adafactor",
                                 .traits = {COST_UPDATE, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                                 .min_in = 3,
                                 .max_in = 5,
                                 .min_out = 2,
                                 .max_out = 3,
                                 .flops = adafactor_flops,
                                 .in_place = -1,
                                 .updates = 0xd};
const op_row op_row_ADAFACTOR_KERAS = UPDATE("adafactor_keras", 3, 0x1d, adafactor_flops, OP_WHOLE);

const op_row op_row_SQUARE_SUM = {.name = "square_sum",
                                  .traits = {COST_REDUCTION, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                                  .min_in = 1,
                                  .max_in = 2,
                                  .min_out = 1,
                                  .max_out = 1,
                                  .flops = two_flops,
                                  .in_place = -1,
                                  .updates = 0x2};
const op_row op_row_CLIP = {.name = "clip",
                            .traits = {COST_ELEMENTWISE, OP_COSTLY, OP_NO_ACT, OP_BY_ELEMENT, .whole = 0x2},
                            .min_in = 2,
                            .max_in = 2,
                            .min_out = 1,
                            .max_out = 1,
                            .shape = op_shape_like_first,
                            .in_place = 0};
const op_row op_row_EMA = {.name = "ema",
                           .traits = {COST_UPDATE, OP_COSTLY, OP_NO_ACT, OP_BY_ELEMENT},
                           .min_in = 2,
                           .max_in = 3,
                           .min_out = 1,
                           .max_out = 1,
                           .flops = three_flops,
                           .in_place = -1,
                           .updates = 0x1};
const op_row op_row_ACCUMULATE = {.name = "accumulate",
                                  .traits = {COST_ELEMENTWISE, OP_COSTLY, OP_NO_ACT, OP_BY_ELEMENT},
                                  .min_in = 2,
                                  .max_in = 2,
                                  .min_out = 1,
                                  .max_out = 1,
                                  .in_place = -1,
                                  .updates = 0x1};
// Of most updates: the mask is read, what it covers read and written. Behind an update that masks there is nothing to
// do but on the turns that make a mask, one update in `frequency`: that is not counted.
static uint64_t prune_bytes(const op_query *q)
{
    uint64_t bytes = 0, padding = 0;
    (void)operand_bytes(&q->in[0], &bytes, &padding);
    return q->attr.flags & OP_FLAG_MASKED ? 0 : 3 * bytes;
}

static uint64_t prune_flops(const op_query *q)
{
    return q->attr.flags & OP_FLAG_MASKED ? 0 : op_in_elements(q, 0);
}

// Of the mask one value a filter is read.
static uint64_t channels_bytes(const op_query *q)
{
    uint64_t bytes = 0, padding = 0;
    (void)operand_bytes(&q->in[0], &bytes, &padding);
    return 2 * bytes + (uint64_t)q->in[1].shape.dim[q->attr.axis] * dtype_bytes((hr_dtype)q->in[1].dtype);
}

const op_row op_row_PRUNE = {.name = "prune",
                             .traits = {COST_UPDATE, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                             .min_in = 2,
                             .max_in = 3,
                             .min_out = 2,
                             .max_out = 2,
                             .flops = prune_flops,
                             .bytes = prune_bytes,
                             .in_place = -1,
                             .updates = 0x3};

const op_row op_row_PRUNE_CHANNELS = {.name = "prune_channels",
                                      .traits = {COST_UPDATE, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                                      .min_in = 2,
                                      .max_in = 2,
                                      .min_out = 1,
                                      .max_out = 1,
                                      .flops = one_flop,
                                      .bytes = channels_bytes,
                                      .in_place = -1,
                                      .updates = 0x1};
