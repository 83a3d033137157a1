// SPDX-License-Identifier: Apache-2.0
// What the cpu device's sequence kernels promise beyond agreeing with the judge: a table's gradient has the same
// bits for every number of threads; activations keep their digits in the tails and let not-a-number through;
// dropout draws the judge's mask at every length.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/op_harness.h"

#define DIMS(...) ((const int64_t[OP_MAX_RANK]){__VA_ARGS__})

static op_trial table_gradient(uint64_t seed, int64_t rows, int64_t entries, int64_t features)
{
    op_trial t = op_trial_make(HR_OP_EMBEDDING_BWD, (op_attr){0});
    uint64_t state = seed;
    op_trial_add_in(&t, HR_I32, DIMS(rows));
    op_trial_add_in(&t, HR_F32, DIMS(rows, features));
    op_trial_add_out(&t, HR_F32, DIMS(entries, features));
    for (int64_t r = 0; r < rows; r++) {
        const double share = op_random(&state, 0.0, 1.0); // few entries often, many seldom
        t.in[0][r] = floor(share * share * share * (double)entries);
    }
    op_fill(t.in[1], op_trial_in_count(&t, 1), &state, -1.0, 1.0);
    return t;
}

START_TEST(the_gradient_of_a_table_does_not_hang_on_the_threads)
{
    op_trial one = table_gradient((uint64_t)_i, 700, 300, 70 + 17 * _i);
    op_trial many = op_trial_copy(&one, HR_F32);
    op_device alone = op_device_open(&device_cpu, 1), team = op_device_open(&device_cpu, 2 + (uint32_t)_i);
    op_trial_run(&one, alone, NULL);
    op_trial_run(&many, team, NULL);
    ck_assert_mem_eq(one.out[0], many.out[0], op_trial_out_count(&one, 0) * sizeof *one.out[0]);
    op_trial_deinit(&one);
    op_trial_deinit(&many);
    op_device_close(&alone);
    op_device_close(&team);
}
END_TEST

// One activation at float32 points, on the cpu and by the judge.
static void run_both(hr_op op, int32_t flags, const double *x, int64_t count, double *ours, double *judged)
{
    op_device cpu = op_device_open(&device_cpu, 1), judge = op_device_open(&device_reference, 1);
    op_trial t = op_trial_make(op, (op_attr){.flags = flags});
    op_trial_add_in(&t, HR_F32, DIMS(count));
    op_trial_infer_out(&t, 1);
    memcpy(t.in[0], x, (size_t)count * sizeof *x);
    op_trial_run(&t, cpu, NULL);
    memcpy(ours, t.out[0], (size_t)count * sizeof *x);
    op_trial_run(&t, judge, NULL);
    memcpy(judged, t.out[0], (size_t)count * sizeof *x);
    op_trial_deinit(&t);
    op_device_close(&cpu);
    op_device_close(&judge);
}

// Relative to each value itself; e^(-x²/2) multiplies the rounding of its exponent.
static const struct {
    hr_op op;
    int32_t flags;
    double reach, distance;
} activations[] = {
    {HR_OP_GELU, 0, 5.0, 2e-6},     {HR_OP_GELU, OP_FLAG_TANH, 5.0, 5e-6}, {HR_OP_SILU, 0, 80.0, 1e-6},
    {HR_OP_TANH, 0, 20.0, 3e-7},    {HR_OP_SIGMOID, 0, 80.0, 5e-7},        {HR_OP_SOFTPLUS, 0, 80.0, 5e-7},
    {HR_OP_MISH, 0, 80.0, 1e-6},    {HR_OP_HARD_SIGMOID, 0, 2.5, 1e-6},    {HR_OP_HARD_SWISH, 0, 2.5, 1e-6},
    {HR_OP_LEAKY_RELU, 0, 80.0, 0},
};

START_TEST(every_value_keeps_its_digits)
{
    enum { POINTS = 4001 };
    static double x[POINTS], ours[POINTS], judged[POINTS];
    for (int k = 0; k < POINTS; k++) {
        const double share = (2.0 * k - (POINTS - 1)) / (POINTS - 1);
        x[k] = (double)(float)(activations[_i].reach * share * fabs(share)); // many near zero
    }
    run_both(activations[_i].op, activations[_i].flags, x, POINTS, ours, judged);
    for (int k = 0; k < POINTS; k++) {
        ck_assert_msg(fabs(ours[k] - judged[k]) <= activations[_i].distance * fabs(judged[k]),
                      "%s of %.9g is %.9g, judged %.9g", op_name(activations[_i].op), x[k], ours[k],
                      judged[k]);
    }
}
END_TEST

START_TEST(far_values_are_limits_and_not_a_number_stays)
{
    const double x[] = {(double)NAN, 1e30, -1e30, 200.0, -200.0};
    enum { POINTS = sizeof x / sizeof x[0] };
    double ours[POINTS], judged[POINTS];
    run_both(activations[_i].op, activations[_i].flags, x, POINTS, ours, judged);
    ck_assert(isnan(ours[0]));
    for (int k = 1; k < POINTS; k++) {
        ck_assert_msg(fabs(ours[k] - judged[k]) <= 1e-6 * fabs(judged[k]) + 1e-30, "%s of %g is %g",
                      op_name(activations[_i].op), x[k], ours[k]);
    }
}
END_TEST

// Around the ends of lanes, of the mask's blocks and of the kernel's pieces.
START_TEST(dropout_draws_the_judges_mask_at_every_length)
{
    static const int64_t lengths[] = {1, 15, 16, 17, 63, 64, 65, 1023, 1024, 1025, 2049, 5000};
    op_device cpu = op_device_open(&device_cpu, 3), judge = op_device_open(&device_reference, 1);
    step_io io = {.seed = 11, .update = 6, .first_sample = UINT32_MAX};
    op_trial t = op_trial_make(HR_OP_DROPOUT, (op_attr){.rate = 0.5, .salt = UINT64_MAX});
    op_trial_add_in(&t, HR_F32, DIMS(5, lengths[_i]));
    uint64_t state = 1;
    op_fill_nonzero(t.in[0], op_trial_in_count(&t, 0), &state);
    op_trial_infer_out(&t, 2);
    op_trial judged = op_trial_copy(&t, HR_F32);
    op_trial_run(&t, cpu, &io);
    op_trial_run(&judged, judge, &io);
    for (uint32_t k = 0; k < 2; k++) { // a factor of two rounds nothing
        ck_assert_mem_eq(t.out[k], judged.out[k], op_trial_out_count(&t, k) * sizeof *t.out[k]);
    }
    op_trial_deinit(&t);
    op_trial_deinit(&judged);
    op_device_close(&cpu);
    op_device_close(&judge);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cpu_sequence");
    TCase *all = tcase_create("promises");
    const int count = (int)(sizeof activations / sizeof activations[0]);
    tcase_add_loop_test(all, the_gradient_of_a_table_does_not_hang_on_the_threads, 0, 4);
    tcase_add_loop_test(all, every_value_keeps_its_digits, 0, count);
    tcase_add_loop_test(all, far_values_are_limits_and_not_a_number_stays, 0, count);
    tcase_add_loop_test(all, dropout_draws_the_judges_mask_at_every_length, 0, 12);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
