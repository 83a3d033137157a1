// SPDX-License-Identifier: Apache-2.0
// Operations that move or reinterpret bytes and compute nothing.
#include "ops/rows.h"

const op_row op_row_INPUT = {.name = "input",
                             .traits = {COST_COPY, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                             .min_out = 1,
                             .max_out = 1,
                             .flops = op_no_flops,
                             .in_place = -1};
const op_row op_row_PREFETCH = {.name = "prefetch",
                                .traits = {COST_COPY, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                                .min_out = 1,
                                .max_out = 1,
                                .flops = op_no_flops,
                                .in_place = -1};

// Read and written; of the first operand no more than the second takes.
static uint64_t advance_bytes(const op_query *q)
{
    uint64_t bytes = 0, padding = 0;
    (void)operand_bytes(&q->out[0], &bytes, &padding);
    return 2 * bytes;
}

const op_row op_row_ADVANCE = {.name = "advance",
                               .traits = {COST_COPY, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                               .min_in = 1,
                               .max_in = 1,
                               .min_out = 1,
                               .max_out = 1,
                               .flops = op_no_flops,
                               .bytes = advance_bytes,
                               .in_place = -1};
const op_row op_row_READ = {.name = "read",
                            .traits = {COST_COPY, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                            .min_in = 1,
                            .max_in = 2,
                            .flops = op_no_flops,
                            .in_place = -1};
const op_row op_row_REORDER = {.name = "reorder",
                               .traits = {COST_COPY, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                               .min_in = 1,
                               .max_in = 1,
                               .min_out = 1,
                               .max_out = 1,
                               .flops = op_no_flops,
                               .in_place = -1};

const op_row op_row_OFFLOAD = {.name = "offload",
                               .traits = {COST_COPY, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                               .min_in = 1,
                               .max_in = 1,
                               .min_out = 1,
                               .max_out = 1,
                               .flops = op_no_flops,
                               .in_place = -1,
                               .crosses_link = true};
const op_row op_row_FETCH = {.name = "fetch",
                             .traits = {COST_COPY, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                             .min_in = 1,
                             .max_in = 1,
                             .min_out = 1,
                             .max_out = 1,
                             .flops = op_no_flops,
                             .in_place = -1,
                             .crosses_link = true};
const op_row op_row_RECORD = {.name = "record", .flops = op_no_flops, .in_place = -1, .orders = true};
const op_row op_row_WAIT = {
    .name = "wait", .max_in = 1, .flops = op_no_flops, .in_place = -1, .orders = true};

// The target shape is an attribute of the layer, so the model fills it in; the gradient is a reshape back.
const op_row op_row_RESHAPE = {
    .name = "reshape",
    .traits = {COST_NOTHING, OP_CHEAP, OP_NO_ACT, OP_WHOLE},
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .flops = op_no_flops,
    .in_place = -1,
    .view = true,
    .grad_count = 1,
    .grad = {{.op = HR_OP_RESHAPE,
              .operand_count = 1,
              .operand = {{OP_SRC_GRAD, 0}},
              .result_count = 1,
              .result = {0}}},
};
