// SPDX-License-Identifier: Apache-2.0
// Cases of images, of what combines tensors, and of losses.
#include <math.h>

#include "numeric/op_draw.h"
#include "ops/permute.h"

// Up to `most` dimensions of 1 to size + 1 places; blocked images when the draw asks for them.
static void any_shape(op_draw *d, int64_t most, int64_t dims[OP_MAX_RANK])
{
    if (d->wide) {
        (void)op_draw_image(d, dims);
        return;
    }
    const int64_t rank = op_draw_int(d, 1, most);
    const int64_t largest = d->size > 6 ? 6 : d->size + 1;
    for (int64_t k = 0; k < OP_MAX_RANK; k++) {
        dims[k] = k < rank ? op_draw_int(d, 1, largest) : 0;
    }
    // One long dimension, so that whole vectors and their ends are met.
    dims[op_draw_int(d, 0, rank - 1)] = op_draw_int(d, 1, 4 * d->size);
}

static int32_t rank_of(const int64_t dims[OP_MAX_RANK])
{
    int32_t rank = 0;
    while (rank < OP_MAX_RANK && dims[rank] != 0) {
        rank++;
    }
    return rank;
}

static int32_t any_axis(op_draw *d, const int64_t dims[OP_MAX_RANK])
{
    return d->wide ? 3 : (int32_t)op_draw_int(d, 0, rank_of(dims) - 1);
}

op_trial op_case_concat(hr_op op, op_draw *d)
{
    int64_t dims[OP_MAX_RANK];
    any_shape(d, 4, dims);
    op_trial t = op_trial_make(op, (op_attr){.axis = any_axis(d, dims)});
    const int64_t inputs = op_draw_int(d, 2, 6);
    for (int64_t k = 0; k < inputs; k++) {
        dims[t.query.attr.axis] = d->wide ? op_draw_channels(d, 0) : op_draw_int(d, 1, d->size + 1);
        op_draw_in(d, &t, dims, -1.0, 1.0);
    }
    op_trial_infer_out(&t, 1);
    return t;
}

op_trial op_case_slice(hr_op op, op_draw *d)
{
    int64_t dims[OP_MAX_RANK];
    any_shape(d, 4, dims);
    op_attr a = {.axis = any_axis(d, dims)};
    const int64_t unit = d->wide ? OP_DRAW_LANES : 1, places = dims[a.axis] / unit;
    const int64_t count = op_draw_int(d, 1, places);
    a.offset = (int32_t)(op_draw_int(d, 0, places - count) * unit);
    a.count = (int32_t)(count * unit);
    if (a.offset + a.count == dims[a.axis] && op_draw_int(d, 0, 1) == 1) {
        a.count = 0; // the rest
    }
    op_trial t = op_trial_make(op, a);
    op_draw_in(d, &t, dims, -1.0, 1.0);
    op_trial_infer_out(&t, 1);
    return t;
}

op_trial op_case_stack(hr_op op, op_draw *d)
{
    int64_t dims[OP_MAX_RANK];
    any_shape(d, 4, dims);
    op_trial t = op_trial_make(op, (op_attr){.axis = (int32_t)op_draw_int(d, 0, rank_of(dims)),
                                             .count = (int32_t)op_draw_int(d, 1, 5)});
    op_draw_in(d, &t, dims, -1.0, 1.0);
    op_trial_infer_out(&t, 1);
    return t;
}

op_trial op_case_reduce(hr_op op, op_draw *d)
{
    int64_t dims[OP_MAX_RANK];
    any_shape(d, 5, dims);
    op_attr a = {.axis = any_axis(d, dims)};
    a.count = (int32_t)op_draw_int(d, 1, rank_of(dims) - a.axis);
    a.flags = op_draw_int(d, 0, 1) == 1 ? OP_FLAG_MEAN : 0;
    op_trial t = op_trial_make(op, a);
    op_draw_in(d, &t, dims, -1.0, 1.0);
    op_trial_infer_out(&t, 1);
    return t;
}

op_trial op_case_zeros(hr_op op, op_draw *d)
{
    int64_t dims[OP_MAX_RANK];
    any_shape(d, 4, dims);
    op_trial t = op_trial_make(op, (op_attr){0});
    op_trial_add_out(&t, HR_F64, dims);
    return t;
}

op_trial op_case_resized(hr_op op, op_draw *d)
{
    int64_t dims[OP_MAX_RANK];
    uint64_t *state = &d->state;
    op_trial t = op_trial_make(op, (op_attr){.kernel_h = (int32_t)op_random_int(state, 1, 3),
                                             .kernel_w = (int32_t)op_random_int(state, 1, 3),
                                             .pad_top = (int32_t)op_random_int(state, 0, 3),
                                             .pad_left = (int32_t)op_random_int(state, 0, 3),
                                             .pad_bottom = (int32_t)op_random_int(state, 0, 3),
                                             .pad_right = (int32_t)op_random_int(state, 0, 3)});
    op_draw_in(d, &t, op_draw_image(d, dims), -1.0, 1.0);
    op_trial_infer_out(&t, 1);
    return t;
}

// Larger and smaller, on every kind of grid; a side of one place has no distance between its corners.
op_trial op_case_bilinear(hr_op op, op_draw *d)
{
    int64_t dims[OP_MAX_RANK];
    op_trial t = op_trial_make(op, (op_attr){.kernel_h = (int32_t)op_draw_int(d, 1, 4 * d->size),
                                             .kernel_w = (int32_t)op_draw_int(d, 1, 4 * d->size),
                                             .flags = op_draw_int(d, 0, 1) == 1 ? OP_FLAG_CORNERS : 0});
    op_draw_in(d, &t, op_draw_image(d, dims), -1.0, 1.0);
    op_trial_infer_out(&t, 1);
    return t;
}

// Any order of all axes but the first; some sides long enough for whole squares and their ends.
op_trial op_case_permute(hr_op op, op_draw *d)
{
    int64_t dims[OP_MAX_RANK];
    any_shape(d, 5, dims);
    const uint32_t rank = (uint32_t)rank_of(dims);
    uint32_t axes[OP_MAX_RANK] = {0, 1, 2, 3, 4};
    for (uint32_t k = 1; k < rank; k++) {
        const int64_t other = op_draw_int(d, k, rank - 1);
        const uint32_t axis = axes[k];
        axes[k] = axes[other];
        axes[other] = axis;
    }
    if (rank > 1 && op_draw_int(d, 0, 1) == 1) {
        dims[op_draw_int(d, 1, rank - 1)] = op_draw_int(d, 1, 70);
    }
    op_trial t = op_trial_make(op, (op_attr){.rule = permute_rule(axes, rank)});
    op_draw_in(d, &t, dims, -1.0, 1.0);
    op_trial_infer_out(&t, 1);
    return t;
}

op_trial op_case_roll(hr_op op, op_draw *d)
{
    int64_t dims[OP_MAX_RANK];
    (void)op_draw_image(d, dims);
    dims[3] = op_draw_int(d, 0, 3) == 0 ? 0 : dims[3]; // then [N,H,W]
    op_trial t = op_trial_make(op, (op_attr){.pad_top = (int32_t)op_draw_int(d, 0, dims[1] - 1),
                                             .pad_left = (int32_t)op_draw_int(d, 0, dims[2] - 1)});
    op_draw_in(d, &t, dims, -1.0, 1.0);
    op_trial_infer_out(&t, 1);
    return t;
}

op_trial op_case_avg_pool(hr_op op, op_draw *d)
{
    uint64_t *state = &d->state;
    const int64_t h = op_random_int(state, 2, d->size + 3), w = op_random_int(state, 2, d->size + 3);
    op_attr a = op_draw_window(state, h, w, 3);
    a.flags = op_random_int(state, 0, 1) == 1 ? OP_FLAG_PADDING : 0;
    op_trial t = op_trial_make(op, a);
    op_draw_in(d, &t, DIMS(op_random_int(state, 1, 3), h, w, op_draw_channels(d, 2 * d->size)), -1.0, 1.0);
    op_trial_infer_out(&t, 1);
    return t;
}

// Padding of one side that leaves an image of at least one place; behind it may be negative, above −stride.
static void any_padding(uint64_t *state, int64_t in, int32_t kernel, int32_t stride, int32_t *before,
                        int32_t *behind)
{
    const int64_t most = (in - 1) * stride + kernel - 1;
    *before = (int32_t)op_random_int(state, 0, kernel - 1);
    *behind = (int32_t)op_random_int(state, 1 - stride, kernel - 1);
    *before = *before > most ? (int32_t)most : *before;
    *behind = *before + *behind > most ? (int32_t)most - *before : *behind;
}

// Half of them with a kernel of the stride's size and no padding, as a U-Net has them.
op_trial op_case_transposed(hr_op op, op_draw *d)
{
    uint64_t *state = &d->state;
    const int64_t h = op_random_int(state, 1, d->size), w = op_random_int(state, 1, d->size);
    op_attr a = {.kernel_h = (int32_t)op_random_int(state, 1, 3),
                 .kernel_w = (int32_t)op_random_int(state, 1, 3),
                 .stride_h = (int32_t)op_random_int(state, 1, 3),
                 .stride_w = (int32_t)op_random_int(state, 1, 3),
                 .groups = 1};
    if (op_random_int(state, 0, 1) == 1) {
        a.stride_h = a.kernel_h;
        a.stride_w = a.kernel_w;
    } else {
        any_padding(state, h, a.kernel_h, a.stride_h, &a.pad_top, &a.pad_bottom);
        any_padding(state, w, a.kernel_w, a.stride_w, &a.pad_left, &a.pad_right);
    }
    op_trial t = op_trial_make(op, a);
    const int64_t channels = op_random_int(state, 1, 2 * d->size),
                  filters = op_random_int(state, 1, 2 * d->size);
    op_draw_in(d, &t, DIMS(op_random_int(state, 1, 3), h, w, channels), -1.0, 1.0);
    op_draw_in(d, &t, DIMS(a.kernel_h, a.kernel_w, filters, channels), -1.0, 1.0);
    if (op_random_int(state, 0, 1) == 1) {
        op_draw_in(d, &t, DIMS(filters), -1.0, 1.0);
    }
    op_trial_infer_out(&t, 1);
    return t;
}

// On both sides of 0 and 6, and not near them.
op_trial op_case_relu6(hr_op op, op_draw *d)
{
    int64_t dims[OP_MAX_RANK];
    op_trial t = op_trial_make(op, (op_attr){0});
    op_draw_in(d, &t, op_draw_image(d, dims), -8.0, 16.0);
    for (uint64_t i = 0; i < op_trial_in_count(&t, 0); i++) {
        t.in[0][i] += fabs(t.in[0][i]) < 0.1 || fabs(t.in[0][i] - 6.0) < 0.1 ? 0.5 : 0.0;
    }
    op_trial_infer_out(&t, 1);
    return t;
}

op_trial op_case_product(hr_op op, op_draw *d)
{
    int64_t dims[OP_MAX_RANK];
    any_shape(d, 4, dims);
    op_trial t = op_trial_make(op, (op_attr){0});
    op_draw_in(d, &t, dims, -1.0, 1.0);
    if (op == HR_OP_MULTIPLY) {
        op_draw_in(d, &t, dims, -1.0, 1.0);
    } else {
        t.query.attr.scale = op_draw_int(d, 0, 1) == 1 ? op_random(&d->state, -2.0, 2.0) : 0.0;
        if (op_draw_int(d, 0, 1) == 1) {
            op_draw_in(d, &t, DIMS(1), 0.5, 3.0);
        }
    }
    op_trial_infer_out(&t, 1);
    return t;
}

// Factors of channels: for all places, or for those of each sample, with or without the axes between.
op_trial op_case_factor(hr_op op, op_draw *d)
{
    int64_t dims[OP_MAX_RANK], factors[OP_MAX_RANK] = {0};
    const uint32_t rank = d->wide ? 4 : (uint32_t)op_draw_int(d, 3, 4);
    (void)(d->wide ? op_draw_image(d, dims) : op_draw_rows(d, rank, op_draw_int(d, 1, 8 * d->size), dims));
    const int64_t kind = op_draw_int(d, 0, 2);
    const uint32_t of = kind == 0 ? 1 : kind == 1 ? 2 : rank;
    for (uint32_t k = 0; k < of; k++) {
        factors[k] = k + 1 == of ? dims[rank - 1] : k == 0 ? dims[0] : 1;
    }
    op_trial t = op_trial_make(op, (op_attr){0});
    op_draw_in(d, &t, dims, -1.0, 1.0);
    op_draw_in(d, &t, factors, -1.0, 1.0);
    op_trial_infer_out(&t, 1);
    return t;
}

// Rows of logits of any rank; *classes is the last dimension, which the shape of the labels lacks.
static void any_logits(op_draw *d, int64_t dims[OP_MAX_RANK], int64_t rows[OP_MAX_RANK])
{
    const int64_t rank = op_draw_int(d, 2, 4);
    for (int64_t k = 0; k < OP_MAX_RANK; k++) {
        dims[k] = k < rank ? op_draw_int(d, 1, d->size > 4 && rank > 2 ? 4 : 2 * d->size) : 0;
        rows[k] = k < rank - 1 ? dims[k] : 0;
    }
    dims[rank - 1] = op_draw_int(d, 2, 4 * d->size);
}

static void add_labels(op_draw *d, op_trial *t, hr_dtype dtype, const int64_t rows[OP_MAX_RANK],
                       int64_t classes)
{
    const uint32_t k = t->query.in_count;
    op_trial_add_in(t, dtype, rows);
    for (uint64_t n = 0; n < op_trial_in_count(t, k); n++) {
        t->in[k][n] = (double)op_draw_int(d, 0, classes - 1);
    }
}

op_trial op_case_loss(hr_op op, op_draw *d)
{
    int64_t dims[OP_MAX_RANK], rows[OP_MAX_RANK];
    any_logits(d, dims, rows);
    op_trial t = op_trial_make(op, (op_attr){.epsilon = op_random(&d->state, 0.5, 4.0)});
    const bool weighs = op_draw_int(d, 0, 1) == 1;
    t.query.attr.scale = weighs ? op_random(&d->state, 0.1, 2.0) : 0.0;
    op_draw_in(d, &t, dims, -3.0, 3.0);
    if (op != HR_OP_MSE && op != HR_OP_KL) {
        const hr_dtype dtype = op_draw_int(d, 0, 1) == 1 ? HR_I32 : HR_U8;
        add_labels(d, &t, dtype, rows, dims[rank_of(rows)]);
    } else {
        op_draw_in(d, &t, dims, -3.0, 3.0);
    }
    op_trial_infer_out(&t, op_row_of(op)->min_out);
    return t;
}

// Targets of zeros and ones, or anything between; logits of which some are sure.
op_trial op_case_binary(hr_op op, op_draw *d)
{
    int64_t dims[OP_MAX_RANK], rows[OP_MAX_RANK];
    any_logits(d, dims, rows);
    op_trial t = op_trial_make(op, (op_attr){.scale = op_draw_int(d, 0, 1) == 1 ? 0.5 : 0.0});
    const bool soft = op_draw_int(d, 0, 3) == 0;
    if (op == HR_OP_FOCAL) {
        t.query.attr.rate = op_draw_int(d, 0, 1) == 1 ? 2.0 : op_random(&d->state, 0.5, 4.0);
        t.query.attr.momentum = op_draw_int(d, 0, 2) == 0 ? 0.0 : op_random(&d->state, 0.05, 0.95);
    }
    op_draw_in(d, &t, dims, -6.0, 6.0);
    op_draw_in(d, &t, dims, 0.0, 1.0);
    for (uint64_t i = 0; i < op_trial_in_count(&t, 1) && !soft; i++) {
        t.in[1][i] = t.in[1][i] < 0.5 ? 0.0 : 1.0;
    }
    op_trial_infer_out(&t, 1);
    return t;
}

// Groups of one channel, of some and of all, at least four elements each; images, volumes and sequences.
op_trial op_case_group_norm(hr_op op, op_draw *d)
{
    const int64_t groups = op_draw_int(d, 1, 2 * d->size), size = d->size;
    const bool of_devices = size > OP_DRAW_DIFFERENCES;
    const bool many = op_draw_int(d, 0, 9) == 0 && of_devices;
    const int64_t channels = groups * (many ? 300 / groups + 1 : op_draw_int(d, 1, size));
    const int64_t h = op_draw_int(d, 2, size + 1), w = op_draw_int(d, 2, size + 1);
    const bool few = of_devices && channels * h * w < 150; // also more samples than the cpu sums up at a time
    const int64_t n = few ? op_draw_int(d, 63, 130) : op_draw_int(d, 1, 3);
    op_trial t = op_trial_make(op, (op_attr){.groups = (int32_t)groups, .epsilon = 1e-5});
    const bool flat = op_draw_int(d, 0, 2) == 0;
    op_draw_in(d, &t, flat ? DIMS(n, 2 * h, channels) : DIMS(n, h, w, channels), -1.0, 3.0);
    op_draw_in(d, &t, DIMS(channels), 0.5, 1.5);
    op_draw_in(d, &t, DIMS(channels), -1.0, 1.0);
    op_trial_infer_out(&t, 3);
    return t;
}
