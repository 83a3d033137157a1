// SPDX-License-Identifier: Apache-2.0
// Attention on the cpu device where the random cases of test_ops_cpu do not reach: heads as wide and sequences as
// long as real models have, what a mask hides, extreme scores, the same bits on any number of threads, scratch that
// does not grow with the sequence; and the exponential below it.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device_cpu/exp.h"
#include "numeric/op_harness.h"

#define DIMS(...) ((const int64_t[OP_MAX_RANK]){__VA_ARGS__})

static const double tolerance = 2e-6; // of a tensor's norm

// ---- the exponential --------------------------------------------------------------------------------------

CPU_HOT static void exponentials(float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i += CPU_LANES) {
        f32x16 x = F32X16(values + i);
        exp_lanes(&x);
        F32X16W(values + i) = x;
    }
}

static double ulps_from(float got, double exact)
{
    int exponent = 0;
    (void)frexp(exact, &exponent);
    return fabs((double)got - exact) / ldexp(1.0, exponent - 24);
}

START_TEST(an_exponential_is_two_units_away_at_most)
{
    const double highest = 1.0, lowest = -87.3;
    uint64_t state = 1;
    float x[1024], y[1024];
    double worst = 0.0;
    for (int turn = 0; turn < 2000; turn++) {
        for (int i = 0; i < 1024; i++) { // near zero as densely as far from it
            const double at = turn % 2 == 0 ? op_random(&state, lowest, highest)
                                            : -exp(op_random(&state, -20.0, log(-lowest)));
            x[i] = y[i] = (float)at;
        }
        exponentials(y, 1024);
        for (int i = 0; i < 1024; i++) {
            const double ulps = ulps_from(y[i], exp((double)x[i]));
            worst = ulps > worst ? ulps : worst;
        }
    }
    ck_assert_msg(worst <= 2.0, "%g units", worst);
}
END_TEST

START_TEST(an_exponential_of_what_is_no_score)
{
    float y[CPU_LANES] = {0.0f, -0.0f, -INFINITY, NAN, -88.0f, -1000.0f, -3e38f};
    exponentials(y, CPU_LANES);
    ck_assert(y[0] == 1.0f && y[1] == 1.0f);
    ck_assert(y[2] == 0.0f && y[4] == 0.0f && y[5] == 0.0f && y[6] == 0.0f);
    ck_assert(isnan(y[3]));
}
END_TEST

// ---- trials -----------------------------------------------------------------------------------------------

typedef struct lengths {
    int64_t samples, queries, keys;
    int32_t heads;
    int64_t features;
} lengths;

static op_trial attention(lengths l, bool causal, double reach, uint64_t *state)
{
    const int64_t width = l.heads * l.features;
    op_trial t =
        op_trial_make(HR_OP_ATTENTION, (op_attr){.heads = l.heads, .flags = causal ? OP_FLAG_CAUSAL : 0});
    for (uint32_t k = 0; k < 3; k++) {
        op_trial_add_in(&t, HR_F32, DIMS(l.samples, k == 0 ? l.queries : l.keys, width));
        op_fill(t.in[k], op_trial_in_count(&t, k), state, k < 2 ? -reach : -1.0, k < 2 ? reach : 1.0);
    }
    op_trial_infer_out(&t, 2);
    return t;
}

static double *random_gradient(const op_trial *t, uint64_t *state)
{
    double *dy = calloc(op_trial_out_count(t, 0), sizeof *dy);
    ck_assert_ptr_nonnull(dy);
    op_fill(dy, op_trial_out_count(t, 0), state, -1.0, 1.0);
    return dy;
}

static void ck_near(const char *what, const double *ours, const double *judged, uint64_t count)
{
    const double distance = op_distance(ours, judged, count);
    ck_assert_msg(distance <= tolerance, "%s is %g away", what, distance);
}

// ---- dropout ----------------------------------------------------------------------------------------------

// scores → softmax → dropout → values, by the judge.
static void materialise(const op_trial *streaming, op_device judge, step_io *io, double *y)
{
    const op_query *q = &streaming->query;
    const op_attr heads = {.heads = q->attr.heads};
    op_trial scores = op_trial_make(HR_OP_ATTENTION_SCORES, heads);
    op_trial softmax = op_trial_make(HR_OP_SOFTMAX, (op_attr){.flags = q->attr.flags});
    op_trial dropout = op_trial_make(HR_OP_DROPOUT, (op_attr){.rate = q->attr.rate, .salt = q->attr.salt});
    op_trial values = op_trial_make(HR_OP_ATTENTION_VALUES, heads);
    op_trial *const chain[] = {&scores, &softmax, &dropout, &values};
    for (int k = 0; k < 4; k++) {
        const op_operand *from = k == 0 ? &q->in[0] : &chain[k - 1]->query.out[0];
        const double *value = k == 0 ? streaming->in[0] : chain[k - 1]->out[0];
        op_trial_add_in(chain[k], HR_F64, from->shape.dim);
        memcpy(chain[k]->in[0], value, op_trial_in_count(chain[k], 0) * sizeof *value);
        if (k == 0 || k == 3) {
            const uint32_t other = k == 0 ? 1 : 2;
            op_trial_add_in(chain[k], HR_F64, q->in[other].shape.dim);
            memcpy(chain[k]->in[1], streaming->in[other], op_trial_in_count(chain[k], 1) * sizeof *value);
        }
        op_trial_infer_out(chain[k], 1);
        op_trial_run(chain[k], judge, io);
    }
    memcpy(y, values.out[0], op_trial_out_count(&values, 0) * sizeof *y);
    for (int k = 0; k < 4; k++) {
        op_trial_deinit(chain[k]);
    }
}

// One mask: the tensor of weights is there in one form and in the other not.
START_TEST(dropped_weights_are_those_of_the_materialised_form)
{
    static const lengths cases[] = {
        {2, 64, 64, 3, 16}, {3, 65, 70, 2, 8}, {1, 130, 63, 4, 20}, {2, 7, 201, 1, 5}};
    uint64_t state = 7 + (uint64_t)_i;
    step_io io = {.update = 5, .seed = 11, .first_sample = 3 + (UINT64_C(1) << 33)};
    op_device cpu = op_device_open(&device_cpu, 2), judge = op_device_open(&device_reference, 1);
    op_trial ours = attention(cases[_i / 2], _i % 2 == 1, 2.0, &state);
    ours.query.attr.rate = 0.3;
    ours.query.attr.salt = 99;
    op_trial judged = op_trial_copy(&ours, HR_F64);
    const uint64_t count = op_trial_out_count(&ours, 0);
    double *y = calloc(count, sizeof *y);
    ck_assert_ptr_nonnull(y);
    materialise(&ours, judge, &io, y);
    op_trial_run(&judged, judge, &io);
    op_trial_run(&ours, cpu, &io);
    ck_assert_double_le(op_distance(judged.out[0], y, count), 1e-12);
    ck_near("y", ours.out[0], y, count);
    free(y);
    op_trial_deinit(&judged);
    op_trial_deinit(&ours);
    op_device_close(&cpu);
    op_device_close(&judge);
}
END_TEST

// ---- lengths of models ------------------------------------------------------------------------------------

static const lengths models[] = {{1, 64, 64, 2, 64},   {1, 65, 65, 1, 64},   {2, 128, 128, 3, 64},
                                 {1, 200, 197, 2, 80}, {1, 63, 130, 1, 128}, {1, 257, 70, 2, 24},
                                 {3, 1, 1, 1, 1},      {1, 300, 300, 1, 100}};

enum { MODELS = sizeof models / sizeof models[0] };

// The streaming form against the judge's, whose loops know no tiles.
START_TEST(attention_of_models_is_the_judges)
{
    uint64_t state = (uint64_t)_i;
    op_device cpu = op_device_open(&device_cpu, 2), judge = op_device_open(&device_reference, 1);
    op_trial ours = attention(models[_i / 2], _i % 2 == 1, 3.0, &state);
    op_trial judged = op_trial_copy(&ours, HR_F32);
    op_trial_run(&ours, cpu, NULL);
    op_trial_run(&judged, judge, NULL);
    ck_near("y", ours.out[0], judged.out[0], op_trial_out_count(&ours, 0));
    ck_near("log-sum-exp", ours.out[1], judged.out[1], op_trial_out_count(&ours, 1));
    double *dy = random_gradient(&ours, &state);
    op_trial ours_bwd = op_trial_backward(&judged, 0, dy), judged_bwd = op_trial_copy(&ours_bwd, HR_F32);
    op_trial_run(&ours_bwd, cpu, NULL);
    op_trial_run(&judged_bwd, judge, NULL);
    const bool moves = models[_i / 2].keys > 1; // the weight of one key is 1
    for (uint32_t k = moves ? 0 : 2; k < 3; k++) {
        ck_near("a gradient", ours_bwd.out[k], judged_bwd.out[k], op_trial_out_count(&ours_bwd, k));
    }
    free(dy);
    op_trial_deinit(&ours);
    op_trial_deinit(&judged);
    op_trial_deinit(&ours_bwd);
    op_trial_deinit(&judged_bwd);
    op_device_close(&cpu);
    op_device_close(&judge);
}
END_TEST

static op_trial run_of(hr_op op, op_attr attr, const op_trial *a, bool a_is_out, const op_trial *b,
                       uint32_t b_in, op_device device)
{
    op_trial t = op_trial_make(op, attr);
    const op_operand *from = a_is_out ? &a->query.out[0] : &a->query.in[0];
    op_trial_add_in(&t, HR_F32, from->shape.dim);
    memcpy(t.in[0], a_is_out ? a->out[0] : a->in[0], op_trial_in_count(&t, 0) * sizeof(double));
    if (b != NULL) {
        op_trial_add_in(&t, HR_F32, b->query.in[b_in].shape.dim);
        memcpy(t.in[1], b->in[b_in], op_trial_in_count(&t, 1) * sizeof(double));
    }
    op_trial_infer_out(&t, 1);
    op_trial_run(&t, device, NULL);
    return t;
}

START_TEST(streaming_is_materialised_attention)
{
    uint64_t state = (uint64_t)_i;
    op_device cpu = op_device_open(&device_cpu, 2);
    op_trial t = attention(models[_i / 2], _i % 2 == 1, 2.0, &state);
    op_trial_run(&t, cpu, NULL);
    op_trial scores = run_of(HR_OP_ATTENTION_SCORES, t.query.attr, &t, false, &t, 1, cpu);
    op_trial weights = run_of(HR_OP_SOFTMAX, t.query.attr, &scores, true, NULL, 0, cpu);
    op_trial values = run_of(HR_OP_ATTENTION_VALUES, t.query.attr, &weights, true, &t, 2, cpu);
    ck_near("y", t.out[0], values.out[0], op_trial_out_count(&t, 0));
    op_trial_deinit(&t);
    op_trial_deinit(&scores);
    op_trial_deinit(&weights);
    op_trial_deinit(&values);
    op_device_close(&cpu);
}
END_TEST

// ---- masks, extremes, threads, scratch -----------------------------------------------------------------------

static const lengths masked = {1, 150, 150, 2, 20};

// Whatever keys (not-a-number included) and values stand behind a position change no bit of what it sees, and a
// key that is no number reaches all that see it.
START_TEST(a_mask_hides_the_future)
{
    uint64_t state = 5;
    const int64_t seen = op_random_int(&state, 1, 149), width = masked.heads * masked.features;
    op_device cpu = op_device_open(&device_cpu, 2);
    op_trial t = attention(masked, true, 2.0, &state);
    op_trial other = op_trial_copy(&t, HR_F32);
    for (uint32_t k = 1; k < 3; k++) {
        for (int64_t i = seen * width; i < masked.keys * width; i++) {
            other.in[k][i] = k == 1 ? (double)NAN : 1000.0;
        }
    }
    op_trial_run(&t, cpu, NULL);
    op_trial_run(&other, cpu, NULL);
    ck_assert(memcmp(t.out[0], other.out[0], (size_t)(seen * width) * sizeof(double)) == 0);
    for (int64_t i = seen * width; i < masked.queries * width; i++) {
        ck_assert(isnan(other.out[0][i]) && !isnan(t.out[0][i]));
    }
    op_trial_deinit(&t);
    op_trial_deinit(&other);
    op_device_close(&cpu);
}
END_TEST

// Scores of a hundred thousand, forward and back.
START_TEST(extreme_scores_do_not_overflow)
{
    uint64_t state = 6;
    op_device cpu = op_device_open(&device_cpu, 1);
    op_trial t = attention(masked, false, 500.0, &state);
    op_trial_run(&t, cpu, NULL);
    for (uint64_t i = 0; i < op_trial_out_count(&t, 0); i++) {
        ck_assert_double_le(fabs(t.out[0][i]), 1.0 + 1e-6); // a mean of values
    }
    double *dy = random_gradient(&t, &state);
    op_trial backward = op_trial_backward(&t, 0, dy);
    op_trial_run(&backward, cpu, NULL);
    for (uint32_t k = 0; k < 3; k++) {
        for (uint64_t i = 0; i < op_trial_out_count(&backward, k); i++) {
            ck_assert(isfinite(backward.out[k][i]));
        }
    }
    free(dy);
    op_trial_deinit(&t);
    op_trial_deinit(&backward);
    op_device_close(&cpu);
}
END_TEST

// Forward and gradient with `threads`; the five results are compared bit by bit.
static void run_both(op_trial *forward, op_trial *backward, const double *dy, uint32_t threads)
{
    op_device cpu = op_device_open(&device_cpu, threads);
    op_trial_run(forward, cpu, NULL);
    *backward = op_trial_backward(forward, 0, dy);
    op_trial_run(backward, cpu, NULL);
    op_device_close(&cpu);
}

START_TEST(any_number_of_threads_gives_the_same_bits)
{
    uint64_t state = 7;
    op_trial first = attention((lengths){2, 150, 140, 3, 20}, _i == 1, 2.0, &state), first_bwd = {0};
    double *dy = random_gradient(&first, &state);
    run_both(&first, &first_bwd, dy, 1);
    for (uint32_t threads = 1; threads <= 4; threads++) {
        op_trial t = op_trial_copy(&first, HR_F32), backward = {0};
        run_both(&t, &backward, dy, threads);
        for (uint32_t k = 0; k < 2; k++) {
            ck_assert(memcmp(t.out[k], first.out[k], op_trial_out_count(&t, k) * sizeof(double)) == 0);
        }
        for (uint32_t k = 0; k < 3; k++) {
            const size_t bytes = op_trial_out_count(&backward, k) * sizeof(double);
            ck_assert(memcmp(backward.out[k], first_bwd.out[k], bytes) == 0);
        }
        op_trial_deinit(&t);
        op_trial_deinit(&backward);
    }
    free(dy);
    op_trial_deinit(&first);
    op_trial_deinit(&first_bwd);
}
END_TEST

static uint64_t workspace_of(op_device device, hr_op op, int64_t length)
{
    const op_operand sequence = {.shape = shape_of(3, (const int64_t[]){2, length, 256}), .dtype = HR_F32};
    const op_operand rows = {.shape = shape_of(3, (const int64_t[]){2, 4, length}), .dtype = HR_F32};
    const bool forward = op == HR_OP_ATTENTION;
    op_query q = {.op = (uint32_t)op, .in_count = forward ? 3 : 6, .out_count = forward ? 2 : 3};
    q.attr.heads = 4;
    for (uint32_t k = 0; k < q.in_count; k++) {
        q.in[k] = k < 5 ? sequence : rows;
    }
    for (uint32_t k = 0; k < q.out_count; k++) {
        q.out[k] = forward && k == 1 ? rows : sequence;
    }
    hr_target target;
    target_answer answer = {0};
    hr_err err = {0};
    device.ops->target(device.context, &target);
    ck_assert_msg(target.ask(target.context, &q, UINT64_MAX, &answer, &err) == HR_OK, "%s", err.sentence);
    return answer.workspace_bytes;
}

START_TEST(scratch_does_not_grow_with_the_sequence)
{
    enum { SHORT = 64, LONG = 1 << 16, MOST_BYTES = 1 << 18 };
    const hr_op op = _i == 0 ? HR_OP_ATTENTION : HR_OP_ATTENTION_BWD;
    op_device one = op_device_open(&device_cpu, 1), two = op_device_open(&device_cpu, 2);
    const uint64_t bytes = workspace_of(one, op, SHORT);
    ck_assert_uint_le(bytes, MOST_BYTES);
    ck_assert_uint_eq(workspace_of(one, op, LONG), bytes);
    ck_assert_uint_eq(workspace_of(two, op, LONG), 2 * bytes);
    op_device_close(&one);
    op_device_close(&two);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cpu_attention");
    TCase *all = tcase_create("attention");
    tcase_set_timeout(all, 60);
    tcase_add_test(all, an_exponential_is_two_units_away_at_most);
    tcase_add_test(all, an_exponential_of_what_is_no_score);
    tcase_add_loop_test(all, dropped_weights_are_those_of_the_materialised_form, 0, 8);
    tcase_add_loop_test(all, attention_of_models_is_the_judges, 0, 2 * MODELS);
    tcase_add_loop_test(all, streaming_is_materialised_attention, 0, 2 * MODELS);
    tcase_add_test(all, a_mask_hides_the_future);
    tcase_add_test(all, extreme_scores_do_not_overflow);
    tcase_add_loop_test(all, any_number_of_threads_gives_the_same_bits, 0, 2);
    tcase_add_loop_test(all, scratch_does_not_grow_with_the_sequence, 0, 2);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
