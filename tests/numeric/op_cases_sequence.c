// SPDX-License-Identifier: Apache-2.0
// Cases of operations over sequences: normalisation of rows, smooth activations, tables, repetition, dropout.
#include <math.h>

#include "numeric/op_draw.h"

// At least four features a row: with fewer the normalised values hardly depend on x.
op_trial op_case_norm_of_rows(hr_op op, op_draw *d)
{
    int64_t dims[OP_MAX_RANK];
    const int64_t features = op_draw_int(d, 4, 4 + 16 * d->size);
    op_trial t = op_trial_make(op, (op_attr){.epsilon = 1e-5});
    op_draw_in(d, &t, op_draw_rows(d, (uint32_t)op_draw_int(d, 2, 4), features, dims), -1.0, 3.0);
    op_draw_in(d, &t, DIMS(features), 0.5, 1.5);
    if (op == HR_OP_LAYER_NORM) {
        op_draw_in(d, &t, DIMS(features), -1.0, 1.0);
    }
    op_trial_infer_out(&t, op == HR_OP_LAYER_NORM ? 3 : 2);
    return t;
}

// Both forms of GELU, over the whole range that a float resolves.
static bool has_kinks(hr_op op)
{
    return op == HR_OP_LEAKY_RELU || op == HR_OP_HARD_SIGMOID || op == HR_OP_HARD_SWISH;
}

op_trial op_case_activation(hr_op op, op_draw *d)
{
    int64_t dims[OP_MAX_RANK];
    const bool by_tanh = op == HR_OP_GELU && op_draw_int(d, 0, 1) == 1;
    const double range = op_draw_int(d, 0, 1) == 1 ? 0.5 : 6.0;
    op_trial t = op_trial_make(op, (op_attr){.flags = by_tanh ? OP_FLAG_TANH : 0});
    t.query.attr.rate = op == HR_OP_LEAKY_RELU ? op_random(&d->state, 0.0, 0.3) : 0.0;
    op_draw_in(d, &t, op_draw_image(d, dims), -range, range);
    for (uint64_t i = 0; has_kinks(op) && i < op_trial_in_count(&t, 0); i++) {
        const double kink = op == HR_OP_LEAKY_RELU ? 0.0 : 3.0;
        t.in[0][i] += fabs(fabs(t.in[0][i]) - kink) < 0.05 ? 0.11 : 0.0;
    }
    op_trial_infer_out(&t, 1);
    return t;
}

// Entries that are looked up never, once and often, and numbers outside the table.
op_trial op_case_embedding(hr_op op, op_draw *d)
{
    int64_t dims[OP_MAX_RANK];
    const int64_t entries = op_draw_int(d, 1, 3 * d->size), outside = op_draw_int(d, 0, 1);
    op_trial t = op_trial_make(op, (op_attr){0});
    (void)op_draw_rows(d, (uint32_t)op_draw_int(d, 1, 3), op_draw_int(d, 1, 2 * d->size), dims);
    op_draw_numbers(d, &t, dims, -outside, entries - 1 + outside);
    op_draw_in(d, &t, DIMS(entries, op_draw_int(d, 1, 5 * d->size)), -1.0, 1.0);
    op_trial_infer_out(&t, 1);
    return t;
}

op_trial op_case_repetition(hr_op op, op_draw *d)
{
    int64_t dims[OP_MAX_RANK], shared[OP_MAX_RANK] = {0};
    const uint32_t rank = (uint32_t)op_draw_int(d, 2, 4), leading = (uint32_t)op_draw_int(d, 1, rank - 1);
    const uint32_t skipped = op == HR_OP_BROADCAST ? 1 : leading;
    (void)op_draw_rows(d, rank, op_draw_int(d, 1, 8 * d->size), dims);
    for (uint32_t k = 0; k < rank - skipped; k++) {
        shared[k] = dims[skipped + k];
    }
    op_trial t = op_trial_make(op, (op_attr){0});
    if (op == HR_OP_ADD_BROADCAST) {
        op_draw_in(d, &t, dims, -1.0, 1.0);
    }
    op_draw_in(d, &t, shared, -1.0, 1.0);
    op_trial_add_out(&t, HR_F64, dims);
    return t;
}

// Samples of less than a block of the mask's, of whole ones and of more.
op_trial op_case_dropout(hr_op op, op_draw *d)
{
    int64_t dims[OP_MAX_RANK];
    op_trial t = op_trial_make(op, (op_attr){.rate = (double)op_draw_int(d, 0, 9) / 10.0,
                                             .salt = (uint64_t)op_draw_int(d, 0, INT64_MAX - 1)});
    const int64_t features = op_draw_int(d, 0, 1) == 1 ? 64 : op_draw_int(d, 1, 20 * d->size);
    op_draw_in(d, &t, op_draw_rows(d, (uint32_t)op_draw_int(d, 2, 4), features, dims), -1.0, 1.0);
    op_trial_infer_out(&t, (uint32_t)op_draw_int(d, 1, 2));
    return t;
}

op_trial op_case_drop_path(hr_op op, op_draw *d)
{
    int64_t dims[OP_MAX_RANK];
    op_trial t = op_trial_make(op, (op_attr){.rate = (double)op_draw_int(d, 0, 9) / 10.0,
                                             .salt = (uint64_t)op_draw_int(d, 0, INT64_MAX - 1)});
    const int64_t features = op_draw_int(d, 0, 1) == 1 ? 64 : op_draw_int(d, 1, 20 * d->size);
    (void)op_draw_rows(d, (uint32_t)op_draw_int(d, 1, 4), features, dims);
    dims[0] = op_draw_int(d, 1, 9);
    op_draw_in(d, &t, dims, -1.0, 1.0);
    op_trial_infer_out(&t, 2);
    return t;
}
