// SPDX-License-Identifier: Apache-2.0
// What the cpu device computes in bfloat16, against the judge in float64 on the same rounded operands: one rounding of
// each result is all that may lie between them, and a product's is that of its sum.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/event.h"

#include "base/half.h"
#include "numeric/bf16_trial.h"
#include "numeric/op_cases.h"
#include "numeric/op_harness.h"

// Rounding to eight digits is off by 2^-9 at most, by about 0.0017 in the mean; results that are stored between two
// roundings (a mean's spread) may lie two apart.
#define FARTHEST 4e-3

enum { SEEDS = 24, SIZE = 6, LARGE = 18 };

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

static void compare(const op_trial *t, const char *side, uint32_t k, const op_operand *operand,
                    const double *ours, const double *judged, uint64_t count, uint64_t seed)
{
    const double distance = op_distance(ours, judged, count);
    const double most = bf16_is_real(operand) ? FARTHEST : 0;
    ck_assert_msg(distance <= most, "%s, seed %u: %s %u is %g from the judge's", op_name((hr_op)t->query.op),
                  (unsigned)seed, side, k, distance);
}

// Where a result may take the place of an operand, it has the same bits there.
static void check_in_place(const op_trial *rounded, bf16_wide w, const op_trial *done, step_io *io)
{
    if (!op_trial_may_share(rounded)) {
        return;
    }
    op_trial shared = bf16_trial(rounded, w);
    op_trial_run_in_place(&shared, cpu, io);
    for (uint32_t k = 0; k < shared.query.out_count; k++) {
        ck_assert_mem_eq(shared.out[k], done->out[k], op_trial_out_count(done, k) * sizeof *done->out[k]);
    }
    op_trial_deinit(&shared);
}

// Runs `t` on the judge and, where the cpu has a kernel, on both. True when it had one.
static bool run_both(op_trial *t, bf16_wide w, uint64_t seed)
{
    step_io io = {.learning_rate = 0.01, .update = 3, .seed = seed, .first_sample = 1 + (seed << 30)};
    bf16_round_inputs(t, w);
    op_trial half = bf16_trial(t, w);
    const bool native = bf16_is_native(cpu, &half.query);
    if (native) {
        op_trial_run(&half, cpu, &io);
        check_in_place(t, w, &half, &io);
    }
    op_trial_run(t, judge, &io);
    for (uint32_t k = 0; native && k < t->query.in_count; k++) {
        compare(t, "input", k, &t->query.in[k], half.in[k], t->in[k], op_trial_in_count(t, k), seed);
    }
    for (uint32_t k = 0; native && k < t->query.out_count; k++) {
        compare(t, "output", k, &t->query.out[k], half.out[k], t->out[k], op_trial_out_count(t, k), seed);
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
        if (op_trial_has_gradient(forward, g)) {
            op_trial backward = op_trial_backward(forward, g, dy);
            native += run_both(&backward, bf16_wide_of_backward(&forward->query, &row->grad[g]), seed);
            op_trial_deinit(&backward);
        }
    }
    free(dy);
    return native;
}

// `multiplies`: only where the processor multiplies bfloat16.
static const struct {
    hr_op op;
    bool multiplies;
} operations[] = {
    {HR_OP_CONV2D, true},
    {HR_OP_DENSE, true},
    {HR_OP_BATCH_NORM, true},
    {HR_OP_BATCH_NORM_EVAL, true},
    {HR_OP_RELU, false},
    {HR_OP_ADD, false},
    {HR_OP_MAX_POOL, true},
    {HR_OP_GLOBAL_AVG_POOL, true},
    {HR_OP_LAYER_NORM, false},
    {HR_OP_RMS_NORM, false},
    {HR_OP_GELU, false},
    {HR_OP_SILU, false},
    {HR_OP_TANH, false},
    {HR_OP_SIGMOID, false},
    {HR_OP_SOFTMAX, false},
    {HR_OP_MULTIPLY, false},
    {HR_OP_SCALE, false},
    {HR_OP_RELU6, false},
    {HR_OP_ADD_BROADCAST, false},
    {HR_OP_BROADCAST, false},
    {HR_OP_ATTENTION, false},
    {HR_OP_SGD, false},
    {HR_OP_MOMENTUM, false},
    {HR_OP_RMSPROP, false},
    {HR_OP_ADAM, false},
    {HR_OP_LION, false},
    {HR_OP_EMA, false},
    {HR_OP_ACCUMULATE, false},
    {HR_OP_CLIP, false},
    {HR_OP_REDUCE, false},
    {HR_OP_DROPOUT, false},
    {HR_OP_EMBEDDING, false},
    {HR_OP_CONCAT, false},
    {HR_OP_STACK, false},
    {HR_OP_SLICE, false},
    {HR_OP_MATMUL, true},
    {HR_OP_ATTENTION_SCORES, true},
    {HR_OP_ATTENTION_VALUES, true},
    {HR_OP_LSTM, true},
    {HR_OP_CONV2D_TRANSPOSE, true},
};

START_TEST(bfloat16_agrees_with_the_judge)
{
    const hr_op op = operations[_i].op;
    uint32_t forward_native = 0, backward_native = 0;
    const uint64_t seeds = operations[_i].multiplies ? SEEDS / 2 : SEEDS; // each makes kernels of its own
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        op_trial t = op_case(op, seed, seed % 3 == 0 && !operations[_i].multiplies ? LARGE : SIZE);
        forward_native += run_both(&t, bf16_wide_of(op), seed);
        backward_native += run_backward(&t, seed);
        op_trial_deinit(&t);
    }
    char isa[64];
    cpu.ops->isa(cpu.context, isa, sizeof isa);
    const bool multiplies = strstr(isa, "bf16") != NULL || strstr(isa, "amx") != NULL;
    const bool expected = multiplies || !operations[_i].multiplies;
    ck_assert_msg((forward_native > 0) == expected, "%u of %s ran natively on %s", forward_native,
                  op_name(op), isa);
    ck_assert(!expected || op_row_of(op)->grad_count == 0 || backward_native > 0);
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
