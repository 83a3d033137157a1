// SPDX-License-Identifier: Apache-2.0
// Updates: the variable and its slots are outputs and inputs at once (the same tensors).
#include "ops/rows.h"

static uint64_t sgd_flops(const op_query *q)
{
    return 2 * op_in_elements(q, 0);
}

static uint64_t momentum_flops(const op_query *q)
{
    return 4 * op_in_elements(q, 0);
}

static uint64_t adam_flops(const op_query *q)
{
    return 12 * op_in_elements(q, 0);
}

const op_row op_row_SGD = {
    .name = "sgd", .min_in = 2, .max_in = 2, .min_out = 1, .max_out = 1, .flops = sgd_flops, .in_place = 0};
const op_row op_row_MOMENTUM = {.name = "momentum",
                                .min_in = 3,
                                .max_in = 3,
                                .min_out = 2,
                                .max_out = 2,
                                .flops = momentum_flops,
                                .in_place = 0};
const op_row op_row_ADAM = {
    .name = "adam", .min_in = 4, .max_in = 4, .min_out = 3, .max_out = 3, .flops = adam_flops, .in_place = 0};
