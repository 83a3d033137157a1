// SPDX-License-Identifier: Apache-2.0
// Cases of updates: with and without weight decay, with and without the operand that may forbid the update.
#include <math.h>

#include "numeric/op_draw.h"
#include "ops/prune.h"

static void add_updated(op_draw *d, op_trial *t, const int64_t dims[OP_MAX_RANK], double low, double high)
{
    op_draw_in(d, t, dims, low, high);
    op_trial_add_out(t, HR_F64, dims);
}

// One in four updates is forbidden, one in four is allowed by name.
static void add_finite(op_draw *d, op_trial *t)
{
    const int64_t what = op_draw_int(d, 0, 3);
    if (what < 2) {
        op_draw_numbers(d, t, DIMS(1), what, what);
    }
}

// PyTorch's form with an epsilon that weighs, or Keras'.
static void draw_form(op_draw *d, op_trial *t)
{
    if (op_draw_int(d, 0, 1) == 1) {
        t->query.attr.flags |= OP_FLAG_TORCH;
        t->query.attr.epsilon = 1e-2;
    }
}

// Half of the updates have a mask, which is applied but where it is to be made anew.
static void add_mask(op_draw *d, op_trial *t, const int64_t dims[OP_MAX_RANK])
{
    const uint32_t k = t->query.in_count;
    if (op_draw_int(d, 0, 1) == 0) {
        return;
    }
    op_draw_in(d, t, dims, 0.0, 1.0);
    for (uint64_t i = 0; i < op_trial_in_count(t, k); i++) {
        t->in[k][i] = (double)op_draw_int(d, 0, 1);
    }
    t->query.attr.flags |= OP_FLAG_MASKED;
    t->query.attr.count = -1;
    t->query.attr.offset = (int32_t)op_draw_int(d, 0, 5);
    t->query.attr.stride_h = (int32_t)op_draw_int(d, 1, 3);
    t->query.attr.slot = 1;
}

op_trial op_case_update(hr_op op, op_draw *d)
{
    const uint32_t slots = op_row_of(op)->min_in - 2u;
    const bool rms = op == HR_OP_RMSPROP, lion = op == HR_OP_LION;
    int64_t dims[OP_MAX_RANK];
    op_trial t = op_trial_make(op, (op_attr){.momentum = 0.9,
                                             .beta1 = 0.9,
                                             .beta2 = lion ? 0.99 : 0.999,
                                             .epsilon = 1e-7,
                                             .rate = op_draw_int(d, 0, 1) == 1 ? 0.04 : 0.0});
    if (op == HR_OP_ADAM) {
        draw_form(d, &t);
    }
    op_draw_image(d, dims);
    add_updated(d, &t, dims, -1.0, 1.0);
    op_draw_in(d, &t, dims, -1.0, 1.0);
    for (uint32_t k = 0; k < slots; k++) {
        add_updated(d, &t, dims, k == 1 || rms ? 0.0 : -1.0, 1.0); // a second moment is not negative
    }
    add_mask(d, &t, dims);
    add_finite(d, &t);
    return t;
}

// Vectors, matrices and filters, which are many matrices; some of many columns, some of many rows.
op_trial op_case_adafactor(hr_op op, op_draw *d)
{
    const bool keras = op == HR_OP_ADAFACTOR_KERAS;
    const uint32_t rank = (uint32_t)op_draw_int(d, keras ? 2 : 1, 4);
    int64_t dims[OP_MAX_RANK] = {0}, rows[OP_MAX_RANK] = {0}, columns[OP_MAX_RANK] = {0};
    op_trial t = op_trial_make(op, (op_attr){.beta1 = 1e-3,
                                             .beta2 = -0.8,
                                             .epsilon = 1e-30,
                                             .rate = op_draw_int(d, 0, 1) == 1 ? 0.04 : 0.0});
    for (uint32_t k = 0; k < rank; k++) {
        dims[k] = op_draw_int(d, 1, k + 2 < rank ? 3 : 8 * d->size);
        rows[k] = k + 1 < rank ? dims[k] : 0;
        columns[k] = k + 2 < rank ? dims[k] : 0;
    }
    columns[rank < 2 ? 0 : rank - 2] = dims[rank - 1];
    add_updated(d, &t, dims, -1.0, 1.0);
    op_draw_in(d, &t, dims, -1.0, 1.0);
    if (rank > 1) {
        add_updated(d, &t, rows, 0.01, 1.0);
        add_updated(d, &t, columns, 0.01, 1.0);
    }
    if (rank < 2 || keras) {
        add_updated(d, &t, dims, 0.01, 1.0);
    }
    add_finite(d, &t);
    return t;
}

static void add_codes(op_draw *d, op_trial *t, const int64_t dims[OP_MAX_RANK])
{
    const uint32_t k = t->query.in_count;
    op_trial_add_in(t, HR_U8, dims);
    op_trial_add_out(t, HR_U8, dims);
    for (uint64_t i = 0; i < op_trial_in_count(t, k); i++) {
        t->in[k][i] = (double)op_draw_int(d, 0, 255);
    }
}

op_trial op_case_adam8bit(hr_op op, op_draw *d)
{
    enum { BLOCK = 256 };
    const int64_t rows = op_draw_int(d, 1, 4 * d->size), columns = op_draw_int(d, 1, 16 * d->size);
    const int64_t *scales = DIMS(2, (rows * columns + BLOCK - 1) / BLOCK);
    op_trial t = op_trial_make(op, (op_attr){.beta1 = 0.9,
                                             .beta2 = 0.999,
                                             .epsilon = 1e-7,
                                             .rate = op_draw_int(d, 0, 1) == 1 ? 0.04 : 0.0});
    draw_form(d, &t);
    add_updated(d, &t, DIMS(rows, columns), -1.0, 1.0);
    op_draw_in(d, &t, DIMS(rows, columns), -1.0, 1.0);
    add_codes(d, &t, DIMS(rows, columns));
    add_codes(d, &t, DIMS(rows, columns));
    op_trial_add_in(&t, HR_F32, scales);
    op_trial_add_out(&t, HR_F32, scales);
    for (uint64_t i = 0; i < op_trial_in_count(&t, 4); i++) {
        t.in[4][i] = (double)(float)op_random(&d->state, 0.5, 1.0);
    }
    add_finite(d, &t);
    return t;
}

// Of a few sizes, so that many are equal.
static void draw_sizes(op_draw *d, op_trial *t)
{
    const double sizes = (double)op_draw_int(d, 3, 40);
    for (uint64_t i = 0; i < op_trial_in_count(t, 0); i++) {
        t->in[0][i] = floor(t->in[0][i] * sizes) / sizes;
    }
}

// Every structure, where a mask is made and where it is applied alone. Means of blocks whose sizes are powers of two are exact.
op_trial op_case_prune(hr_op op, op_draw *d)
{
    const op_prune_rule rule = (op_prune_rule)op_draw_int(d, 0, PRUNE_RULES - 1);
    const bool blocks = rule == PRUNE_BLOCKS;
    const int64_t width = blocks ? INT64_C(1) << op_draw_int(d, 0, 3) : op_draw_int(d, 2, 5);
    int64_t dims[OP_MAX_RANK] = {0};
    op_trial t = op_trial_make(
        op, (op_attr){.count = -1,
                      .offset = rule == PRUNE_GROUPS ? 4 : 0,
                      .stride_h = (int32_t)op_draw_int(d, 1, 3),
                      .epsilon = 0.25,
                      .momentum = (double)op_draw_int(d, 0, 9) / 10.0,
                      .base = 1.0,
                      .slot = 1,
                      .rule = (int32_t)rule,
                      .kernel_h = blocks ? 1 << op_draw_int(d, 0, 3) : (int32_t)op_draw_int(d, 1, width - 1),
                      .kernel_w = (int32_t)width});
    op_draw_image(d, dims);
    dims[blocks ? 2 : 4] = 0;
    t.query.attr.axis = dims[2] == 0 ? (int32_t)op_draw_int(d, 0, 1) : 2;
    add_updated(d, &t, dims, -1.0, 1.0);
    draw_sizes(d, &t);
    add_updated(d, &t, dims, -1.0, 1.0);
    for (uint64_t i = 0; i < op_trial_in_count(&t, 1); i++) {
        t.in[1][i] = t.in[1][i] < 0.0 ? 0.0 : 1.0;
    }
    add_finite(d, &t);
    return t;
}

op_trial op_case_prune_channels(hr_op op, op_draw *d)
{
    const int64_t filters = op_draw_int(d, 1, 9), each = op_draw_int(d, 1, 3), before = op_draw_int(d, 0, 4);
    const int64_t pitch = before + filters * each + op_draw_int(d, 0, 4);
    op_trial t = op_trial_make(op, (op_attr){.axis = (int32_t)op_draw_int(d, 0, 3),
                                             .offset = (int32_t)before,
                                             .count = (int32_t)each,
                                             .stride_w = (int32_t)pitch});
    int64_t mask[OP_MAX_RANK] = {3, 2, 3, 2};
    mask[t.query.attr.axis] = filters;
    const bool depthwise = op_draw_int(d, 0, 1) == 1;
    if (depthwise) {
        add_updated(d, &t, DIMS(3, 2, 1, pitch), -1.0, 1.0);
    } else {
        add_updated(d, &t, DIMS(pitch * op_draw_int(d, 1, 3)), -1.0, 1.0);
    }
    op_draw_in(d, &t, mask, -1.0, 1.0);
    for (uint64_t i = 0; i < op_trial_in_count(&t, 1); i++) {
        t.in[1][i] = t.in[1][i] < 0.0 ? 0.0 : 1.0;
    }
    return t;
}

op_trial op_case_around_update(hr_op op, op_draw *d)
{
    const int64_t count = op_draw_int(d, 1, 4000 * d->size);
    op_trial t = op_trial_make(op, (op_attr){.momentum = 0.99, .epsilon = 1.0});
    if (op == HR_OP_SQUARE_SUM) {
        op_draw_in(d, &t, DIMS(count), -1.0, 1.0);
        if (op_draw_int(d, 0, 1) == 1) {
            op_draw_in(d, &t, DIMS(1), 0.0, 1.0);
        }
        op_trial_add_out(&t, HR_F64, DIMS(1));
    } else if (op == HR_OP_CLIP) {
        op_draw_in(d, &t, DIMS(count), -1.0, 1.0);
        op_draw_in(d, &t, DIMS(1), 0.5, 9.0); // below and above the largest norm
        op_trial_add_out(&t, HR_F64, DIMS(count));
    } else {
        add_updated(d, &t, DIMS(count), -1.0, 1.0);
        op_draw_in(d, &t, DIMS(count), -1.0, 1.0);
    }
    if (op == HR_OP_EMA) {
        add_finite(d, &t);
    }
    return t;
}

op_trial op_case_gru(hr_op op, op_draw *d)
{
    const int64_t units = op_draw_int(d, 1, 2 * d->size);
    op_trial t = op_trial_make(op, (op_attr){0});
    op_draw_in(d, &t, DIMS(op_draw_int(d, 1, d->size), op_draw_int(d, 1, d->size), 3 * units), -2.0, 2.0);
    op_draw_in(d, &t, DIMS(units, 3 * units), -1.0, 1.0);
    op_draw_in(d, &t, DIMS(3 * units), -1.0, 1.0);
    op_trial_infer_out(&t, 2);
    return t;
}

op_trial op_case_lstm(hr_op op, op_draw *d)
{
    const int64_t units = op_draw_int(d, 1, 2 * d->size);
    op_trial t = op_trial_make(op, (op_attr){0});
    op_draw_in(d, &t, DIMS(op_draw_int(d, 1, d->size), op_draw_int(d, 1, d->size), 4 * units), -2.0, 2.0);
    op_draw_in(d, &t, DIMS(units, 4 * units), -1.0, 1.0);
    op_trial_infer_out(&t, 3);
    return t;
}
