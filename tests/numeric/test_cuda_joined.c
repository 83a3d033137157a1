// SPDX-License-Identifier: Apache-2.0
// Streaming attention over queries, keys and values that lie side by side in one sequence: the judge's values of three
// sequences, to the bit on the judge and on our own kernels, near them through cuDNN; and the gradients side by side.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/op_draw.h"
#include "numeric/op_tolerance.h"
#include "numeric/two_devices.h"

enum { PARTS = 3 };

static two_devices two;

// Samples, heads, length, features of a head; causal.
static const struct {
    int64_t samples, heads, length, features;
    bool causal;
} cases[] = {{1, 1, 1, 8, false}, {2, 3, 40, 16, true}, {1, 2, 70, 24, false},
             {2, 2, 33, 5, true}, {1, 3, 65, 72, true}, {1, 1, 20, 130, false}};
enum { CASES = sizeof cases / sizeof *cases };

// [N,L,3D] of three [N,L,D].
static void lay_side_by_side(double *to, double *const part[PARTS], int64_t rows, int64_t width)
{
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t k = 0; k < PARTS; k++) {
            memcpy(to + (row * PARTS + k) * width, part[k] + row * width, (size_t)width * sizeof *to);
        }
    }
}

static op_trial joined_of(const op_trial *apart)
{
    const hr_shape *s = &apart->query.in[0].shape;
    const bool backward = apart->query.op == HR_OP_ATTENTION_BWD;
    op_trial t = op_trial_make((hr_op)apart->query.op, apart->query.attr);
    op_trial_add_in(&t, HR_F64, DIMS(s->dim[0], s->dim[1], PARTS * s->dim[2]));
    lay_side_by_side(t.in[0], apart->in, s->dim[0] * s->dim[1], s->dim[2]);
    for (uint32_t k = PARTS; k < apart->query.in_count; k++) {
        op_trial_add_in(&t, HR_F64, apart->query.in[k].shape.dim);
        memcpy(t.in[k - PARTS + 1], apart->in[k], op_trial_in_count(apart, k) * sizeof(double));
    }
    if (backward) {
        op_trial_add_out(&t, HR_F64, t.query.in[0].shape.dim);
    } else {
        op_trial_infer_out(&t, 2);
    }
    return t;
}

static void assert_same_values(const op_trial *joined, const op_trial *apart)
{
    if (joined->query.op != HR_OP_ATTENTION_BWD) {
        for (uint32_t k = 0; k < 2; k++) {
            ck_assert_mem_eq(joined->out[k], apart->out[k], op_trial_out_count(apart, k) * sizeof(double));
        }
        return;
    }
    const hr_shape *s = &apart->query.in[0].shape;
    double *all = calloc(op_trial_out_count(joined, 0), sizeof *all);
    ck_assert_ptr_nonnull(all);
    lay_side_by_side(all, apart->out, s->dim[0] * s->dim[1], s->dim[2]);
    ck_assert_mem_eq(joined->out[0], all, op_trial_out_count(joined, 0) * sizeof *all);
    free(all);
}

static void run_as(op_trial *t, op_device device, hr_dtype type)
{
    op_trial ours = op_trial_copy(t, type);
    op_trial_run(&ours, device, NULL);
    for (uint32_t k = 0; k < t->query.out_count; k++) {
        memcpy(t->out[k], ours.out[k], op_trial_out_count(t, k) * sizeof(double));
    }
    op_trial_deinit(&ours);
}

// The library may add to dq in any order: values, not bits.
static void check_half(const op_trial *made, bf16_wide w, hr_dtype type)
{
    op_trial t = op_trial_copy(made, HR_F64);
    half_round_inputs(&t, w, type);
    op_trial ours = half_trial(&t, w, type);
    op_trial_run(&t, two.judge, NULL);
    op_trial_run(&ours, two.card, NULL);
    for (uint32_t k = 0; k < t.query.out_count; k++) {
        ck_assert_double_le(op_distance(ours.out[k], t.out[k], op_trial_out_count(&t, k)),
                            op_tolerance((hr_op)t.query.op, type));
    }
    op_trial_deinit(&t);
    op_trial_deinit(&ours);
}

// `apart` has run on the judge.
static void check(op_trial *apart, bf16_wide joined_wide)
{
    op_trial joined = joined_of(apart);
    op_trial_run(&joined, two.judge, NULL);
    assert_same_values(&joined, apart);
    check_half(&joined, joined_wide, HR_F16);
    check_half(&joined, joined_wide, HR_BF16);
    op_trial three = op_trial_copy(apart, HR_F64);
    run_as(&three, two.card, HR_F32);
    run_as(&joined, two.card, HR_F32);
    assert_same_values(&joined, &three);
    op_trial_deinit(&joined);
    op_trial_deinit(&three);
}

START_TEST(side_by_side_is_as_three_sequences)
{
    const int64_t width = cases[_i].heads * cases[_i].features;
    op_trial t = op_trial_make(HR_OP_ATTENTION, (op_attr){.heads = (int32_t)cases[_i].heads,
                                                          .flags = cases[_i].causal ? OP_FLAG_CAUSAL : 0});
    for (int k = 0; k < PARTS; k++) {
        two_devices_draw(&two, &t, DIMS(cases[_i].samples, cases[_i].length, width), -2.0, 2.0);
    }
    op_trial_infer_out(&t, 2);
    op_trial_run(&t, two.judge, NULL);
    check(&t, bf16_wide_of(HR_OP_ATTENTION));
    double *dy = calloc(op_trial_out_count(&t, 0), sizeof *dy);
    ck_assert_ptr_nonnull(dy);
    op_fill(dy, op_trial_out_count(&t, 0), &two.state, -1.0, 1.0);
    op_trial backward = op_trial_backward(&t, 0, dy);
    op_trial_run(&backward, two.judge, NULL);
    check(&backward, (bf16_wide){.in = 1u << 3}); // the log-sum-exp
    free(dy);
    op_trial_deinit(&backward);
    op_trial_deinit(&t);
}
END_TEST

static void open_devices(void)
{
    two_devices_open(&two);
}

static void close_devices(void)
{
    two_devices_close(&two);
}

int main(void)
{
    if (!test_device_is_there(&device_cuda)) {
        return TEST_SKIPPED;
    }
    Suite *suite = suite_create("cuda_joined");
    TCase *c = tcase_create("side by side");
    tcase_set_timeout(c, 120);
    tcase_add_checked_fixture(c, open_devices, close_devices);
    tcase_add_loop_test(c, side_by_side_is_as_three_sequences, 0, CASES);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
