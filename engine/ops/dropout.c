// SPDX-License-Identifier: Apache-2.0
// Dropout (Srivastava et al. 2014), inverted: what is kept is scaled by 1 / (1 - rate), so that evaluation leaves
// the layer out. The eager tape keeps one byte per element; a graph draws the mask again in backward.
#include "ops/dropout.h"

#include "base/hash.h"
#include "ops/rows.h"

dropout_draw dropout_begin(const op_attr *attr, uint64_t seed, uint64_t update)
{
    const philox_key purpose = philox_key_of(seed, "dropout");
    uint64_t key = (uint64_t)purpose.word[1] << 32 | purpose.word[0];
    key = hash64_mix(hash64_mix(key, attr->salt), update);
    const double words = attr->rate * 0x1p32;
    return (dropout_draw){.key = {{(uint32_t)key, (uint32_t)(key >> 32)}},
                          .threshold = words < 0x1p32 - 1.0 ? (uint32_t)words : UINT32_MAX,
                          .scale = 1.0 / (1.0 - attr->rate)};
}

bool dropout_keeps(const dropout_draw *d, uint64_t sample, uint64_t element)
{
    uint32_t word[4];
    philox(d->key, element / DROPOUT_BLOCK * DROPOUT_LANES + element % DROPOUT_LANES, sample, word);
    return word[element / DROPOUT_LANES % 4] >= d->threshold;
}

hr_status dropout_check_rate(const op_attr *attr, hr_err *err)
{
    return attr->rate >= 0.0 && attr->rate < 1.0
               ? HR_OK
               : HR_FAIL(err, MODEL, "dropout needs a rate from 0 to below 1, had %g", attr->rate);
}

double dropout_factor(const dropout_draw *d, uint64_t sample)
{
    return dropout_keeps(d, sample, 0) ? d->scale : 0.0;
}

static hr_status dropout_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                               size_t out_count, hr_err *err)
{
    (void)in_count;
    HR_TRY(dropout_check_rate(a, err));
    out[0] = in[0];
    if (out_count > 1) {
        out[1] = in[0];
        out[1].dtype = HR_U8;
    }
    return HR_OK;
}

static uint64_t two(const op_query *q)
{
    return 2 * op_out_elements(q, 0);
}

const op_row op_row_DROPOUT = {
    .name = "dropout",
    .keeps_channels = true,
    .traits = {COST_ELEMENTWISE, OP_CHEAP, OP_NO_ACT, OP_WHOLE},
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 2,
    .shape = dropout_shape,
    .flops = two,
    .in_place = 0,
    .keep_out = 0x2,
    .state_out = 0x2,
    .grad_count = 2,
    .grad =
        {
            {.op = HR_OP_DROPOUT_BWD,
             .when_outputs = 1,
             .operand_count = 1,
             .operand = {{OP_SRC_GRAD, 0}},
             .result_count = 1,
             .result = {0}},
            {.op = HR_OP_DROPOUT_BWD_MASK,
             .when_outputs = 2,
             .operand_count = 2,
             .operand = {{OP_SRC_OUT, 1}, {OP_SRC_GRAD, 0}},
             .result_count = 1,
             .result = {0}},
        },
};

const op_row op_row_DROPOUT_BWD = {.name = "dropout_bwd",
                                   .traits = {COST_ELEMENTWISE, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                                   .min_in = 1,
                                   .max_in = 1,
                                   .min_out = 1,
                                   .max_out = 1,
                                   .flops = two,
                                   .in_place = 0};

const op_row op_row_DROPOUT_BWD_MASK = {.name = "dropout_bwd_mask",
                                        .traits = {COST_ELEMENTWISE, OP_COSTLY, OP_NO_ACT, OP_BY_ELEMENT},
                                        .min_in = 2,
                                        .max_in = 2,
                                        .min_out = 1,
                                        .max_out = 1,
                                        .flops = two,
                                        .in_place = 1};

// ---- of whole samples -------------------------------------------------------------------------------------------

static hr_status drop_path_shape(const op_attr *a, const op_operand *in, size_t in_count, op_operand *out,
                                 size_t out_count, hr_err *err)
{
    (void)in_count, (void)out_count;
    HR_TRY(dropout_check_rate(a, err));
    out[0] = in[0];
    out[1] = (op_operand){.shape = shape_of(1, in[0].shape.dim),
                          .dtype = op_wide_dtype(in[0].dtype),
                          .layout = HR_LAYOUT_PLAIN};
    return HR_OK;
}

// Stochastic depth (Huang et al. 2016), inverted.
const op_row op_row_DROP_PATH = {
    .name = "drop_path",
    .keeps_channels = true,
    .traits = {COST_ELEMENTWISE, OP_CHEAP, OP_NO_ACT, OP_WHOLE},
    .min_in = 1,
    .max_in = 1,
    .min_out = 2,
    .max_out = 2,
    .shape = drop_path_shape,
    .in_place = 0,
    .wide_out = 0x2,
    .keep_out = 0x2,
    .state_out = 0x2,
    .grad_count = 1,
    .grad = {{.op = HR_OP_DROP_PATH_BWD,
              .operand_count = 2,
              .operand = {{OP_SRC_OUT, 1}, {OP_SRC_GRAD, 0}},
              .result_count = 1,
              .result = {0}}},
};

const op_row op_row_DROP_PATH_BWD = {.name = "drop_path_bwd",
                                     .traits = {COST_ELEMENTWISE, OP_COSTLY, OP_NO_ACT, OP_WHOLE},
                                     .min_in = 2,
                                     .max_in = 2,
                                     .min_out = 1,
                                     .max_out = 1,
                                     .in_place = 1};
