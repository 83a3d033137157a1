// SPDX-License-Identifier: Apache-2.0
// What the cpu device computes in float16 and bfloat16, against the judge in float64 on the same rounded operands: one
// rounding of each result is all that may lie between them, and a product's is that of its sum.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/event.h"

#include "base/half.h"
#include "numeric/bf16_trial.h"
#include "numeric/op_cases.h"
#include "numeric/op_harness.h"
#include "numeric/op_tolerance.h"

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

// Of one type, at one seed.
typedef struct pass {
    hr_dtype type;
    uint64_t seed;
} pass;

static void compare(const op_trial *t, const char *side, uint32_t k, const op_operand *operand,
                    const double *ours, const double *judged, uint64_t count, pass p)
{
    const double distance = op_distance(ours, judged, count);
    const double most = bf16_is_real(operand) ? op_tolerance((hr_op)t->query.op, p.type) : 0;
    ck_assert_msg(distance <= most, "%s in %s, seed %u: %s %u is %g from the judge's",
                  op_name((hr_op)t->query.op), dtype_name(p.type), (unsigned)p.seed, side, k, distance);
}

// Where a result may take the place of an operand, it has the same bits there.
static void check_in_place(const op_trial *rounded, bf16_wide w, hr_dtype type, const op_trial *done,
                           step_io *io)
{
    if (!op_trial_may_share(rounded)) {
        return;
    }
    op_trial shared = half_trial(rounded, w, type);
    op_trial_run_in_place(&shared, cpu, io);
    for (uint32_t k = 0; k < shared.query.out_count; k++) {
        ck_assert_mem_eq(shared.out[k], done->out[k], op_trial_out_count(done, k) * sizeof *done->out[k]);
    }
    op_trial_deinit(&shared);
}

// Runs `t` on the judge and on the cpu, which has a kernel for every type.
static void run_both(op_trial *t, bf16_wide w, pass p)
{
    step_io io = {.learning_rate = 0.01, .update = 3, .seed = p.seed, .first_sample = 1 + (p.seed << 30)};
    half_round_inputs(t, w, p.type);
    op_trial half = half_trial(t, w, p.type);
    op_trial_run(&half, cpu, &io);
    check_in_place(t, w, p.type, &half, &io);
    op_trial_run(t, judge, &io);
    for (uint32_t k = 0; k < t->query.in_count; k++) {
        compare(t, "input", k, &t->query.in[k], half.in[k], t->in[k], op_trial_in_count(t, k), p);
    }
    for (uint32_t k = 0; k < t->query.out_count; k++) {
        compare(t, "output", k, &t->query.out[k], half.out[k], t->out[k], op_trial_out_count(t, k), p);
    }
    op_trial_deinit(&half);
}

static void run_backward(const op_trial *forward, pass p)
{
    const op_row *row = op_row_of((hr_op)forward->query.op);
    uint64_t state = p.seed + 77;
    double *dy = calloc(op_trial_out_count(forward, 0), sizeof *dy);
    ck_assert_ptr_nonnull(dy);
    op_fill(dy, op_trial_out_count(forward, 0), &state, -1.0, 1.0);
    for (uint32_t g = 0; g < row->grad_count; g++) {
        if (op_trial_has_gradient(forward, g)) {
            op_trial backward = op_trial_backward(forward, g, dy);
            run_both(&backward, bf16_wide_of_backward(&forward->query, &row->grad[g]), p);
            op_trial_deinit(&backward);
        }
    }
    free(dy);
}

static const hr_op operations[] = {
    HR_OP_CONV2D,
    HR_OP_DENSE,
    HR_OP_BATCH_NORM,
    HR_OP_BATCH_NORM_EVAL,
    HR_OP_RELU,
    HR_OP_ADD,
    HR_OP_MAX_POOL,
    HR_OP_GLOBAL_AVG_POOL,
    HR_OP_SOFTMAX_XENT_STREAM,
    HR_OP_SOFTMAX_XENT_GRADIENT,
    HR_OP_ACCURACY,
    HR_OP_LAYER_NORM,
    HR_OP_RMS_NORM,
    HR_OP_GELU,
    HR_OP_SILU,
    HR_OP_TANH,
    HR_OP_SIGMOID,
    HR_OP_HARD_SIGMOID,
    HR_OP_HARD_SWISH,
    HR_OP_LEAKY_RELU,
    HR_OP_SOFTPLUS,
    HR_OP_MISH,
    HR_OP_SOFTMAX,
    HR_OP_MULTIPLY,
    HR_OP_MULTIPLY_BROADCAST,
    HR_OP_SCALE,
    HR_OP_RELU6,
    HR_OP_ADD_BROADCAST,
    HR_OP_BROADCAST,
    HR_OP_ATTENTION,
    HR_OP_ROTARY,
    HR_OP_GROUP_NORM,
    HR_OP_RELATIVE_BIAS,
    HR_OP_SGD,
    HR_OP_MOMENTUM,
    HR_OP_RMSPROP,
    HR_OP_ADAM,
    HR_OP_LION,
    HR_OP_EMA,
    HR_OP_PRUNE,
    HR_OP_PRUNE_CHANNELS,
    HR_OP_ACCUMULATE,
    HR_OP_CLIP,
    HR_OP_REDUCE,
    HR_OP_DROPOUT,
    HR_OP_DROP_PATH,
    HR_OP_FAKE_QUANT_WEIGHTS,
    HR_OP_DEQUANTIZE,
    HR_OP_FAKE_QUANT,
    HR_OP_TRACK_RANGE,
    HR_OP_EMBEDDING,
    HR_OP_CONCAT,
    HR_OP_STACK,
    HR_OP_SLICE,
    HR_OP_MATMUL,
    HR_OP_ATTENTION_SCORES,
    HR_OP_ATTENTION_VALUES,
    HR_OP_LSTM,
    HR_OP_GRU,
    HR_OP_CONV2D_TRANSPOSE,
    HR_OP_UPSAMPLE,
    HR_OP_RESIZE,
    HR_OP_ADAPTIVE_POOL,
    HR_OP_PERMUTE,
    HR_OP_ROLL,
    HR_OP_ADAFACTOR,
    HR_OP_ADAFACTOR_KERAS,
    HR_OP_ADAM8BIT,
    HR_OP_SQUARE_SUM,
    HR_OP_AVG_POOL,
    HR_OP_ZERO_PAD,
    HR_OP_BATCH_NORM_APPLY,
    HR_OP_ROUTE,
    HR_OP_BALANCE,
    HR_OP_DISPATCH,
    HR_OP_GATHER,
    HR_OP_EXPERT_DENSE,
};

static const hr_dtype types[] = {HR_F16, HR_BF16};

enum { TYPES = sizeof types / sizeof *types };

// Where the library multiplies each trial makes kernels of its own: fewer.
static bool is_the_librarys(hr_op op, hr_dtype type)
{
    static const hr_op multiply[] = {HR_OP_CONV2D,
                                     HR_OP_DENSE,
                                     HR_OP_MATMUL,
                                     HR_OP_ATTENTION_SCORES,
                                     HR_OP_ATTENTION_VALUES,
                                     HR_OP_LSTM,
                                     HR_OP_CONV2D_TRANSPOSE,
                                     HR_OP_EXPERT_DENSE,
                                     HR_OP_GRU};
    for (size_t k = 0; k < sizeof multiply / sizeof *multiply; k++) {
        if (multiply[k] == op) {
            return type == HR_BF16;
        }
    }
    return false;
}

START_TEST(two_bytes_agree_with_the_judge)
{
    const hr_op op = operations[_i / TYPES];
    const hr_dtype type = types[_i % TYPES];
    const bool library = is_the_librarys(op, type);
    for (uint64_t seed = 1; seed <= (library ? SEEDS / 2 : SEEDS); seed++) {
        op_trial t = op_case(op, seed, seed % 3 == 0 && !library ? LARGE : SIZE);
        run_both(&t, bf16_wide_of(op), (pass){type, seed});
        run_backward(&t, (pass){type, seed});
        op_trial_deinit(&t);
    }
}
END_TEST

static op_trial padded_case(int64_t channels, int32_t padding, uint64_t seed)
{
    const op_attr a = {.kernel_h = 3,
                       .kernel_w = 3,
                       .stride_h = 1,
                       .stride_w = 1,
                       .pad_top = padding,
                       .pad_bottom = padding,
                       .pad_left = 1,
                       .pad_right = 1,
                       .groups = (int32_t)channels};
    op_trial t = op_trial_make(HR_OP_CONV2D, a);
    op_trial_add_in(&t, HR_F32, (const int64_t[OP_MAX_RANK]){1, 16, 1280 / channels, channels});
    op_trial_add_in(&t, HR_F32, (const int64_t[OP_MAX_RANK]){3, 3, 1, channels});
    op_fill(t.in[0], op_trial_in_count(&t, 0), &seed, 0.5, 1.0);
    op_fill(t.in[1], op_trial_in_count(&t, 1), &seed, 0.5, 1.0);
    op_trial_infer_out(&t, 1);
    return t;
}

// Images of more than one tile, whose last windows see padding alone, wherever the last tile begins; of many channels and
// of few.
START_TEST(windows_in_padding_alone_see_zeros)
{
    static const int64_t channels[] = {32, 8};
    for (int32_t padding = 6; padding <= 9; padding++) {
        const pass p = {types[_i % TYPES], (uint64_t)padding};
        op_trial t = padded_case(channels[_i / TYPES], padding, p.seed);
        run_both(&t, bf16_wide_of(HR_OP_CONV2D), p);
        run_backward(&t, p);
        op_trial_deinit(&t);
    }
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
    Suite *suite = suite_create("cpu_half");
    TCase *tc = tcase_create("against the judge");
    tcase_add_checked_fixture(tc, open_devices, close_devices);
    tcase_add_loop_test(tc, two_bytes_agree_with_the_judge, 0,
                        (int)(sizeof operations / sizeof *operations) * TYPES);
    tcase_add_loop_test(tc, windows_in_padding_alone_see_zeros, 0, 2 * TYPES);
    tcase_add_loop_test(tc, casts_round_as_the_portable_ones, 0, 2);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
