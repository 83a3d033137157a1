// SPDX-License-Identifier: Apache-2.0
// Every operation's gradient, as its row in ops/ names it and as the judge computes it, against central
// differences in float64: ‖analytic − numeric‖ / ‖numeric‖ ≤ 1e-6 for every input, over random shapes.
//
// Reshape is a view: its gradient is the same bytes.
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "numeric/op_cases.h"
#include "numeric/op_draw.h"

enum { SEEDS = HEADROOM_SANITIZED ? 6 : 24, SIZE = OP_DRAW_DIFFERENCES };

static const double step = 1e-5;
static const double tolerance = 1e-6;

static hr_op operations[HR_OP_COUNT]; // those that have a gradient

// Losses start the chain: their gradient takes no dy, and holds their weight.
static bool is_loss(uint32_t op)
{
    return op == HR_OP_SOFTMAX_XENT || op == HR_OP_SOFTMAX_XENT_STREAM || op == HR_OP_MSE || op == HR_OP_KL ||
           op == HR_OP_BALANCE || op == HR_OP_BINARY_XENT || op == HR_OP_FOCAL;
}

// The output that stands for the result: the loss itself where there is one.
static uint32_t result_of(const op_trial *t)
{
    return is_loss(t->query.op) ? t->query.out_count - 1u : 0;
}

// Σ dy·result at the trial's inputs.
static double objective(const op_trial *t, op_device device, const double *dy)
{
    op_trial run = op_trial_copy(t, HR_F64);
    op_trial_run(&run, device, NULL);
    const uint32_t k = result_of(t);
    double sum = 0.0;
    for (uint64_t i = 0; i < op_trial_out_count(t, k); i++) {
        sum += dy[i] * run.out[k][i];
    }
    op_trial_deinit(&run);
    return sum;
}

static void numeric_gradient(op_trial *t, op_device device, const double *dy, uint32_t input,
                             double *gradient)
{
    for (uint64_t i = 0; i < op_trial_in_count(t, input); i++) {
        const double x = t->in[input][i];
        t->in[input][i] = x + step;
        const double above = objective(t, device, dy);
        t->in[input][i] = x - step;
        const double below = objective(t, device, dy);
        t->in[input][i] = x;
        gradient[i] = (above - below) / (2.0 * step);
    }
}

static void check_input(op_trial *t, op_device device, const double *dy, uint32_t input,
                        const double *analytic)
{
    const uint64_t count = op_trial_in_count(t, input);
    double *numeric = calloc(count, sizeof *numeric);
    ck_assert_ptr_nonnull(numeric);
    numeric_gradient(t, device, dy, input, numeric);
    const double distance = op_distance(analytic, numeric, count);
    ck_assert_msg(distance <= tolerance, "%s, gradient of input %u is %g from its central difference",
                  op_name((hr_op)t->query.op), input, distance);
    free(numeric);
}

// Checks every gradient of the operation; returns a bit for each input that has one.
static uint32_t check_gradients(op_trial *t, op_device device, const double *dy)
{
    const op_row *row = op_row_of((hr_op)t->query.op);
    op_trial forward = op_trial_copy(t, HR_F64);
    op_trial_run(&forward, device, NULL);
    uint32_t checked = 0;
    for (uint32_t g = 0; g < row->grad_count; g++) {
        const op_grad *rule = &row->grad[g];
        if (!op_trial_has_gradient(t, g)) {
            continue;
        }
        op_trial backward = op_trial_backward(&forward, g, dy);
        op_trial_run(&backward, device, NULL);
        for (uint32_t k = 0; k < backward.query.out_count; k++) {
            check_input(t, device, dy, rule->result[k], backward.out[k]);
            checked |= 1u << rule->result[k];
        }
        op_trial_deinit(&backward);
    }
    for (uint32_t k = 0; k < t->query.in_count; k++) {
        if ((row->passes_gradient >> k & 1) != 0) {
            check_input(t, device, dy, k, dy);
            checked |= 1u << k;
        }
    }
    op_trial_deinit(&forward);
    return checked;
}

// Inputs that a loss depends on: all but running statistics, labels and numbers of entries.
static uint32_t differentiable(const op_query *q)
{
    uint32_t inputs = 0;
    for (uint32_t k = 0; k < q->in_count; k++) {
        inputs |= q->in[k].dtype == HR_F64 ? 1u << k : 0;
    }
    const bool first_only = is_loss(q->op) || q->op == HR_OP_SCALE; // targets and factors have none
    return q->op == HR_OP_BATCH_NORM ? 0x7 : first_only ? 0x1 : inputs;
}

START_TEST(gradient_is_the_central_difference)
{
    const hr_op op = operations[(uint32_t)_i / SEEDS];
    const uint64_t seed = (uint64_t)_i % SEEDS;
    op_device device = op_device_open(&device_reference, 1);
    op_trial t = op_case(op, seed, SIZE);
    const uint64_t count = op_trial_out_count(&t, result_of(&t));
    double *dy = calloc(count, sizeof *dy);
    ck_assert_ptr_nonnull(dy);
    uint64_t state = seed;
    if (is_loss(op)) {
        dy[0] = t.query.attr.scale == 0.0 ? 1.0 : t.query.attr.scale;
    } else {
        op_fill_nonzero(dy, count, &state);
    }
    ck_assert_uint_eq(check_gradients(&t, device, dy), differentiable(&t.query));
    free(dy);
    op_trial_deinit(&t);
    op_device_close(&device);
}
END_TEST

// Whether numbers are asked for: another shape or type of the same ones is no operation of its own, and what is opaque has none.
// The gradient of what rounds is that of what it stands for (tests/numeric/test_fake_quant.c).
static bool computes(hr_op op)
{
    return !op_row_of(op)->view && op != HR_OP_CAST && op != HR_OP_OPAQUE && op != HR_OP_FAKE_QUANT_WEIGHTS &&
           op != HR_OP_FAKE_QUANT;
}

static int find_operations(void)
{
    int count = 0;
    for (hr_op op = 0; op < HR_OP_COUNT; op++) {
        const op_row *row = op_row_of(op);
        if ((row->grad_count > 0 || row->passes_gradient != 0) && computes(op)) {
            operations[count++] = op;
        }
    }
    return count;
}

int main(void)
{
    Suite *suite = suite_create("ops_gradients");
    TCase *all = tcase_create("central differences");
    tcase_add_loop_test(all, gradient_is_the_central_difference, 0, find_operations() * SEEDS);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
