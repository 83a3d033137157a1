// SPDX-License-Identifier: Apache-2.0
// Streaming cross-entropy beside the one that holds probabilities, as a graph and eager mode run them: the same loss and
// the same gradient, bit for bit, of logits in any type, at every length, in place or not; and the judge's, where a
// vocabulary is whole. A card walks over rows of two bytes and of four in other steps: there two bytes are close.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/bf16_trial.h"
#include "numeric/op_cases.h"
#include "numeric/op_draw.h"
#include "numeric/op_tolerance.h"

#ifndef TEST_DEVICE
#define TEST_DEVICE "cpu"
#endif

enum { ROWS = 5 };

static const int64_t lengths[] = {1, 2, 15, 33, 1000, 1003, 2048, 2049, 4103, 50257};
static const hr_dtype types[] = {HR_F32, HR_F16, HR_BF16};
enum { LENGTHS = sizeof lengths / sizeof *lengths, TYPES = sizeof types / sizeof *types };

static op_device device, judge;
static uint64_t chance = 11;

static void open_devices(void)
{
    device = op_device_open(test_device(TEST_DEVICE), 2);
    judge = op_device_open(test_device("reference"), 1);
}

static void close_devices(void)
{
    op_device_close(&device);
    op_device_close(&judge);
}

// Logits of one type, labels all over a row: in its first and its last place too.
static op_trial loss_of(hr_op op, hr_dtype type, int64_t classes)
{
    op_trial t = op_trial_make(op, (op_attr){.scale = 0.75});
    op_trial_add_in(&t, type, DIMS(ROWS, classes));
    op_trial_add_in(&t, HR_I32, DIMS(ROWS));
    op_fill(t.in[0], op_trial_in_count(&t, 0), &chance, -9.0, 9.0);
    if (type != HR_F32) {
        half_round(t.in[0], op_trial_in_count(&t, 0), type);
    }
    for (int64_t r = 0; r < ROWS; r++) {
        t.in[1][r] = (double)(r == 0 ? 0 : r == 1 ? classes - 1 : op_random_int(&chance, 0, classes - 1));
    }
    op_trial_infer_out(&t, op_row_of(op)->min_out);
    return t;
}

// Its gradient for the logits, scaled by a loss scale.
static op_trial gradient_of(const op_trial *forward)
{
    op_trial back = op_trial_backward(forward, 0, NULL);
    op_trial_add_in(&back, HR_F32, DIMS(1));
    back.in[back.query.in_count - 1][0] = 1024.0;
    return back;
}

// The same logits as the operation reads them that holds probabilities: float32.
static op_trial held(const op_trial *stream)
{
    op_trial t = op_trial_make(HR_OP_SOFTMAX_XENT, stream->query.attr);
    op_trial_add_in(&t, HR_F32, stream->query.in[0].shape.dim);
    op_trial_add_in(&t, HR_I32, stream->query.in[1].shape.dim);
    for (uint32_t k = 0; k < 2; k++) {
        memcpy(t.in[k], stream->in[k], op_trial_in_count(&t, k) * sizeof *t.in[k]);
    }
    op_trial_infer_out(&t, 2);
    return t;
}

static void check_equal(const double *ours, const double *theirs, uint64_t count, hr_op op, hr_dtype type)
{
    const bool close = strcmp(TEST_DEVICE, "cpu") != 0 && type != HR_F32;
    const bool equal = close ? op_distance(ours, theirs, count) <= op_tolerance(op, type)
                             : memcmp(ours, theirs, count * sizeof *ours) == 0;
    ck_assert_msg(equal, "another result of %s of %s", op_name(op), dtype_name(type));
}

static void check_gradients(op_trial *ours, op_trial *theirs, hr_dtype type)
{
    op_trial back = gradient_of(ours), other = gradient_of(theirs);
    const uint64_t count = op_trial_out_count(&back, 0);
    op_trial_run(&back, device, NULL);
    op_trial_run(&other, device, NULL);
    if (type != HR_F32) { // the cast behind it
        half_round(other.out[0], count, type);
    }
    check_equal(back.out[0], other.out[0], count, HR_OP_SOFTMAX_XENT_STREAM_BWD, type);
    op_trial again = gradient_of(ours);
    ck_assert(op_trial_may_share(&again));
    op_trial_run_in_place(&again, device, NULL);
    ck_assert_msg(memcmp(again.out[0], back.out[0], count * sizeof *back.out[0]) == 0,
                  "another gradient of %s over the logits", dtype_name(type));
    op_trial_deinit(&again);
    op_trial_deinit(&back);
    op_trial_deinit(&other);
}

START_TEST(a_streaming_loss_has_the_bits_of_the_held_one)
{
    const hr_dtype type = types[_i % TYPES];
    op_trial ours = loss_of(HR_OP_SOFTMAX_XENT_STREAM, type, lengths[_i / TYPES]), theirs = held(&ours);
    op_trial_run(&ours, device, NULL);
    op_trial_run(&theirs, device, NULL);
    check_equal(ours.out[2], theirs.out[1], 1, HR_OP_SOFTMAX_XENT_STREAM, type);
    check_gradients(&ours, &theirs, type);
    op_trial_deinit(&ours);
    op_trial_deinit(&theirs);
}
END_TEST

// The loss and its gradient at once, as a graph runs them where it may fuse, beside the two by themselves.
START_TEST(both_at_once_have_the_bits_of_the_two)
{
    const hr_dtype type = types[_i % TYPES];
    op_trial loss = loss_of(HR_OP_SOFTMAX_XENT_STREAM, type, lengths[_i / TYPES]);
    op_trial_run(&loss, device, NULL);
    op_trial back = gradient_of(&loss);
    op_trial_run(&back, device, NULL);
    for (int in_place = 0; in_place < 2; in_place++) {
        op_trial both = op_trial_make(HR_OP_SOFTMAX_XENT_GRADIENT, loss.query.attr);
        for (uint32_t k = 0; k < 2; k++) {
            op_trial_add_in(&both, (hr_dtype)loss.query.in[k].dtype, loss.query.in[k].shape.dim);
            memcpy(both.in[k], loss.in[k], op_trial_in_count(&loss, k) * sizeof *loss.in[k]);
        }
        op_trial_add_in(&both, HR_F32, DIMS(1));
        both.in[2][0] = 1024.0;
        op_trial_infer_out(&both, 2);
        (in_place == 0 ? op_trial_run : op_trial_run_in_place)(&both, device, NULL);
        ck_assert_double_eq(both.out[1][0], loss.out[2][0]);
        ck_assert_msg(memcmp(both.out[0], back.out[0], op_trial_out_count(&back, 0) * sizeof *back.out[0]) ==
                          0,
                      "another gradient of %s", dtype_name(type));
        op_trial_deinit(&both);
    }
    op_trial_deinit(&back);
    op_trial_deinit(&loss);
}
END_TEST

// In float64 on the judge, whose operands are the same rounded numbers.
static void compare(op_trial *t, hr_dtype type)
{
    op_trial exact = op_trial_copy(t, HR_F64);
    op_trial_run(t, device, NULL);
    op_trial_run(&exact, judge, NULL);
    for (uint32_t k = 0; k < t->query.out_count; k++) {
        const double apart = op_distance(t->out[k], exact.out[k], op_trial_out_count(t, k)),
                     most = op_tolerance((hr_op)t->query.op, type);
        ck_assert_msg(apart <= most, "%s of %s: output %u is %g from the judge's",
                      op_name((hr_op)t->query.op), dtype_name(type), k, apart);
    }
    op_trial_deinit(&exact);
}

START_TEST(it_is_the_judges)
{
    const hr_dtype type = types[_i % TYPES];
    op_trial t = loss_of(HR_OP_SOFTMAX_XENT_STREAM, type, lengths[_i / TYPES]);
    compare(&t, type);
    op_trial back = gradient_of(&t);
    compare(&back, type);
    op_trial_deinit(&back);
    op_trial_deinit(&t);
}
END_TEST

// The first of equals counts, wherever it lies.
START_TEST(accuracy_needs_no_cast)
{
    const hr_dtype type = types[_i % TYPES];
    const int64_t classes = lengths[_i / TYPES];
    op_trial t = loss_of(HR_OP_ACCURACY, type, classes);
    double correct = 0;
    for (int64_t r = 0; r < ROWS; r++) {
        const int64_t label = (int64_t)t.in[1][r], other = op_random_int(&chance, 0, classes - 1);
        t.in[0][r * classes + label] = 16.0;
        t.in[0][r * classes + other] = 16.0;
        correct += other >= label ? 1.0 : 0.0;
    }
    op_trial_run(&t, device, NULL);
    ck_assert_double_eq(t.out[0][0], correct);
    op_trial_deinit(&t);
}
END_TEST

int main(void)
{
    if (!test_device_is_there(test_device(TEST_DEVICE))) {
        return TEST_SKIPPED;
    }
    Suite *suite = suite_create("loss");
    TCase *c = tcase_create("cross-entropy");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, open_devices, close_devices);
    tcase_add_loop_test(c, a_streaming_loss_has_the_bits_of_the_held_one, 0, LENGTHS * TYPES);
    tcase_add_loop_test(c, both_at_once_have_the_bits_of_the_two, 0, LENGTHS * TYPES);
    tcase_add_loop_test(c, it_is_the_judges, 0, LENGTHS * TYPES);
    tcase_add_loop_test(c, accuracy_needs_no_cast, 0, LENGTHS * TYPES);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
