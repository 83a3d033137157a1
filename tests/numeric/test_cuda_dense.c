// SPDX-License-Identifier: Apache-2.0
// What rides on the products of dense layers on a card, against the judge: sums, GELU with what it was given, the gradient of
// GELU, and float32 gradients of weights. Rows that are whole vectors are the library's, the others are done beside it.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/op_draw.h"
#include "numeric/two_devices.h"

static two_devices two;

// Rows, features in and out.
static const int64_t sizes[][3] = {{1, 1, 1},    {5, 7, 3},    {16, 8, 8},    {33, 24, 16},
                                   {64, 40, 13}, {9, 130, 72}, {1024, 16, 5}, {700, 33, 264}};
enum { SIZES = sizeof sizes / sizeof *sizes, FORMS = 4 }; // turned or not, with a bias or without

typedef struct subject {
    int64_t rows, in, out;
    bool turned, biased;
} subject;

static subject subject_at(int i)
{
    const int64_t *s = sizes[i / FORMS];
    return (subject){s[0], s[1], s[2], (i & 1) != 0, (i & 2) != 0};
}

static void draw(op_trial *t, const int64_t dims[OP_MAX_RANK])
{
    two_devices_draw(&two, t, dims, -1.0, 1.0);
}

static op_trial product(const subject *s, hr_op op, int32_t act, int32_t flags)
{
    const bool data = op == HR_OP_DENSE_BWD_DATA;
    op_trial t =
        op_trial_make(op, (op_attr){.act = act, .flags = flags | (s->turned ? OP_FLAG_TRANSPOSE : 0)});
    draw(&t, DIMS(s->rows, data ? s->out : s->in));
    draw(&t, s->turned ? DIMS(s->out, s->in) : DIMS(s->in, s->out));
    if (s->biased && !data) {
        draw(&t, DIMS(s->out));
    }
    return t;
}

static void check_all(op_trial *made, uint32_t wide_out)
{
    for (int k = 0; k < TWO_TYPES; k++) {
        op_trial t = op_trial_copy(made, HR_F64);
        two_devices_run(&two, &t, two_types[k], (bf16_wide){.out = wide_out});
        op_trial_deinit(&t);
    }
    op_trial_deinit(made);
}

START_TEST(what_is_added_to_a_product)
{
    const subject s = subject_at(_i);
    op_trial y = product(&s, HR_OP_DENSE, HR_ACT_NONE, OP_FLAG_ADDED);
    draw(&y, DIMS(s.rows, s.out));
    op_trial_infer_out(&y, 1);
    check_all(&y, 0);
    op_trial dx = product(&s, HR_OP_DENSE_BWD_DATA, HR_ACT_NONE, OP_FLAG_ADDED);
    draw(&dx, DIMS(s.rows, s.in));
    op_trial_add_out(&dx, HR_F64, DIMS(s.rows, s.in));
    check_all(&dx, 0);
}
END_TEST

START_TEST(gelu_behind_a_product_with_and_without_what_it_was_given)
{
    const subject s = subject_at(_i);
    for (uint32_t results = 1; results <= 2; results++) {
        op_trial y = product(&s, HR_OP_DENSE, HR_ACT_GELU, 0);
        op_trial_infer_out(&y, results);
        check_all(&y, 0);
    }
}
END_TEST

START_TEST(the_gradient_of_gelu_behind_that_of_a_product)
{
    const subject s = subject_at(_i);
    op_trial dx = product(&s, HR_OP_DENSE_BWD_DATA, HR_ACT_GELU, 0);
    draw(&dx, DIMS(s.rows, s.in));
    op_trial_add_out(&dx, HR_F64, DIMS(s.rows, s.in));
    check_all(&dx, 0);
}
END_TEST

// A float32 sum of n random terms wanders by the square root of n of its roundings.
static double sum_tolerance(int64_t terms)
{
    return fmax(1e-6, sqrt((double)terms) * 0x1p-24);
}

// Sums of values that a two-byte type holds, and which it could not hold.
START_TEST(gradients_of_weights_in_float32_are_not_rounded_to_two_bytes)
{
    const subject s = subject_at(_i);
    op_trial dw =
        op_trial_make(HR_OP_DENSE_BWD_WEIGHTS, (op_attr){.flags = s.turned ? OP_FLAG_TRANSPOSE : 0});
    draw(&dw, DIMS(s.rows, s.in));
    draw(&dw, DIMS(s.rows, s.out));
    op_trial_add_out(&dw, HR_F64, s.turned ? DIMS(s.out, s.in) : DIMS(s.in, s.out));
    if (s.biased) {
        op_trial_add_out(&dw, HR_F64, DIMS(s.out));
    }
    op_trial judged = op_trial_copy(&dw, HR_F64);
    op_trial ours = two_devices_in_type(&judged, HR_BF16, (bf16_wide){.out = 0x3});
    op_trial_run(&judged, two.judge, NULL);
    op_trial_run(&ours, two.card, NULL);
    for (uint32_t k = 0; k < ours.query.out_count; k++) {
        ck_assert_int_eq(ours.query.out[k].dtype, HR_F32);
        ck_assert_double_le(op_distance(ours.out[k], judged.out[k], op_trial_out_count(&ours, k)),
                            sum_tolerance(s.rows));
    }
    op_trial_deinit(&judged);
    op_trial_deinit(&ours);
    check_all(&dw, 0x3);
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
    Suite *suite = suite_create("cuda_dense");
    TCase *c = tcase_create("rides on a product");
    tcase_set_timeout(c, 120);
    tcase_add_checked_fixture(c, open_devices, close_devices);
    tcase_add_loop_test(c, what_is_added_to_a_product, 0, SIZES * FORMS);
    tcase_add_loop_test(c, gelu_behind_a_product_with_and_without_what_it_was_given, 0, SIZES * FORMS);
    tcase_add_loop_test(c, the_gradient_of_gelu_behind_that_of_a_product, 0, SIZES * FORMS);
    tcase_add_loop_test(c, gradients_of_weights_in_float32_are_not_rounded_to_two_bytes, 0, SIZES * FORMS);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
