// SPDX-License-Identifier: Apache-2.0
#include "numeric/op_cases.h"

#include <check.h>

#define DIMS(...) ((const int64_t[OP_MAX_RANK]){__VA_ARGS__})

static void add_filled(op_trial *t, const int64_t dims[OP_MAX_RANK], uint64_t *state, double low, double high)
{
    const uint32_t k = t->query.in_count;
    op_trial_add_in(t, HR_F64, dims);
    op_fill(t->in[k], op_trial_in_count(t, k), state, low, high);
}

static void add_labels(op_trial *t, int64_t samples, int64_t classes, uint64_t *state)
{
    const uint32_t k = t->query.in_count;
    op_trial_add_in(t, HR_I32, DIMS(samples));
    for (int64_t n = 0; n < samples; n++) {
        t->in[k][n] = (double)op_random_int(state, 0, classes - 1);
    }
}

// What the cases are drawn from.
typedef struct draw {
    uint64_t state;
    int64_t size;
    bool in_blocks;
} draw;

static int64_t random_channels(draw *d, int64_t largest)
{
    return d->in_blocks ? OP_BLOCK_CHANNELS * op_random_int(&d->state, 1, 2)
                        : op_random_int(&d->state, 1, largest);
}

// A window that meets an image of h by w at least once, padded by less than itself.
static op_attr random_window(uint64_t *state, int64_t h, int64_t w, int64_t largest)
{
    op_attr a = {.kernel_h = (int32_t)op_random_int(state, 1, largest),
                 .kernel_w = (int32_t)op_random_int(state, 1, largest),
                 .stride_h = (int32_t)op_random_int(state, 1, 2),
                 .stride_w = (int32_t)op_random_int(state, 1, 2),
                 .groups = 1};
    a.pad_top = (int32_t)op_random_int(state, 0, a.kernel_h - 1);
    a.pad_left = (int32_t)op_random_int(state, 0, a.kernel_w - 1);
    a.pad_bottom = (int32_t)op_random_int(state, 0, a.kernel_h - 1);
    a.pad_right = (int32_t)op_random_int(state, 0, a.kernel_w - 1);
    while (h + a.pad_top + a.pad_bottom < a.kernel_h) {
        a.kernel_h--;
    }
    while (w + a.pad_left + a.pad_right < a.kernel_w) {
        a.kernel_w--;
    }
    // A shrunken kernel keeps its padding below itself.
    a.pad_top = a.pad_top < a.kernel_h ? a.pad_top : a.kernel_h - 1;
    a.pad_bottom = a.pad_bottom < a.kernel_h ? a.pad_bottom : a.kernel_h - 1;
    a.pad_left = a.pad_left < a.kernel_w ? a.pad_left : a.kernel_w - 1;
    a.pad_right = a.pad_right < a.kernel_w ? a.pad_right : a.kernel_w - 1;
    return a;
}

static op_trial convolution(draw *d)
{
    uint64_t *state = &d->state;
    const int64_t size = d->size;
    const int64_t h = op_random_int(state, 3, size + 2), w = op_random_int(state, 3, size + 2);
    op_attr a = random_window(state, h, w, 3);
    int64_t channels = random_channels(d, size), filters = random_channels(d, size);
    switch (op_random_int(state, 0, 2)) {
    case 0: // every channel to every filter
        break;
    case 1: // groups of more than one channel
        a.groups = (int32_t)op_random_int(state, 2, 3);
        channels *= a.groups;
        filters *= a.groups;
        break;
    default: // depthwise
        a.groups = (int32_t)channels;
        filters = channels * op_random_int(state, 1, 2);
        break;
    }
    op_trial t = op_trial_make(HR_OP_CONV2D, a);
    add_filled(&t, DIMS(op_random_int(state, 1, 3), h, w, channels), state, -1.0, 1.0);
    add_filled(&t, DIMS(a.kernel_h, a.kernel_w, channels / a.groups, filters), state, -1.0, 1.0);
    if (op_random_int(state, 0, 1) == 1) {
        add_filled(&t, DIMS(filters), state, -1.0, 1.0);
    }
    op_trial_infer_out(&t, 1);
    return t;
}

static op_trial dense(draw *d)
{
    uint64_t *state = &d->state;
    const int64_t size = d->size;
    const int64_t in = op_random_int(state, 1, 4 * size), out = op_random_int(state, 1, 4 * size);
    op_trial t = op_trial_make(HR_OP_DENSE, (op_attr){0});
    add_filled(&t, DIMS(op_random_int(state, 1, 2 * size), in), state, -1.0, 1.0);
    add_filled(&t, DIMS(in, out), state, -1.0, 1.0);
    if (op_random_int(state, 0, 1) == 1) {
        add_filled(&t, DIMS(out), state, -1.0, 1.0);
    }
    op_trial_infer_out(&t, 1);
    return t;
}

// At least four rows a channel: with fewer the normalised values hardly depend on x.
static op_trial batch_norm(hr_op op, draw *d)
{
    uint64_t *state = &d->state;
    const int64_t size = d->size, channels = random_channels(d, 2 * size);
    op_trial t = op_trial_make(op, (op_attr){.epsilon = 1e-5, .momentum = 0.1});
    if (!d->in_blocks && op_random_int(state, 0, 1) == 0) {
        add_filled(&t, DIMS(op_random_int(state, 4, 4 + size), channels), state, -1.0, 3.0);
    } else {
        const int64_t h = op_random_int(state, 2, size + 1), w = op_random_int(state, 2, size + 1);
        add_filled(&t, DIMS(op_random_int(state, 1, 3), h, w, channels), state, -1.0, 3.0);
    }
    add_filled(&t, DIMS(channels), state, 0.5, 1.5);
    add_filled(&t, DIMS(channels), state, -1.0, 1.0);
    add_filled(&t, DIMS(channels), state, -1.0, 1.0);
    add_filled(&t, DIMS(channels), state, 0.5, 2.0);
    op_trial_infer_out(&t, op == HR_OP_BATCH_NORM ? 3 : 1);
    return t;
}

static op_trial max_pool(draw *d)
{
    uint64_t *state = &d->state;
    const int64_t size = d->size;
    const int64_t h = op_random_int(state, 2, size + 3), w = op_random_int(state, 2, size + 3);
    op_trial t = op_trial_make(HR_OP_MAX_POOL, random_window(state, h, w, 3));
    op_trial_add_in(&t, HR_F64, DIMS(op_random_int(state, 1, 3), h, w, random_channels(d, 2 * size)));
    op_fill_apart(t.in[0], op_trial_in_count(&t, 0), state);
    op_trial_infer_out(&t, (uint32_t)op_random_int(state, 1, 2));
    return t;
}

static const int64_t *random_image(draw *d, int64_t dims[OP_MAX_RANK])
{
    dims[0] = op_random_int(&d->state, 1, 3);
    dims[1] = op_random_int(&d->state, 1, d->size);
    dims[2] = op_random_int(&d->state, 1, d->size);
    dims[3] = random_channels(d, 2 * d->size);
    dims[4] = 0;
    return dims;
}

static op_trial pointwise(hr_op op, draw *d)
{
    int64_t dims[OP_MAX_RANK];
    op_trial t = op_trial_make(op, (op_attr){0});
    op_trial_add_in(&t, HR_F64, random_image(d, dims));
    op_fill_nonzero(t.in[0], op_trial_in_count(&t, 0), &d->state);
    if (op == HR_OP_ADD) {
        add_filled(&t, dims, &d->state, -1.0, 1.0);
    }
    op_trial_infer_out(&t, 1);
    return t;
}

static op_trial classifier(hr_op op, draw *d)
{
    uint64_t *state = &d->state;
    const int64_t size = d->size;
    const int64_t samples = op_random_int(state, 1, 2 * size), classes = op_random_int(state, 2, 4 * size);
    op_trial t = op_trial_make(op, (op_attr){0});
    add_filled(&t, DIMS(samples, classes), state, -3.0, 3.0);
    add_labels(&t, samples, classes, state);
    op_trial_infer_out(&t, op == HR_OP_SOFTMAX_XENT ? 2 : 1);
    return t;
}

static op_trial update(hr_op op, uint32_t slots, draw *d)
{
    int64_t dims[OP_MAX_RANK];
    op_trial t = op_trial_make(op, (op_attr){.momentum = 0.9, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-7});
    random_image(d, dims);
    for (uint32_t k = 0; k < 2 + slots; k++) {
        add_filled(&t, dims, &d->state, k == 3 ? 0.0 : -1.0, 1.0); // the second moment is not negative
    }
    for (uint32_t k = 0; k < 1 + slots; k++) {
        op_trial_add_out(&t, HR_F64, dims);
    }
    return t;
}

static op_trial trial_of(hr_op op, draw d)
{
    if (op == HR_OP_CONV2D) {
        return convolution(&d);
    }
    if (op == HR_OP_DENSE) {
        return dense(&d);
    }
    if (op == HR_OP_BATCH_NORM || op == HR_OP_BATCH_NORM_EVAL) {
        return batch_norm(op, &d);
    }
    if (op == HR_OP_MAX_POOL) {
        return max_pool(&d);
    }
    if (op == HR_OP_SOFTMAX_XENT || op == HR_OP_ACCURACY) {
        return classifier(op, &d);
    }
    if (op == HR_OP_SGD || op == HR_OP_MOMENTUM || op == HR_OP_ADAM) {
        return update(op, op == HR_OP_SGD ? 0 : op == HR_OP_MOMENTUM ? 1 : 2, &d);
    }
    ck_assert(op == HR_OP_RELU || op == HR_OP_ADD || op == HR_OP_GLOBAL_AVG_POOL);
    return pointwise(op, &d);
}

static uint64_t state_of(hr_op op, uint64_t seed)
{
    return seed * UINT64_C(1000003) + (uint64_t)op;
}

op_trial op_case(hr_op op, uint64_t seed, int64_t size)
{
    return trial_of(op, (draw){.state = state_of(op, seed), .size = size});
}

op_trial op_case_in_blocks(hr_op op, uint64_t seed, int64_t size)
{
    return trial_of(op, (draw){.state = state_of(op, seed), .size = size, .in_blocks = true});
}
