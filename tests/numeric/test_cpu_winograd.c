// SPDX-License-Identifier: Apache-2.0
// Convolutions that are multiplied in fewer products: the judge's values for every size and padding, the same
// bits for every number of threads, and the library's kernel where the workspace is limited.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/bf16_trial.h"
#include "numeric/op_harness.h"
#include "numeric/op_tolerance.h"

#define DIMS(...) ((const int64_t[OP_MAX_RANK]){__VA_ARGS__})

enum { TRIALS = 16, BACKWARD = 2 };

static const double distance = 1e-6;

// Sizes for which it pays, by chance odd, with and without padding; many enough that tiles and channels are
// cut.
static op_trial trial(uint64_t seed)
{
    uint64_t state = seed * 77 + 1;
    const int64_t c = 16 * op_random_int(&state, 2, 6), f = 16 * op_random_int(&state, 2, 9);
    const int64_t h = op_random_int(&state, 12, 17), w = op_random_int(&state, 12, 17);
    op_attr a = {.kernel_h = 3, .kernel_w = 3, .stride_h = 1, .stride_w = 1, .groups = 1};
    a.pad_top = (int32_t)op_random_int(&state, 0, 2);
    a.pad_bottom = (int32_t)op_random_int(&state, 0, 2);
    a.pad_left = (int32_t)op_random_int(&state, 0, 2);
    a.pad_right = (int32_t)op_random_int(&state, 0, 2);
    a.act = (int32_t[]){HR_ACT_NONE, HR_ACT_RELU, HR_ACT_RELU6}[seed % 3];
    op_trial t = op_trial_make(HR_OP_CONV2D, a);
    op_trial_add_in(&t, HR_F32, DIMS(op_random_int(&state, 1, 3), h, w, c));
    op_trial_add_in(&t, HR_F32, DIMS(3, 3, c, f));
    op_fill(t.in[0], op_trial_in_count(&t, 0), &state, -1.0, 1.0);
    op_fill(t.in[1], op_trial_in_count(&t, 1), &state, -0.3, 0.3);
    if (seed % 2 == 0) {
        op_trial_add_in(&t, HR_F32, DIMS(f));
        op_fill(t.in[2], (uint64_t)f, &state, -1.0, 1.0);
    }
    op_trial_infer_out(&t, 1);
    return t;
}

static void rounded(double *values, uint64_t count)
{
    for (uint64_t k = 0; k < count; k++) {
        values[k] = (double)(float)values[k];
    }
}

// Which implementation the device takes under a limit.
static target_answer answer(op_device device, const op_trial *t, uint64_t limit)
{
    hr_target target;
    hr_err err = {0};
    target_answer out = {0};
    device_cpu.target(device.context, &target);
    ck_assert_msg(target.ask(target.context, &t->query, limit, &out, &err) == HR_OK, "%s", err.sentence);
    return out;
}

// Runs the trial with `threads` and as the judge; every output is close.
static void judge(op_trial *t, uint32_t threads)
{
    op_device cpu = op_device_open(&device_cpu, threads), reference = op_device_open(&device_reference, 1);
    op_trial judged = op_trial_copy(t, HR_F64);
    ck_assert_str_eq(answer(cpu, t, UINT64_MAX).impl, "own winograd");
    op_trial_run(t, cpu, NULL);
    op_trial_run(&judged, reference, NULL);
    for (uint32_t k = 0; k < t->query.out_count; k++) {
        const double apart = op_distance(t->out[k], judged.out[k], op_trial_out_count(t, k));
        ck_assert_msg(apart <= distance, "output %u is %g apart", k, apart);
    }
    op_trial_deinit(&judged);
    op_device_close(&cpu);
    op_device_close(&reference);
}

static void same_bits(const op_trial *t, uint32_t threads)
{
    op_device one = op_device_open(&device_cpu, 1), team = op_device_open(&device_cpu, threads);
    op_trial alone = op_trial_copy(t, HR_F32), many = op_trial_copy(t, HR_F32);
    op_trial_run(&alone, one, NULL);
    op_trial_run(&many, team, NULL);
    ck_assert_mem_eq(alone.out[0], many.out[0], op_trial_out_count(t, 0) * sizeof *alone.out[0]);
    op_trial_deinit(&alone);
    op_trial_deinit(&many);
    op_device_close(&one);
    op_device_close(&team);
}

// The backward trial of gradient row `row`, 0 for the data, 1 for the weights.
static op_trial backward(uint64_t seed, uint32_t row)
{
    op_trial t = trial(seed);
    t.query.attr.act = HR_ACT_NONE;
    uint64_t state = seed;
    const uint64_t count = op_trial_out_count(&t, 0);
    double *dy = calloc(count, sizeof *dy);
    op_fill(dy, count, &state, -1.0, 1.0);
    rounded(dy, count);
    op_trial back = op_trial_backward(&t, row, dy), out = op_trial_copy(&back, HR_F32);
    free(dy);
    op_trial_deinit(&back);
    op_trial_deinit(&t);
    return out;
}

START_TEST(forward_has_the_judges_values)
{
    op_trial t = trial((uint64_t)_i);
    judge(&t, 1 + (uint32_t)_i % 3);
    op_trial_deinit(&t);
}
END_TEST

START_TEST(backward_has_the_judges_values)
{
    op_trial t = backward((uint64_t)_i / BACKWARD, (uint32_t)_i % BACKWARD);
    judge(&t, 1 + (uint32_t)_i % 3);
    op_trial_deinit(&t);
}
END_TEST

// ---- two bytes ------------------------------------------------------------------------------------------------

static const hr_dtype halves[] = {HR_F16, HR_BF16};
static const hr_op ops[] = {HR_OP_CONV2D, HR_OP_CONV2D_BWD_DATA, HR_OP_CONV2D_BWD_WEIGHTS};

enum { HALVES = 2, OPS = 3 };

static op_trial two_byte_trial(uint64_t seed, hr_op op, hr_dtype type)
{
    op_trial wide = op == HR_OP_CONV2D ? trial(seed) : backward(seed, op == HR_OP_CONV2D_BWD_WEIGHTS);
    half_round_inputs(&wide, (bf16_wide){0, 0}, type);
    op_trial t = half_trial(&wide, (bf16_wide){0, 0}, type);
    op_trial_deinit(&wide);
    return t;
}

// One rounding of each result lies between; where the library multiplies bfloat16, it is asked first.
START_TEST(two_bytes_have_the_judges_values)
{
    const hr_dtype type = halves[_i % HALVES];
    const hr_op op = ops[_i / HALVES % OPS];
    op_device cpu = op_device_open(&device_cpu, 1 + (uint32_t)_i % 3),
              reference = op_device_open(&device_reference, 1);
    op_trial t = two_byte_trial((uint64_t)_i, op, type), judged = op_trial_copy(&t, HR_F64);
    if (type == HR_F16) {
        ck_assert_str_eq(answer(cpu, &t, UINT64_MAX).impl, "own winograd");
    }
    op_trial_run(&t, cpu, NULL);
    op_trial_run(&judged, reference, NULL);
    for (uint32_t k = 0; k < t.query.out_count; k++) {
        const double apart = op_distance(t.out[k], judged.out[k], op_trial_out_count(&t, k));
        ck_assert_msg(apart <= op_tolerance(op, type), "%s: output %u is %g apart", op_name(op), k, apart);
    }
    op_trial_deinit(&t);
    op_trial_deinit(&judged);
    op_device_close(&cpu);
    op_device_close(&reference);
}
END_TEST

START_TEST(a_limit_takes_less_in_two_bytes_too)
{
    op_device cpu = op_device_open(&device_cpu, 2);
    op_trial t = two_byte_trial(3, ops[_i], HR_F16);
    const uint64_t needed = answer(cpu, &t, UINT64_MAX).workspace_bytes;
    const target_answer other = answer(cpu, &t, needed - 1);
    ck_assert_str_eq(other.impl, "own tiles");
    ck_assert_uint_lt(other.workspace_bytes, needed);
    op_trial_deinit(&t);
    op_device_close(&cpu);
}
END_TEST

START_TEST(bits_do_not_hang_on_the_threads)
{
    op_trial forward = trial((uint64_t)_i), data = backward((uint64_t)_i, 0),
             weights = backward((uint64_t)_i, 1);
    same_bits(&forward, 2 + (uint32_t)_i % 2);
    same_bits(&data, 2 + (uint32_t)_i % 2);
    same_bits(&weights, 2 + (uint32_t)_i % 2);
    op_trial_deinit(&forward);
    op_trial_deinit(&data);
    op_trial_deinit(&weights);
}
END_TEST

START_TEST(a_limit_takes_the_librarys_kernel)
{
    op_device cpu = op_device_open(&device_cpu, 2);
    op_trial t = trial(0);
    const uint64_t needed = answer(cpu, &t, UINT64_MAX).workspace_bytes;
    ck_assert_str_eq(answer(cpu, &t, needed).impl, "own winograd");
    const target_answer other = answer(cpu, &t, needed - 1);
    ck_assert_str_ne(other.impl, "own winograd");
    ck_assert_uint_lt(other.workspace_bytes, needed);
    op_trial_deinit(&t);
    op_device_close(&cpu);
}
END_TEST

// Where a tile of 2x2 has no more to share than the padding leaves out, nothing is gained.
START_TEST(tiny_images_and_few_channels_are_left_alone)
{
    static const int64_t dims[][4] = {{64, 2, 2, 64}, {1, 8, 8, 64}, {64, 3, 3, 64}, {16, 16, 16, 24}};
    op_device cpu = op_device_open(&device_cpu, 1);
    op_attr a = {.kernel_h = 3, .kernel_w = 3, .stride_h = 1, .stride_w = 1, .groups = 1};
    a.pad_top = a.pad_left = a.pad_bottom = a.pad_right = 1;
    const int64_t *d = dims[_i];
    op_trial t = op_trial_make(HR_OP_CONV2D, a);
    op_trial_add_in(&t, HR_F32, DIMS(d[0], d[1], d[2], d[3]));
    op_trial_add_in(&t, HR_F32, DIMS(3, 3, d[3], 64));
    op_trial_infer_out(&t, 1);
    ck_assert_str_ne(answer(cpu, &t, UINT64_MAX).impl, "own winograd");
    op_trial_deinit(&t);
    op_device_close(&cpu);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cpu winograd");
    TCase *c = tcase_create("cpu winograd");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, forward_has_the_judges_values, 0, TRIALS);
    tcase_add_loop_test(c, backward_has_the_judges_values, 0, BACKWARD * TRIALS);
    tcase_add_loop_test(c, bits_do_not_hang_on_the_threads, 0, TRIALS / 4);
    tcase_add_test(c, a_limit_takes_the_librarys_kernel);
    tcase_add_loop_test(c, two_bytes_have_the_judges_values, 0, HALVES * TRIALS);
    tcase_add_loop_test(c, a_limit_takes_less_in_two_bytes_too, 0, OPS);
    tcase_add_loop_test(c, tiny_images_and_few_channels_are_left_alone, 0, 4);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
