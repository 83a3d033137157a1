// SPDX-License-Identifier: Apache-2.0
// What every sample shares (a table of positions, a class token), repeated over leading dimensions. Its gradient is
// the sum over them.
#include "ops/rows.h"

static hr_status add_broadcast_shape(const op_attr *attr, const op_operand *in, size_t in_count,
                                     op_operand *out, size_t out_count, hr_err *err)
{
    (void)attr, (void)in_count, (void)out_count;
    const hr_shape *a = &in[0].shape;
    const hr_shape *b = &in[1].shape;
    bool fits = b->rank >= 1 && b->rank < a->rank;
    for (uint32_t k = 0; fits && k < b->rank; k++) {
        fits = a->dim[a->rank - b->rank + k] == b->dim[k];
    }
    if (!fits) {
        char whole[64];
        char part[64];
        return HR_FAIL(err, MODEL, "what is added to every sample needs the last dimensions of %s, had %s",
                       shape_text(a, whole, sizeof whole), shape_text(b, part, sizeof part));
    }
    out[0] = in[0];
    return HR_OK;
}

static void over_leading_axes(const op_query *forward, op_attr *attr)
{
    *attr = (op_attr){.axis = 0, .count = (int32_t)(forward->out[0].shape.rank - forward->in[1].shape.rank)};
}

const op_row op_row_ADD_BROADCAST = {
    .name = "add_broadcast",
    .traits = {COST_ELEMENTWISE, OP_COSTLY, OP_NO_ACT, OP_BY_PERIOD, .repeated = 0x2},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .shape = add_broadcast_shape,
    .in_place = 0,
    .passes_gradient = 0x1,
    .keep_in = 0x3,
    .grad_count = 1,
    .grad = {{.op = HR_OP_REDUCE,
              .operand_count = 1,
              .operand = {{OP_SRC_GRAD, 0}},
              .result_count = 1,
              .result = {1},
              .attr = over_leading_axes}},
};

// Every channel has its factor: b[C] for all places, b[N,C] or b[N,1,..,C] for those of a sample.
static bool is_factor_of(const hr_shape *b, const hr_shape *a)
{
    bool fits = b->rank >= 1 && a->rank >= 2 && b->dim[b->rank - 1] == a->dim[a->rank - 1];
    if (b->rank > 1) {
        fits = fits && a->rank > 2 && b->rank <= a->rank && b->dim[0] == a->dim[0];
        for (uint32_t k = 1; fits && k + 1 < b->rank; k++) {
            fits = b->dim[k] == 1;
        }
    }
    return fits;
}

static hr_status multiply_broadcast_shape(const op_attr *attr, const op_operand *in, size_t in_count,
                                          op_operand *out, size_t out_count, hr_err *err)
{
    (void)attr, (void)in_count, (void)out_count;
    if (!is_factor_of(&in[1].shape, &in[0].shape)) {
        char whole[64];
        char part[64];
        return HR_FAIL(
            err, MODEL, "the channels of %s need one factor each, for all or for each sample, had %s",
            shape_text(&in[0].shape, whole, sizeof whole), shape_text(&in[1].shape, part, sizeof part));
    }
    out[0] = in[0];
    return HR_OK;
}

// The places that have one factor in common.
static void over_places(const op_query *forward, op_attr *attr)
{
    const bool by_sample = forward->in[1].shape.rank > 1;
    const int32_t rank = (int32_t)forward->in[0].shape.rank;
    *attr = (op_attr){.axis = by_sample, .count = rank - 1 - by_sample};
}

// b's gradient first: a's then takes the place of y's.
const op_row op_row_MULTIPLY_BROADCAST = {
    .name = "multiply_broadcast",
    .traits = {COST_ELEMENTWISE, OP_CHEAP, OP_NO_ACT, OP_WHOLE},
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .shape = multiply_broadcast_shape,
    .in_place = 0,
    .keep_in = 0x3,
    .grad_count = 2,
    .grad = {{.op = HR_OP_REDUCE,
              .operand_count = 2,
              .operand = {{OP_SRC_GRAD, 0}, {OP_SRC_IN, 0}},
              .result_count = 1,
              .result = {1},
              .attr = over_places},
             {.op = HR_OP_MULTIPLY_BROADCAST,
              .operand_count = 2,
              .operand = {{OP_SRC_GRAD, 0}, {OP_SRC_IN, 1}},
              .result_count = 1,
              .result = {0}}},
};

static uint64_t no_flops(const op_query *q)
{
    (void)q;
    return 0;
}

// One sample here; a build for a batch makes the first dimension as long as that.
static hr_status broadcast_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                                 size_t out_count, hr_err *err)
{
    (void)a, (void)in_count, (void)out_count;
    const hr_shape *b = &in[0].shape;
    if (b->rank < 1 || b->rank > 3) {
        return HR_FAIL(err, MODEL, "what is repeated for every sample needs one to three dimensions, had %u",
                       b->rank);
    }
    out[0] = in[0];
    out[0].shape = (hr_shape){.rank = b->rank + 1, .dim = {1}};
    for (uint32_t k = 0; k < b->rank; k++) {
        out[0].shape.dim[k + 1] = b->dim[k];
    }
    return HR_OK;
}

static void over_first_axis(const op_query *forward, op_attr *attr)
{
    (void)forward;
    *attr = (op_attr){.axis = 0, .count = 1};
}

const op_row op_row_BROADCAST = {
    .name = "broadcast",
    .traits = {COST_COPY, OP_COSTLY, OP_NO_ACT, OP_BY_PERIOD, .repeated = 0x1},
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .shape = broadcast_shape,
    .flops = no_flops,
    .in_place = -1,
    .grad_count = 1,
    .grad = {{.op = HR_OP_REDUCE,
              .operand_count = 1,
              .operand = {{OP_SRC_GRAD, 0}},
              .result_count = 1,
              .result = {0},
              .attr = over_first_axis}},
};
