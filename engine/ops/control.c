// SPDX-License-Identifier: Apache-2.0
// What the executor does itself: memory, loops, and bytes that are kept on purpose.
#include "ops/rows.h"

static uint64_t no_flops(const op_query *q)
{
    (void)q;
    return 0;
}

const op_row op_row_ALLOC = {
    .name = "alloc", .min_out = 1, .max_out = 1, .flops = no_flops, .in_place = -1, .control = true};
const op_row op_row_FREE = {
    .name = "free", .min_in = 1, .max_in = 1, .flops = no_flops, .in_place = -1, .control = true};
const op_row op_row_REPEAT = {.name = "repeat", .flops = no_flops, .in_place = -1, .control = true};
const op_row op_row_END = {.name = "end", .flops = no_flops, .in_place = -1, .control = true};
const op_row op_row_RETAIN = {
    .name = "retain", .min_in = 1, .max_in = 1, .flops = no_flops, .in_place = -1, .control = true};
const op_row op_row_HOLD = {
    .name = "hold", .min_out = 1, .max_out = 1, .flops = no_flops, .in_place = -1, .control = true};
