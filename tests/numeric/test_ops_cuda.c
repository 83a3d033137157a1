// SPDX-License-Identifier: Apache-2.0
// Every operation of the cuda device against the judge, in float32, float16 and bfloat16: random shapes with odd sizes,
// groups, strides and one-sided padding, fused activations where the device fuses them, forward, backward and update
// operations alike. Runs on a card, or on the emulated one (tests/card). HEADROOM_TRIALS: how many seeds of each.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/bf16_trial.h"
#include "numeric/op_cases.h"
#include "numeric/op_tolerance.h"

enum { SEEDS = 9, SMALL = 5, LARGE = 18 };

static const hr_dtype types[] = {HR_F32, HR_F16, HR_BF16};
enum { TYPES = sizeof types / sizeof *types };

typedef struct bench {
    op_device cuda, judge;
    uint64_t seed;
    hr_dtype type;
} bench;

// `same_masks`: those of ops/dropout.h, where a library would draw others.
static void open_devices(bench *b, bool same_masks)
{
    b->cuda = op_device_open_with(&device_cuda, &(device_options){.threads = 1, .deterministic = same_masks});
    b->judge = op_device_open(&device_reference, 1);
}

static void close_devices(bench *b)
{
    op_device_close(&b->cuda);
    op_device_close(&b->judge);
}

static void compare(const bench *b, const op_trial *t, const char *side, uint32_t k,
                    const op_operand *operand, const double *ours, const double *judged, uint64_t count)
{
    const hr_op op = (hr_op)t->query.op;
    const double distance = op_distance(ours, judged, count);
    const double most = dtype_is_real((hr_dtype)operand->dtype) ? op_tolerance(op, b->type) : 0;
    if (!(distance <= most)) {
        ck_abort_msg("%s of %s, seed %u: %s %u is %g from the judge's", op_name(op), dtype_name(b->type),
                     (unsigned)b->seed, side, k, distance);
    }
}

// The trial as the device sees it; `t` then holds the numbers that it can hold.
static op_trial in_type(const bench *b, op_trial *t, bf16_wide w)
{
    if (b->type == HR_F32) {
        op_trial rounded = op_trial_copy(t, HR_F32);
        op_trial_deinit(t);
        *t = rounded;
        return op_trial_copy(t, HR_F32);
    }
    half_round_inputs(t, w, b->type);
    return half_trial(t, w, b->type);
}

static void run_both(const bench *b, op_trial *t, bf16_wide w)
{
    step_io io = {.learning_rate = 0.01, .update = 3, .seed = b->seed, .first_sample = 1 + (b->seed << 30)};
    step_io judged = io;
    op_trial ours = in_type(b, t, w);
    op_trial_run(t, b->judge, &judged);
    op_trial_run(&ours, b->cuda, &io);
    for (uint32_t k = 0; k < t->query.in_count; k++) {
        compare(b, t, "input", k, &t->query.in[k], ours.in[k], t->in[k], op_trial_in_count(t, k));
    }
    for (uint32_t k = 0; k < t->query.out_count; k++) {
        compare(b, t, "output", k, &t->query.out[k], ours.out[k], t->out[k], op_trial_out_count(t, k));
    }
    op_trial_deinit(&ours);
}

// Gradients of losses take the scale of a loss that is scaled, float32 whatever they are.
static void add_loss_scale(op_trial *backward, bf16_wide *w, uint64_t seed)
{
    const uint32_t op = backward->query.op, at = backward->query.in_count;
    const bool takes = op == HR_OP_SOFTMAX_XENT_BWD || op == HR_OP_SOFTMAX_XENT_STREAM_BWD ||
                       op == HR_OP_MSE_BWD || op == HR_OP_KL_BWD || op == HR_OP_BALANCE_BWD ||
                       op == HR_OP_BINARY_XENT_BWD || op == HR_OP_FOCAL_BWD;
    if (takes && seed % 2 == 1) {
        op_trial_add_in(backward, HR_F32, (const int64_t[OP_MAX_RANK]){1});
        backward->in[at][0] = 1024.0;
        w->in |= 1u << at;
    }
}

static void run_backward(const bench *b, const op_trial *forward)
{
    const op_row *row = op_row_of((hr_op)forward->query.op);
    const uint64_t count = op_trial_out_count(forward, 0);
    double *dy = calloc(count, sizeof *dy);
    uint64_t state = b->seed + 77;
    ck_assert_ptr_nonnull(dy);
    op_fill(dy, count, &state, -1.0, 1.0);
    for (uint32_t g = 0; g < row->grad_count; g++) {
        if (op_trial_has_gradient(forward, g)) {
            op_trial backward = op_trial_backward(forward, g, dy);
            bf16_wide w = bf16_wide_of_backward(&forward->query, &row->grad[g]);
            add_loss_scale(&backward, &w, b->seed);
            run_both(b, &backward, w);
            op_trial_deinit(&backward);
        }
    }
    free(dy);
}

// Numbers that an activation with a ceiling cuts at both ends.
static void reach_ceiling(op_trial *t)
{
    for (uint64_t k = 0; t->query.attr.act == HR_ACT_RELU6 && k < op_trial_in_count(t, 0); k++) {
        t->in[0][k] *= 8.0;
    }
}

// Puts an activation behind every other trial of an operation that can carry one.
static void fuse(const bench *b, op_trial *t)
{
    hr_target target;
    b->cuda.ops->target(b->cuda.context, &target);
    const hr_act act = b->seed % 4 == 1 ? HR_ACT_RELU6 : HR_ACT_RELU;
    if (b->seed % 2 == 1 && target.fuses(target.context, (hr_op)t->query.op, act)) {
        t->query.attr.act = (int32_t)act;
        reach_ceiling(t);
    }
}

static void check_operation(bench *b, hr_op op)
{
    op_trial t = op_case(op, b->seed, b->seed % 3 == 0 ? LARGE : SMALL);
    fuse(b, &t);
    run_both(b, &t, bf16_wide_of(op));
    if (t.query.attr.act == HR_ACT_NONE) {
        run_backward(b, &t);
    }
    op_trial_deinit(&t);
}

static uint64_t seeds(void)
{
    const char *trials = getenv("HEADROOM_TRIALS");
    const uint64_t count = trials == NULL ? SEEDS : strtoull(trials, NULL, 10);
    return count == 0 ? 1 : count;
}

START_TEST(cuda_agrees_with_the_judge)
{
    const hr_op op = (hr_op)(_i / TYPES);
    bench b = {.type = types[_i % TYPES]};
    if (!op_has_cases(op) || (op_is_quantized(op) && b.type != HR_F32)) {
        return;
    }
    open_devices(&b, op == HR_OP_ATTENTION);
    for (b.seed = 0; b.seed < seeds(); b.seed++) {
        check_operation(&b, op);
    }
    close_devices(&b);
}
END_TEST

int main(void)
{
    if (!test_device_is_there(&device_cuda)) {
        return TEST_SKIPPED;
    }
    Suite *suite = suite_create("ops_cuda");
    TCase *all = tcase_create("against the judge");
    tcase_add_loop_test(all, cuda_agrees_with_the_judge, 0, HR_OP_COUNT * TYPES);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
