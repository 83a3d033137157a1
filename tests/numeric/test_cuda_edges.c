// SPDX-License-Identifier: Apache-2.0
// What normalises, pools and judges on the cuda device, at the shapes where its kernels change their way: rows of one
// element to rows that no register holds, whole vectors and one more, one channel and more than a block has threads,
// windows over edges, windows that skip pixels. Forward and backward against the judge, in all three types, with
// results in the place of inputs where that may be.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/op_draw.h"
#include "numeric/two_devices.h"

static two_devices two;

static void open_devices(void)
{
    two_devices_open(&two);
}

static void close_devices(void)
{
    two_devices_close(&two);
}

// ---- rows -----------------------------------------------------------------------------------------------------

// In registers of a warp, of a block, and longer; in vectors of four or eight, and not.
static const int64_t lengths[] = {1,    3,    4,    8,    31,   64,   200,  255,  257,
                                  1000, 1024, 1025, 1032, 2047, 2051, 4096, 8192, 8200};
// Under a sanitizer those that fit a block.
enum { LENGTHS = HEADROOM_SANITIZED ? 9 : sizeof lengths / sizeof lengths[0] };

static int64_t row_count(int64_t length)
{
    return op_random_int(&two.state, 1, length < 300 ? 70 : 9);
}

// Where the library does not rectify, a kernel of ours does: what has overflowed stays to be seen.
START_TEST(what_overflows_is_rectified_to_infinity)
{
    op_trial drawn = op_trial_make(HR_OP_DENSE, (op_attr){.act = HR_ACT_RELU});
    two_devices_draw(&two, &drawn, DIMS(1, 1), 1e30, 2e30);
    two_devices_draw(&two, &drawn, DIMS(1, 1), 1e30, 2e30);
    op_trial_infer_out(&drawn, 1);
    op_trial t = op_trial_copy(&drawn, HR_F32);
    op_trial_run(&t, two.card, NULL);
    ck_assert(isinf(t.out[0][0]));
    op_trial_deinit(&t);
    op_trial_deinit(&drawn);
}
END_TEST

// Also what no vector is filled with.
START_TEST(results_of_any_number_are_cut_at_both_ends)
{
    for (int64_t columns = 1; columns < 20; columns++) {
        op_trial t = op_trial_make(HR_OP_DENSE, (op_attr){.act = HR_ACT_RELU6});
        two_devices_draw(&two, &t, DIMS(1, 1), 4.0, 5.0);
        two_devices_draw(&two, &t, DIMS(1, columns), columns % 2 == 0 ? -4.0 : 2.0, 4.0);
        op_trial_infer_out(&t, 1);
        two_devices_check(&two, &t);
    }
}
END_TEST

START_TEST(rows_are_normalised_at_any_length)
{
    const int64_t n = lengths[_i], rows = row_count(n);
    for (int rms = n == 1; rms < 2; rms++) { // a row of one feature is its mean
        op_trial t = op_trial_make(rms ? HR_OP_RMS_NORM : HR_OP_LAYER_NORM, (op_attr){.epsilon = 1e-5});
        two_devices_draw(&two, &t, DIMS(rows, n), -1.0, 3.0);
        two_devices_draw(&two, &t, DIMS(n), 0.5, 1.5);
        if (!rms) {
            two_devices_draw(&two, &t, DIMS(n), -1.0, 1.0);
        }
        op_trial_infer_out(&t, rms ? 2 : 3);
        two_devices_check(&two, &t);
    }
}
END_TEST

// The square of a mean has no digits left for what lies around it.
START_TEST(a_large_mean_leaves_the_variance_its_digits)
{
    const int64_t n = lengths[_i] + 3, rows = 4;
    op_trial t = op_trial_make(HR_OP_LAYER_NORM, (op_attr){.epsilon = 1e-5});
    two_devices_draw(&two, &t, DIMS(rows, n), 255.0, 257.0);
    two_devices_draw(&two, &t, DIMS(n), 0.5, 1.5);
    two_devices_draw(&two, &t, DIMS(n), -1.0, 1.0);
    op_trial_infer_out(&t, 3);
    op_trial ours = two_devices_in_type(&t, HR_F32, (bf16_wide){0, 0});
    op_trial_run(&ours, two.card, NULL);
    op_trial_run(&t, two.judge, NULL);
    ck_assert_double_le(op_distance(ours.out[2], t.out[2], op_trial_out_count(&t, 2)), 1e-5);
    op_trial_deinit(&ours);
    op_trial_deinit(&t);
}
END_TEST

// Rows that no register holds, so many that their columns are summed in parts.
START_TEST(many_long_rows_are_normalised)
{
    op_trial t = op_trial_make(HR_OP_LAYER_NORM, (op_attr){.epsilon = 1e-5});
    two_devices_draw(&two, &t, DIMS(150, 8193), -1.0, 3.0);
    two_devices_draw(&two, &t, DIMS(8193), 0.5, 1.5);
    two_devices_draw(&two, &t, DIMS(8193), -1.0, 1.0);
    op_trial_infer_out(&t, 3);
    two_devices_check_in(&two, &t, HR_F32);
    op_trial_deinit(&t);
}
END_TEST

START_TEST(many_rows_are_normalised)
{
    op_trial t = op_trial_make(HR_OP_LAYER_NORM, (op_attr){.epsilon = 1e-5});
    two_devices_draw(&two, &t, DIMS(9001, 24), -1.0, 3.0);
    two_devices_draw(&two, &t, DIMS(24), 0.5, 1.5);
    two_devices_draw(&two, &t, DIMS(24), -1.0, 1.0);
    op_trial_infer_out(&t, 3);
    two_devices_check_in(&two, &t, HR_F32);
    op_trial_deinit(&t);
}
END_TEST

START_TEST(softmax_of_rows_of_any_length)
{
    const int64_t n = lengths[_i];
    for (int causal = 0; causal < 2; causal++) {
        op_trial t = op_trial_make(HR_OP_SOFTMAX, (op_attr){.flags = causal ? OP_FLAG_CAUSAL : 0});
        two_devices_draw(&two, &t, DIMS(2, op_random_int(&two.state, 2, 9), n), -4.0, 4.0);
        op_trial_infer_out(&t, 1);
        two_devices_check(&two, &t);
    }
}
END_TEST

static void add_labels(op_trial *t, hr_dtype dtype, int64_t rows, int64_t classes)
{
    const int64_t most = dtype == HR_U8 && classes > 256 ? 256 : classes;
    op_trial_add_in(t, dtype, DIMS(rows));
    for (int64_t r = 0; r < rows; r++) {
        t->in[1][r] = (double)op_random_int(&two.state, 0, most - 1);
    }
}

static bool is_of_ids(hr_op op)
{
    return op != HR_OP_MSE && op != HR_OP_KL && op != HR_OP_BINARY_XENT && op != HR_OP_FOCAL;
}

static void check_loss(hr_op op, int64_t rows, int64_t classes, double range)
{
    op_trial t = op_trial_make(op, (op_attr){.epsilon = 2.0, .scale = 0.5});
    two_devices_draw(&two, &t, DIMS(rows, classes), -range, range);
    if (is_of_ids(op)) {
        add_labels(&t, classes % 2 == 0 ? HR_U8 : HR_I32, rows, classes);
    } else {
        two_devices_draw(&two, &t, DIMS(rows, classes), -range, range);
    }
    op_trial_infer_out(&t, op_row_of(op)->min_out);
    two_devices_check_in(&two, &t, HR_F32);
    if (op != HR_OP_SOFTMAX_XENT && is_of_ids(op)) { // these are of float32 alone
        two_devices_check_in(&two, &t, HR_F16);
        two_devices_check_in(&two, &t, HR_BF16);
    }
    op_trial_deinit(&t);
}

START_TEST(losses_of_rows_of_any_length)
{
    const int64_t n = lengths[_i];
    check_loss(HR_OP_SOFTMAX_XENT, row_count(n), n, 3.0);
    check_loss(HR_OP_SOFTMAX_XENT_STREAM, row_count(n), n, 3.0);
    check_loss(HR_OP_SOFTMAX_XENT_GRADIENT, row_count(n), n, 3.0);
    check_loss(HR_OP_MSE, row_count(n), n, 3.0);
    check_loss(HR_OP_BINARY_XENT, row_count(n), n, 0.5);
    check_loss(HR_OP_FOCAL, row_count(n), n, 0.5);
    if (n > 1) { // one class has no divergence
        check_loss(HR_OP_KL, row_count(n), n, 3.0);
    }
}
END_TEST

// Only differences count, wherever a row lies.
START_TEST(rows_may_lie_anywhere)
{
    static const hr_op ops[] = {HR_OP_SOFTMAX, HR_OP_SOFTMAX_XENT, HR_OP_SOFTMAX_XENT_STREAM, HR_OP_KL,
                                HR_OP_ACCURACY};
    const int64_t n = lengths[_i] + 1, rows = 5;
    for (int k = 0; k < 10; k++) {
        const hr_op op = ops[k / 2];
        const double middle = k % 2 == 0 ? -900.0 : 900.0;
        op_trial t = op_trial_make(op, (op_attr){.epsilon = 2.0, .scale = 0.5});
        two_devices_draw(&two, &t, DIMS(rows, n), middle - 3.0, middle + 3.0);
        if (op == HR_OP_KL) {
            two_devices_draw(&two, &t, DIMS(rows, n), -middle - 3.0, -middle + 3.0);
        } else if (op != HR_OP_SOFTMAX) {
            add_labels(&t, HR_I32, rows, n);
        }
        op_trial_infer_out(&t, op_row_of(op)->min_out);
        two_devices_check_in(&two, &t, HR_F32);
        op_trial_deinit(&t);
    }
}
END_TEST

START_TEST(losses_of_a_whole_vocabulary)
{
    check_loss(HR_OP_SOFTMAX_XENT, 3, 50257, 5.0);
    check_loss(HR_OP_SOFTMAX_XENT, 2, 70000, 5.0); // no shared memory holds it
    check_loss(HR_OP_SOFTMAX_XENT_STREAM, 3, 50257, 5.0);
    check_loss(HR_OP_SOFTMAX_XENT_STREAM, 2, 50304, 5.0);
    check_loss(HR_OP_SOFTMAX_XENT_GRADIENT, 3, 50257, 5.0);
    check_loss(HR_OP_SOFTMAX_XENT_GRADIENT, 2, 70000, 5.0);
    check_loss(HR_OP_ACCURACY, 3, 50257, 5.0);
}
END_TEST

// Half of the rows have several largest values.
START_TEST(the_first_of_equals_counts)
{
    const int64_t n = lengths[_i], rows = 40;
    op_trial t = op_trial_make(HR_OP_ACCURACY, (op_attr){0});
    two_devices_draw(&two, &t, DIMS(rows, n), 0.0, 1.0);
    add_labels(&t, HR_I32, rows, n);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t label = (int64_t)t.in[1][r], other = op_random_int(&two.state, 0, n - 1);
        t.in[0][r * n + label] = 2.0;
        t.in[0][r * n + other] = r % 2 == 0 ? 2.0 : t.in[0][r * n + other];
    }
    op_trial_infer_out(&t, 1);
    two_devices_check_in(&two, &t, HR_F32);
    op_trial_deinit(&t);
}
END_TEST

// ---- channels -------------------------------------------------------------------------------------------------

static const struct {
    int64_t rows, channels;
} tables[] = {{1, 1},     {5, 1},    {4096, 1}, {1, 3},     {7, 3},    {1024, 3}, {1001, 5}, {300, 16},
              {5000, 16}, {33, 63},  {900, 64}, {12, 255},  {12, 256}, {9, 257},  {40, 300}, {8, 511},
              {21, 1024}, {3, 1025}, {2, 2048}, {50, 2048}, {3, 2052}, {4, 4104}, {260, 96}, {2, 640}};
enum { TABLES = sizeof tables / sizeof tables[0] };

static op_trial batch_norm(hr_op op, int64_t rows, int64_t c, double low, double high, hr_act act)
{
    op_trial t = op_trial_make(op, (op_attr){.epsilon = 1e-3, .momentum = 0.1, .act = (int32_t)act});
    two_devices_draw(&two, &t, DIMS(rows, c), low, high);
    two_devices_draw(&two, &t, DIMS(c), 0.5, 1.5);
    two_devices_draw(&two, &t, DIMS(c), -1.0, 1.0);
    two_devices_draw(&two, &t, DIMS(c), -1.0, 1.0);
    two_devices_draw(&two, &t, DIMS(c), 0.5, 2.0);
    op_trial_infer_out(&t, op == HR_OP_BATCH_NORM ? 3 : 1);
    return t;
}

START_TEST(channels_are_normalised_in_any_number)
{
    static const hr_act acts[] = {HR_ACT_NONE, HR_ACT_RELU, HR_ACT_RELU6};
    for (int k = 0; k < 3; k++) {
        op_trial t = batch_norm(HR_OP_BATCH_NORM, tables[_i].rows, tables[_i].channels, -1.0, 3.0, acts[k]);
        two_devices_check(&two, &t);
    }
    op_trial eval =
        batch_norm(HR_OP_BATCH_NORM_EVAL, tables[_i].rows, tables[_i].channels, -1.0, 3.0, HR_ACT_RELU6);
    two_devices_check(&two, &eval);
}
END_TEST

// Where Σx² − (Σx)²/n has lost every digit of the variance.
START_TEST(the_variance_survives_a_large_mean)
{
    op_trial t = batch_norm(HR_OP_BATCH_NORM, 3000, tables[_i].channels < 300 ? tables[_i].channels : 4,
                            2047.0, 2049.0, HR_ACT_NONE);
    op_trial ours = two_devices_in_type(&t, HR_F32, (bf16_wide){0, 0});
    op_trial_run(&ours, two.card, NULL);
    op_trial_run(&t, two.judge, NULL);
    ck_assert_double_le(op_distance(ours.out[2], t.out[2], op_trial_out_count(&t, 2)), 2e-6);
    ck_assert_double_le(op_distance(ours.out[1], t.out[1], op_trial_out_count(&t, 1)), 1e-7);
    op_trial_deinit(&ours);
    op_trial_deinit(&t);
}
END_TEST

START_TEST(apply_has_the_bits_of_batch_norm)
{
    for (int k = 0; k < TWO_TYPES; k++) {
        op_trial first =
            batch_norm(HR_OP_BATCH_NORM, tables[_i].rows, tables[_i].channels, -4.0, 4.0, HR_ACT_RELU6);
        op_trial narrow = two_devices_in_type(&first, two_types[k], bf16_wide_of(HR_OP_BATCH_NORM));
        op_trial_run(&narrow, two.card, NULL);
        op_trial again = op_trial_make(HR_OP_BATCH_NORM_APPLY, first.query.attr);
        const double *from[] = {narrow.in[0], narrow.in[1], narrow.in[2], narrow.out[1], narrow.out[2]};
        for (uint32_t n = 0; n < 5; n++) {
            op_trial_add_in(&again, (hr_dtype)narrow.query.in[n].dtype, narrow.query.in[n].shape.dim);
            memcpy(again.in[n], from[n], op_trial_in_count(&again, n) * sizeof *from[n]);
        }
        op_trial_infer_out(&again, 1);
        op_trial_run(&again, two.card, NULL);
        ck_assert_mem_eq(again.out[0], narrow.out[0], op_trial_out_count(&again, 0) * sizeof *again.out[0]);
        op_trial_deinit(&again);
        op_trial_deinit(&narrow);
        op_trial_deinit(&first);
    }
}
END_TEST

// ---- windows --------------------------------------------------------------------------------------------------

static const struct {
    int64_t images, h, w, channels;
    op_attr a;
} windows[] = {
    {1, 1, 1, 1, {.kernel_h = 1, .kernel_w = 1, .stride_h = 1, .stride_w = 1}},
    {2,
     9,
     7,
     3,
     {.kernel_h = 3,
      .kernel_w = 3,
      .stride_h = 2,
      .stride_w = 2,
      .pad_top = 1,
      .pad_left = 1,
      .pad_bottom = 1,
      .pad_right = 1}},
    {2, 8, 8, 64, {.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2}},
    {1,
     11,
     6,
     12,
     {.kernel_h = 5,
      .kernel_w = 3,
      .stride_h = 1,
      .stride_w = 1,
      .pad_top = 2,
      .pad_bottom = 4,
      .pad_right = 2}},
    {3, 7, 9, 20, {.kernel_h = 2, .kernel_w = 1, .stride_h = 3, .stride_w = 4}},
    {1,
     9,
     9,
     8,
     {.kernel_h = 3,
      .kernel_w = 2,
      .stride_h = 2,
      .stride_w = 1,
      .pad_top = -2,
      .pad_left = -1,
      .pad_bottom = 1,
      .pad_right = -3}},
    {1, 15, 17, 1, {.kernel_h = 15, .kernel_w = 17, .stride_h = 1, .stride_w = 1}},
    {1, 15, 15, 16, {.kernel_h = 15, .kernel_w = 15, .stride_h = 15, .stride_w = 15, .pad_top = 14}},
};
enum { WINDOWS = sizeof windows / sizeof windows[0] };

// Few different values, so that most windows have several largest ones.
START_TEST(windows_over_edges_and_ties)
{
    for (uint32_t outputs = 1; outputs <= 2; outputs++) {
        op_trial t = op_trial_make(HR_OP_MAX_POOL, windows[_i].a);
        two_devices_draw(&two, &t,
                         DIMS(windows[_i].images, windows[_i].h, windows[_i].w, windows[_i].channels), -1.0,
                         1.0);
        for (uint64_t i = 0; i < op_trial_in_count(&t, 0); i++) {
            t.in[0][i] = (double)op_random_int(&two.state, -3, 3);
        }
        op_trial_infer_out(&t, outputs);
        two_devices_check(&two, &t);
    }
    for (int padding = 0; padding < 2; padding++) {
        op_trial t = op_trial_make(HR_OP_AVG_POOL, windows[_i].a);
        t.query.attr.flags = padding ? OP_FLAG_PADDING : 0;
        two_devices_draw(&two, &t,
                         DIMS(windows[_i].images, windows[_i].h, windows[_i].w, windows[_i].channels), -1.0,
                         1.0);
        op_trial_infer_out(&t, 1);
        two_devices_check(&two, &t);
    }
}
END_TEST

START_TEST(whole_images_have_means)
{
    static const int64_t images[][4] = {{1, 1, 1, 1},   {2, 7, 7, 130},   {1, 30, 31, 3},
                                        {5, 3, 2, 256}, {2, 40, 1, 2048}, {3, 5, 5, 60}};
    op_trial t = op_trial_make(HR_OP_GLOBAL_AVG_POOL, (op_attr){0});
    two_devices_draw(&two, &t, DIMS(images[_i][0], images[_i][1], images[_i][2], images[_i][3]), -1.0, 1.0);
    op_trial_infer_out(&t, 1);
    two_devices_check(&two, &t);
}
END_TEST

int main(void)
{
    if (!test_device_is_there(&device_cuda)) {
        return TEST_SKIPPED;
    }
    Suite *suite = suite_create("cuda_edges");
    TCase *c = tcase_create("against the judge");
    tcase_set_timeout(c, 120);
    tcase_add_checked_fixture(c, open_devices, close_devices);
    tcase_add_test(c, what_overflows_is_rectified_to_infinity);
    tcase_add_test(c, results_of_any_number_are_cut_at_both_ends);
    tcase_add_loop_test(c, rows_are_normalised_at_any_length, 0, LENGTHS);
    tcase_add_loop_test(c, a_large_mean_leaves_the_variance_its_digits, 0, LENGTHS);
    tcase_add_test(c, many_long_rows_are_normalised);
    tcase_add_test(c, many_rows_are_normalised);
    tcase_add_loop_test(c, softmax_of_rows_of_any_length, 0, LENGTHS);
    tcase_add_loop_test(c, losses_of_rows_of_any_length, 0, LENGTHS);
    tcase_add_loop_test(c, rows_may_lie_anywhere, 0, LENGTHS);
    tcase_add_test(c, losses_of_a_whole_vocabulary);
    tcase_add_loop_test(c, the_first_of_equals_counts, 0, LENGTHS);
    tcase_add_loop_test(c, channels_are_normalised_in_any_number, 0, TABLES);
    tcase_add_loop_test(c, the_variance_survives_a_large_mean, 0, 10);
    tcase_add_loop_test(c, apply_has_the_bits_of_batch_norm, 0, TABLES);
    tcase_add_loop_test(c, windows_over_edges_and_ties, 0, WINDOWS);
    tcase_add_loop_test(c, whole_images_have_means, 0, 6);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
