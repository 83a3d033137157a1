// SPDX-License-Identifier: Apache-2.0
// Every operation of the cpu device against the judge, on the same float32 numbers: random shapes with odd sizes,
// groups, strides and one-sided padding, every batch from one up, fused activations where the device fuses them,
// plain and blocked images, one and two threads. Forward, backward and update operations alike.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/op_cases.h"
#include "numeric/op_tolerance.h"

enum { SEEDS = 24, SMALL = 5, LARGE = 18 };

static hr_op operations[HR_OP_COUNT]; // those that have cases

typedef struct bench {
    op_device cpu, judge;
    uint64_t seed;
} bench;

static void compare(const op_trial *t, const char *side, uint32_t k, const double *ours, const double *judged,
                    uint64_t count, uint64_t seed)
{
    const double distance = op_distance(ours, judged, count);
    ck_assert_msg(distance <= op_tolerance((hr_op)t->query.op, HR_F32),
                  "%s, seed %u: %s %u is %g from the judge's", op_name((hr_op)t->query.op), (unsigned)seed,
                  side, k, distance);
}

// Runs `t` on both devices; `t` then holds the judge's values.
static void run_both(const bench *b, op_trial *t)
{
    step_io io = {.learning_rate = 0.01, .update = 3, .seed = b->seed, .first_sample = 1 + (b->seed << 30)};
    op_trial ours = op_trial_copy(t, HR_F32);
    op_trial_run(&ours, b->cpu, &io);
    op_trial_run(t, b->judge, &io);
    for (uint32_t k = 0; k < t->query.in_count; k++) {
        compare(t, "input", k, ours.in[k], t->in[k], op_trial_in_count(t, k), b->seed);
    }
    for (uint32_t k = 0; k < t->query.out_count; k++) {
        compare(t, "output", k, ours.out[k], t->out[k], op_trial_out_count(t, k), b->seed);
    }
    op_trial_deinit(&ours);
}

// Gradients of losses take the scale of a loss that is scaled.
static void add_loss_scale(op_trial *backward, uint64_t seed)
{
    const uint32_t op = backward->query.op, at = backward->query.in_count;
    const bool takes = op == HR_OP_SOFTMAX_XENT_BWD || op == HR_OP_SOFTMAX_XENT_STREAM_BWD ||
                       op == HR_OP_MSE_BWD || op == HR_OP_KL_BWD || op == HR_OP_BALANCE_BWD ||
                       op == HR_OP_BINARY_XENT_BWD || op == HR_OP_FOCAL_BWD;
    if (takes && seed % 2 == 1) {
        op_trial_add_in(backward, HR_F32, (const int64_t[OP_MAX_RANK]){1});
        backward->in[at][0] = 1024.0;
    }
}

static void run_backward(const bench *b, const op_trial *forward)
{
    const op_row *row = op_row_of((hr_op)forward->query.op);
    const uint64_t count = op_trial_out_count(forward, 0);
    double *dy = calloc(count, sizeof *dy);
    ck_assert_ptr_nonnull(dy);
    uint64_t state = b->seed;
    op_fill(dy, count, &state, -1.0, 1.0);
    for (uint32_t g = 0; g < row->grad_count; g++) {
        if (op_trial_has_gradient(forward, g)) {
            op_trial backward = op_trial_backward(forward, g, dy);
            add_loss_scale(&backward, b->seed);
            run_both(b, &backward);
            op_trial_deinit(&backward);
        }
    }
    free(dy);
}

// Puts an activation behind every other trial of an operation that can carry one.
static void fuse(const bench *b, op_trial *t)
{
    hr_target target;
    b->cpu.ops->target(b->cpu.context, &target);
    const hr_act act = b->seed % 4 == 1 ? HR_ACT_RELU6 : HR_ACT_RELU;
    if (b->seed % 2 == 1 && target.fuses(target.context, (hr_op)t->query.op, act)) {
        t->query.attr.act = (int32_t)act;
    }
}

static void check_operation(hr_op op, uint64_t seed, bool wide)
{
    bench b = {.cpu = op_device_open(&device_cpu, 1 + (uint32_t)(seed / 2) % 2),
               .judge = op_device_open(&device_reference, 1),
               .seed = seed};
    const int64_t size = seed % 3 == 0 ? LARGE : SMALL;
    op_trial made = wide ? op_case_wide(op, seed, SMALL) : op_case(op, seed, size);
    op_trial t = op_trial_copy(&made, HR_F32);
    fuse(&b, &t);
    run_both(&b, &t);
    if (t.query.attr.act == HR_ACT_NONE) {
        run_backward(&b, &t);
    }
    op_trial_deinit(&made);
    op_trial_deinit(&t);
    op_device_close(&b.cpu);
    op_device_close(&b.judge);
}

START_TEST(cpu_agrees_with_the_judge)
{
    check_operation(operations[(uint32_t)_i / SEEDS], (uint64_t)_i % SEEDS, false);
}
END_TEST

START_TEST(cpu_agrees_with_the_judge_over_whole_registers)
{
    check_operation(operations[(uint32_t)_i / SEEDS], (uint64_t)_i % SEEDS, true);
}
END_TEST

static int find_operations(void)
{
    int count = 0;
    for (hr_op op = 0; op < HR_OP_COUNT; op++) {
        if (op_has_cases(op) && !op_is_for_cards(op)) {
            operations[count++] = op;
        }
    }
    return count;
}

int main(void)
{
    Suite *suite = suite_create("ops_cpu");
    TCase *all = tcase_create("against the judge");
    tcase_set_timeout(all, 60);
    const int count = find_operations() * SEEDS;
    tcase_add_loop_test(all, cpu_agrees_with_the_judge, 0, count);
    tcase_add_loop_test(all, cpu_agrees_with_the_judge_over_whole_registers, 0, count);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
