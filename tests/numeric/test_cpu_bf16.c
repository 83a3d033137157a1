// SPDX-License-Identifier: Apache-2.0
// What the cpu device computes in bfloat16, against the judge in float64 on the same rounded operands: one rounding of
// each result is all that may lie between them, and a product's is that of its sum.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/event.h"

#include "base/half.h"
#include "numeric/op_cases.h"
#include "numeric/op_harness.h"

// Rounding to eight digits is off by 2^-9 at most, by about 0.0017 in the mean; results that are stored between two
// roundings (a mean's spread) may lie two apart.
#define FARTHEST 4e-3

enum { SEEDS = 24, SIZE = 6 };

static op_device cpu, judge;

static void open_devices(void)
{
    cpu = op_device_open(&device_cpu, 2);
    judge = op_device_open(&device_reference, 1);
}

static void close_devices(void)
{
    op_device_close(&cpu);
    op_device_close(&judge);
}

static void round_values(double *values, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        values[i] = (double)float_of_bf16(bf16_of_float((float)values[i]));
    }
}

static bool is_real(const op_operand *operand)
{
    return dtype_is_real((hr_dtype)operand->dtype);
}

// Of a batch normalisation everything but the images is float32.
static bool is_statistic(const op_query *q, bool is_out, uint32_t k)
{
    if (q->op == HR_OP_BATCH_NORM || q->op == HR_OP_BATCH_NORM_EVAL) {
        return k > 0;
    }
    return q->op == HR_OP_BATCH_NORM_BWD && (is_out ? k > 0 : k > 1);
}

static op_trial in_bf16(const op_trial *t)
{
    op_trial half = op_trial_copy(t, HR_BF16);
    for (uint32_t k = 0; k < half.query.in_count; k++) {
        if (is_real(&half.query.in[k]) && is_statistic(&half.query, false, k)) {
            half.query.in[k].dtype = HR_F32;
        }
    }
    for (uint32_t k = 0; k < half.query.out_count; k++) {
        if (is_real(&half.query.out[k]) && is_statistic(&half.query, true, k)) {
            half.query.out[k].dtype = HR_F32;
        }
    }
    return half;
}

static bool is_native(const op_query *q)
{
    hr_target target;
    target_answer answer;
    hr_err err = {0};
    cpu.ops->target(cpu.context, &target);
    ck_assert_msg(target_ask(&target, q, UINT64_MAX, &answer, &err) == HR_OK, "%s", err.sentence);
    return !answer.widen;
}

// Runs `t` on the judge and, where the cpu has a kernel, on both. True when it had one.
static bool run_both(op_trial *t, uint64_t seed)
{
    for (uint32_t k = 0; k < t->query.in_count; k++) {
        if (is_real(&t->query.in[k]) && !is_statistic(&t->query, false, k)) {
            round_values(t->in[k], op_trial_in_count(t, k));
        }
    }
    op_trial half = in_bf16(t);
    const bool native = is_native(&half.query);
    op_trial_run(t, judge, NULL);
    if (native) {
        op_trial_run(&half, cpu, NULL);
    }
    for (uint32_t k = 0; native && k < t->query.out_count; k++) {
        const double distance = op_distance(half.out[k], t->out[k], op_trial_out_count(t, k));
        const double most = is_real(&t->query.out[k]) ? FARTHEST : 0;
        ck_assert_msg(distance <= most, "%s, seed %u: output %u is %g from the judge's",
                      op_name((hr_op)t->query.op), (unsigned)seed, k, distance);
    }
    op_trial_deinit(&half);
    return native;
}

static uint32_t run_backward(const op_trial *forward, uint64_t seed)
{
    const op_row *row = op_row_of((hr_op)forward->query.op);
    uint32_t native = 0;
    uint64_t state = seed + 77;
    double *dy = calloc(op_trial_out_count(forward, 0), sizeof *dy);
    ck_assert_ptr_nonnull(dy);
    op_fill(dy, op_trial_out_count(forward, 0), &state, -1.0, 1.0);
    for (uint32_t g = 0; g < row->grad_count; g++) {
        if (row->grad[g].when_outputs == 0 || row->grad[g].when_outputs == forward->query.out_count) {
            op_trial backward = op_trial_backward(forward, g, dy);
            native += run_both(&backward, seed);
            op_trial_deinit(&backward);
        }
    }
    free(dy);
    return native;
}

static const hr_op operations[] = {HR_OP_CONV2D, HR_OP_DENSE, HR_OP_BATCH_NORM, HR_OP_BATCH_NORM_EVAL,
                                   HR_OP_RELU,   HR_OP_ADD,   HR_OP_MAX_POOL,   HR_OP_GLOBAL_AVG_POOL};

START_TEST(bfloat16_agrees_with_the_judge)
{
    const hr_op op = operations[_i];
    uint32_t forward_native = 0, backward_native = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        op_trial t = op_case(op, seed, SIZE);
        forward_native += run_both(&t, seed);
        backward_native += run_backward(&t, seed);
        op_trial_deinit(&t);
    }
    char isa[64];
    cpu.ops->isa(cpu.context, isa, sizeof isa);
    const bool multiplies = strstr(isa, "bf16") != NULL || strstr(isa, "amx") != NULL;
    ck_assert_msg((forward_native > 0) == multiplies, "%u of %s ran natively on %s", forward_native,
                  op_name(op), isa);
    ck_assert(!multiplies || op_row_of(op)->grad_count == 0 || backward_native > 0);
}
END_TEST

// Every finite float16 and bfloat16 number and what lies between two of them, on the workers' vector code.
static op_trial cast_trial(hr_dtype from, hr_dtype to, int64_t count)
{
    op_trial t = op_trial_make(HR_OP_CAST, (op_attr){0});
    op_trial_add_in(&t, from, (const int64_t[OP_MAX_RANK]){count});
    op_trial_add_out(&t, to, (const int64_t[OP_MAX_RANK]){count});
    return t;
}

START_TEST(casts_round_as_the_portable_ones)
{
    static const hr_dtype halves[] = {HR_F16, HR_BF16};
    enum { COUNT = 40000 };
    uint64_t state = 5;
    op_trial t = cast_trial(HR_F32, halves[_i], COUNT);
    for (uint32_t k = 0; k < COUNT; k++) {
        const double exponent = floor(op_random(&state, -30, 20));
        t.in[0][k] = (double)(float)(op_random(&state, -2, 2) * exp2(exponent));
    }
    op_trial_run(&t, cpu, NULL);
    for (uint32_t k = 0; k < COUNT; k++) {
        const float x = (float)t.in[0][k];
        const float expected =
            halves[_i] == HR_F16 ? float_of_f16(f16_of_float(x)) : float_of_bf16(bf16_of_float(x));
        ck_assert_msg((float)t.out[0][k] == expected, "%.9g became %.9g", (double)x, t.out[0][k]);
    }
    op_trial back = cast_trial(halves[_i], HR_F32, COUNT);
    memcpy(back.in[0], t.out[0], COUNT * sizeof *back.in[0]);
    op_trial_run(&back, cpu, NULL);
    ck_assert_mem_eq(back.out[0], t.out[0], COUNT * sizeof *t.out[0]); // subnormals come back too
    op_trial_deinit(&t);
    op_trial_deinit(&back);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cpu_bf16");
    TCase *tc = tcase_create("against the judge");
    tcase_add_checked_fixture(tc, open_devices, close_devices);
    tcase_add_loop_test(tc, bfloat16_agrees_with_the_judge, 0, (int)(sizeof operations / sizeof *operations));
    tcase_add_loop_test(tc, casts_round_as_the_portable_ones, 0, 2);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
