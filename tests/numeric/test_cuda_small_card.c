// SPDX-License-Identifier: Apache-2.0
// Every kernel that walks on by the grid's width, on a card of one multiprocessor, where the grid is narrow: three rounds
// of all threads and four, to the element and a few more; rows, windows, tables and updates that go around as well.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/op_draw.h"
#include "numeric/two_devices.h"

// What a card of one multiprocessor takes in one round: 32 blocks of 256 threads with sixteen bytes each.
enum { ROUND_BYTES = 32 * 256 * 16 };

static two_devices two;

static void open_devices(void)
{
    ck_assert_int_eq(setenv("CARD_MULTIPROCESSORS", "1", 1), 0);
    two_devices_open(&two);
    two.io = (step_io){.learning_rate = 0.01, .update = 3, .seed = 5, .first_sample = 7};
}

static void close_devices(void)
{
    two_devices_close(&two);
}

static void draw(op_trial *t, const int64_t dims[OP_MAX_RANK])
{
    two_devices_draw(&two, t, dims, -1.0, 1.0);
}

static void draw_numbers(op_trial *t, int64_t count, int64_t below)
{
    op_trial_add_in(t, HR_I32, DIMS(count));
    for (int64_t k = 0; k < count; k++) {
        t->in[t->query.in_count - 1][k] = (double)op_random_int(&two.state, 0, below - 1);
    }
}

// ---- maps -----------------------------------------------------------------------------------------------------

static const struct {
    int64_t rounds, more;
} counts[] = {{3, 0}, {3, 5}, {4, 0}, {4, 9}};
enum { COUNTS = sizeof counts / sizeof counts[0] };

START_TEST(maps_go_around)
{
    static const hr_op ops[] = {HR_OP_GELU, HR_OP_RELU, HR_OP_MULTIPLY};
    const hr_dtype type = two_types[_i % TWO_TYPES];
    const int64_t round = ROUND_BYTES / (int64_t)dtype_bytes(type), of = _i / TWO_TYPES,
                  count = counts[of].rounds * round + counts[of].more;
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        op_trial t = op_trial_make(ops[k], (op_attr){0});
        for (uint32_t n = 0; n < op_row_of(ops[k])->min_in; n++) {
            draw(&t, DIMS(count));
        }
        op_trial_infer_out(&t, 1);
        two_devices_check_in(&two, &t, type);
        op_trial_deinit(&t);
    }
}
END_TEST

// Dropout over samples that are whole vectors and not, with a mask that is kept.
START_TEST(dropout_goes_around)
{
    const int64_t features = _i % 2 == 0 ? 4096 : 4099;
    op_trial t = op_trial_make(HR_OP_DROPOUT, (op_attr){.rate = 0.3, .salt = 9});
    draw(&t, DIMS(70, features));
    op_trial_infer_out(&t, 2);
    two_devices_check_in(&two, &t, two_types[_i / 2]);
    op_trial_deinit(&t);
}
END_TEST

START_TEST(updates_go_around)
{
    static const hr_op ops[] = {HR_OP_SGD, HR_OP_ADAM, HR_OP_LION, HR_OP_EMA};
    const hr_dtype type = two_types[_i];
    const int64_t count = 2 * ROUND_BYTES / (int64_t)dtype_bytes(type) + 77;
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        op_trial t = op_trial_make(
            ops[k], (op_attr){.momentum = 0.9, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-7, .rate = 0.04});
        for (uint32_t n = 0; n < op_row_of(ops[k])->min_in; n++) {
            two_devices_draw(&two, &t, DIMS(count), n == 3 ? 0.0 : -1.0, 1.0);
        }
        for (uint32_t n = 0; n < op_row_of(ops[k])->min_out; n++) {
            op_trial_add_out(&t, HR_F64, DIMS(count));
        }
        two_devices_run(&two, &t, type, bf16_wide_of(ops[k]));
        op_trial_deinit(&t);
    }
}
END_TEST

// ---- rows -----------------------------------------------------------------------------------------------------

// In registers of a warp, of a block, and longer; in vectors and not.
static const int64_t tables[][2] = {{300, 40}, {300, 41}, {70, 2000}, {70, 2003}, {11, 9000}, {11, 9001}};
enum { TABLES = sizeof tables / sizeof tables[0] };

START_TEST(rows_go_around)
{
    static const hr_op ops[] = {HR_OP_SOFTMAX, HR_OP_LAYER_NORM, HR_OP_RMS_NORM};
    const int64_t rows = tables[_i][0], columns = tables[_i][1];
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        op_trial t = op_trial_make(ops[k], (op_attr){.epsilon = 1e-5});
        draw(&t, DIMS(rows, columns));
        for (uint32_t n = 1; n < op_row_of(ops[k])->min_in; n++) {
            draw(&t, DIMS(columns));
        }
        op_trial_infer_out(&t, op_row_of(ops[k])->min_out);
        two_devices_check_in(&two, &t, two_types[_i % TWO_TYPES]);
        op_trial_deinit(&t);
    }
}
END_TEST

START_TEST(losses_go_around)
{
    static const hr_op ops[] = {HR_OP_SOFTMAX_XENT,
                                HR_OP_SOFTMAX_XENT_STREAM,
                                HR_OP_SOFTMAX_XENT_GRADIENT,
                                HR_OP_ACCURACY,
                                HR_OP_KL,
                                HR_OP_MSE,
                                HR_OP_BINARY_XENT,
                                HR_OP_FOCAL};
    const int64_t rows = tables[_i][0], columns = tables[_i][1];
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        op_trial t = op_trial_make(ops[k], (op_attr){.epsilon = 2.0, .scale = 0.5});
        draw(&t, DIMS(rows, columns));
        if (k < 4) {
            draw_numbers(&t, rows, columns);
        } else {
            draw(&t, DIMS(rows, columns));
        }
        op_trial_infer_out(&t, op_row_of(ops[k])->min_out);
        two_devices_check_in(&two, &t, HR_F32);
        op_trial_deinit(&t);
    }
}
END_TEST

static const int64_t channelled[][2] = {{9000, 16}, {9000, 3}, {700, 300}};
enum { CHANNELLED = sizeof channelled / sizeof channelled[0] };

START_TEST(channels_go_around)
{
    const int64_t c = channelled[_i][1];
    op_trial t = op_trial_make(HR_OP_BATCH_NORM, (op_attr){.epsilon = 1e-3, .momentum = 0.1});
    draw(&t, DIMS(channelled[_i][0], c));
    for (uint32_t n = 1; n < 5; n++) {
        two_devices_draw(&two, &t, DIMS(c), 0.5, 1.5);
    }
    op_trial_infer_out(&t, 3);
    two_devices_check_in(&two, &t, two_types[_i % TWO_TYPES]);
    op_trial_deinit(&t);
}
END_TEST

// ---- images and tables ----------------------------------------------------------------------------------------

static void check_image(hr_op op, op_attr a, int64_t inputs, uint32_t outputs, int64_t channels,
                        hr_dtype type)
{
    op_trial t = op_trial_make(op, a);
    for (int64_t k = 0; k < inputs; k++) {
        draw(&t, DIMS(3, 40, 37, channels));
    }
    op_trial_infer_out(&t, outputs);
    two_devices_check_in(&two, &t, type);
    op_trial_deinit(&t);
}

START_TEST(images_go_around)
{
    const op_attr window = {
        .kernel_h = 3, .kernel_w = 2, .stride_h = 1, .stride_w = 1, .pad_top = 1, .pad_bottom = 1};
    const hr_dtype type = two_types[_i / 2];
    const int64_t channels = _i % 2 == 0 ? 64 : 19;
    check_image(HR_OP_MAX_POOL, window, 1, 1, channels, type);
    check_image(HR_OP_MAX_POOL, window, 1, 2, channels, type);
    check_image(HR_OP_AVG_POOL, window, 1, 1, channels, type);
    check_image(HR_OP_GLOBAL_AVG_POOL, (op_attr){0}, 1, 1, channels, type);
    check_image(HR_OP_CONCAT, (op_attr){.axis = 3}, 3, 1, channels, type);
    check_image(HR_OP_SLICE, (op_attr){.axis = 2, .offset = 3, .count = 30}, 1, 1, channels, type);
    check_image(HR_OP_REDUCE, (op_attr){.axis = 0, .count = 1}, 1, 1, channels, type);
    check_image(HR_OP_REDUCE, (op_attr){.axis = 3, .count = 1}, 1, 1, channels, type);
}
END_TEST

START_TEST(tables_go_around)
{
    enum { ROWS = 2500, ENTRIES = 400 };
    const int64_t features = _i % 2 == 0 ? 64 : 35;
    op_trial t = op_trial_make(HR_OP_EMBEDDING, (op_attr){0});
    draw_numbers(&t, ROWS, ENTRIES);
    draw(&t, DIMS(ENTRIES, features));
    op_trial_infer_out(&t, 1);
    two_devices_check_in(&two, &t, two_types[_i / 2]);
    op_trial_deinit(&t);
}
END_TEST

int main(void)
{
    if (!test_device_is_there(&device_cuda)) {
        return TEST_SKIPPED;
    }
    Suite *suite = suite_create("cuda_small_card");
    TCase *c = tcase_create("around");
    tcase_set_timeout(c, 120);
    tcase_add_checked_fixture(c, open_devices, close_devices);
    tcase_add_loop_test(c, maps_go_around, 0, TWO_TYPES * COUNTS);
    tcase_add_loop_test(c, dropout_goes_around, 0, TWO_TYPES * 2);
    tcase_add_loop_test(c, updates_go_around, 0, TWO_TYPES);
    tcase_add_loop_test(c, rows_go_around, 0, TABLES);
    tcase_add_loop_test(c, losses_go_around, 0, TABLES);
    tcase_add_loop_test(c, channels_go_around, 0, CHANNELLED);
    tcase_add_loop_test(c, images_go_around, 0, TWO_TYPES * 2);
    tcase_add_loop_test(c, tables_go_around, 0, TWO_TYPES * 2);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
