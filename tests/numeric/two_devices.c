// SPDX-License-Identifier: Apache-2.0
#include "two_devices.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/op_draw.h"
#include "numeric/op_tolerance.h"

const hr_dtype two_types[TWO_TYPES] = {HR_F32, HR_F16, HR_BF16};

// ---- one trial on both devices --------------------------------------------------------------------------------

op_trial two_devices_in_type(op_trial *t, hr_dtype type, bf16_wide w)
{
    if (type != HR_F32) {
        half_round_inputs(t, w, type);
        return half_trial(t, w, type);
    }
    op_trial rounded = op_trial_copy(t, HR_F32);
    op_trial_deinit(t);
    *t = rounded;
    return op_trial_copy(t, HR_F32);
}

// Zero where the judge says so is not to be missed by more than what rounding leaves.
static bool agrees(const double *ours, const double *judged, uint64_t count, double limit)
{
    double largest = 0.0;
    for (uint64_t i = 0; i < count; i++) {
        const double apart = ours[i] > judged[i] ? ours[i] - judged[i] : judged[i] - ours[i];
        if (!(apart <= 1e30)) {
            return false;
        }
        largest = apart > largest ? apart : largest;
    }
    return largest <= limit || op_distance(ours, judged, count) <= limit;
}

static double limit_of(const op_query *q, uint32_t k, bool in, hr_dtype type)
{
    const bool smoothed = q->op == HR_OP_DENSE && q->attr.act == HR_ACT_GELU && !in && k == 0;
    return smoothed && type == HR_F32 ? OP_TOLERANCE_GELU_BEHIND_PRODUCT : op_tolerance((hr_op)q->op, type);
}

static void compare(const op_trial *t, uint32_t k, bool in, hr_dtype type, const double *ours,
                    const double *judged, uint64_t count)
{
    char shape[96];
    ck_assert_msg(agrees(ours, judged, count, limit_of(&t->query, k, in, type)),
                  "%s over %s: %s %u of %s is %g from the judge's", op_name((hr_op)t->query.op),
                  shape_text(&t->query.in[0].shape, shape, sizeof shape), in ? "input" : "output", k,
                  dtype_name(type), op_distance(ours, judged, count));
}

// Bits do not change when output 0 takes the place of the input that may give its place, nor in a second run.
static void check_again(two_devices *d, const op_trial *t, const op_trial *first)
{
    for (int in_place = 0; in_place < 2; in_place++) {
        step_io io = d->io;
        op_trial again = op_trial_copy(t, HR_F32);
        memcpy(again.query.in, first->query.in, sizeof again.query.in);
        memcpy(again.query.out, first->query.out, sizeof again.query.out);
        if (in_place == 0) {
            op_trial_run(&again, d->card, &io);
        } else if (op_trial_may_share(&again)) {
            op_trial_run_in_place(&again, d->card, &io);
        }
        for (uint32_t k = 0; (in_place == 0 || op_trial_may_share(&again)) && k < again.query.out_count;
             k++) {
            ck_assert_msg(memcmp(again.out[k], first->out[k],
                                 op_trial_out_count(&again, k) * sizeof *again.out[k]) == 0,
                          "%s: output %u has other bits %s", op_name((hr_op)t->query.op), k,
                          in_place == 0 ? "in a second run" : "in place");
        }
        op_trial_deinit(&again);
    }
}

void two_devices_run(two_devices *d, op_trial *t, hr_dtype type, bf16_wide w)
{
    step_io io = d->io, judged = d->io;
    op_trial ours = two_devices_in_type(t, type, w);
    op_trial_run(&ours, d->card, &io);
    check_again(d, t, &ours);
    op_trial_run(t, d->judge, &judged);
    for (uint32_t k = 0; k < t->query.in_count; k++) {
        compare(t, k, true, type, ours.in[k], t->in[k], op_trial_in_count(t, k));
    }
    for (uint32_t k = 0; k < t->query.out_count; k++) {
        compare(t, k, false, type, ours.out[k], t->out[k], op_trial_out_count(t, k));
    }
    op_trial_deinit(&ours);
}

static bool takes_scale(const op_query *q)
{
    return q->op == HR_OP_SOFTMAX_XENT_BWD || q->op == HR_OP_SOFTMAX_XENT_STREAM_BWD ||
           q->op == HR_OP_MSE_BWD || q->op == HR_OP_KL_BWD || q->op == HR_OP_BALANCE_BWD ||
           q->op == HR_OP_BINARY_XENT_BWD || q->op == HR_OP_FOCAL_BWD;
}

static void run_gradients(two_devices *d, const op_trial *forward, hr_dtype type)
{
    const op_row *row = op_row_of((hr_op)forward->query.op);
    const uint64_t count = op_trial_out_count(forward, 0);
    double *dy = calloc(count, sizeof *dy);
    ck_assert_ptr_nonnull(dy);
    op_fill(dy, count, &d->state, -1.0, 1.0);
    for (uint32_t g = 0; g < row->grad_count; g++) {
        if (!op_trial_has_gradient(forward, g)) {
            continue;
        }
        bf16_wide w = bf16_wide_of_backward(&forward->query, &row->grad[g]);
        op_trial t = op_trial_backward(forward, g, dy);
        if (takes_scale(&t.query) && op_random_int(&d->state, 0, 1) == 1) {
            w.in |= 1u << t.query.in_count;
            op_trial_add_in(&t, HR_F32, DIMS(1));
            t.in[t.query.in_count - 1][0] = 1024.0;
        }
        two_devices_run(d, &t, type, w);
        op_trial_deinit(&t);
    }
    free(dy);
}

void two_devices_check_in(two_devices *d, const op_trial *made, hr_dtype type)
{
    op_trial t = op_trial_copy(made, HR_F64);
    two_devices_run(d, &t, type, bf16_wide_of((hr_op)t.query.op));
    if (t.query.attr.act == HR_ACT_NONE) {
        run_gradients(d, &t, type);
    }
    op_trial_deinit(&t);
}

void two_devices_check(two_devices *d, op_trial *t)
{
    for (int k = 0; k < TWO_TYPES; k++) {
        two_devices_check_in(d, t, two_types[k]);
    }
    op_trial_deinit(t);
}

void two_devices_open(two_devices *d)
{
    *d = (two_devices){
        .card = op_device_open(&device_cuda, 1), .judge = op_device_open(&device_reference, 1), .state = 5};
}

void two_devices_close(two_devices *d)
{
    op_device_close(&d->card);
    op_device_close(&d->judge);
}

void two_devices_draw(two_devices *d, op_trial *t, const int64_t dims[OP_MAX_RANK], double low, double high)
{
    op_trial_add_in(t, HR_F64, dims);
    op_fill(t->in[t->query.in_count - 1], op_trial_in_count(t, t->query.in_count - 1u), &d->state, low, high);
}
