// SPDX-License-Identifier: Apache-2.0
// What the judge promises beside gradients: rounding of float32, updates, evaluation, ties, refusals.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/event.h"

#include "base/host_mem.h"
#include "numeric/op_cases.h"

#define DIMS(...) ((const int64_t[OP_MAX_RANK]){__VA_ARGS__})

enum { SEEDS = 6, SIZE = 4 };

static const hr_op operations[] = {HR_OP_CONV2D,
                                   HR_OP_DENSE,
                                   HR_OP_BATCH_NORM,
                                   HR_OP_BATCH_NORM_EVAL,
                                   HR_OP_RELU,
                                   HR_OP_MAX_POOL,
                                   HR_OP_ADD,
                                   HR_OP_GLOBAL_AVG_POOL,
                                   HR_OP_ACCURACY,
                                   HR_OP_SOFTMAX_XENT,
                                   HR_OP_SOFTMAX_XENT_STREAM,
                                   HR_OP_SOFTMAX_XENT_GRADIENT,
                                   HR_OP_SGD,
                                   HR_OP_MOMENTUM,
                                   HR_OP_ADAM,
                                   HR_OP_CONCAT,
                                   HR_OP_SLICE,
                                   HR_OP_STACK,
                                   HR_OP_ZEROS,
                                   HR_OP_REDUCE,
                                   HR_OP_ZERO_PAD,
                                   HR_OP_UPSAMPLE,
                                   HR_OP_RESIZE,
                                   HR_OP_ADAPTIVE_POOL,
                                   HR_OP_PERMUTE,
                                   HR_OP_ROLL,
                                   HR_OP_AVG_POOL,
                                   HR_OP_RELU6,
                                   HR_OP_MULTIPLY,
                                   HR_OP_SCALE,
                                   HR_OP_MSE,
                                   HR_OP_KL,
                                   HR_OP_BINARY_XENT,
                                   HR_OP_FOCAL,
                                   HR_OP_CONV2D_TRANSPOSE,
                                   HR_OP_BATCH_NORM_APPLY};

static op_device reference(void)
{
    return op_device_open(&device_reference, 1);
}

static void round_floats(double *values, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        values[i] = (double)(float)values[i];
    }
}

static void check_equal(hr_op op, const double *single, double *wide, uint64_t count)
{
    round_floats(wide, count);
    for (uint64_t i = 0; i < count; i++) {
        if (single[i] != wide[i]) {
            ck_abort_msg("%s: element %u is %.17g, not %.17g", op_name(op), (unsigned)i, single[i], wide[i]);
        }
    }
}

// The y of batch normalisation is that of the statistics as they are stored, so that a recomputation from them
// gives the same bits: what `apply` makes in float64 of the rounded ones takes the place of wide's y.
static void apply_stored_statistics(const op_trial *single, op_trial *wide, op_device device)
{
    op_trial apply = op_trial_make(HR_OP_BATCH_NORM_APPLY, wide->query.attr);
    const double *from[] = {wide->in[0], wide->in[1], wide->in[2], single->out[1], single->out[2]};
    for (uint32_t k = 0; k < 5; k++) {
        op_trial_add_in(&apply, HR_F64, wide->query.in[k].shape.dim);
        memcpy(apply.in[k], from[k], op_trial_in_count(&apply, k) * sizeof *from[k]);
    }
    op_trial_infer_out(&apply, 1);
    op_trial_run(&apply, device, NULL);
    memcpy(wide->out[0], apply.out[0], op_trial_out_count(&apply, 0) * sizeof *apply.out[0]);
    op_trial_deinit(&apply);
}

START_TEST(float32_results_are_rounded_float64_results)
{
    const hr_op op = operations[(uint32_t)_i / SEEDS];
    op_device device = reference();
    op_trial t = op_case(op, (uint64_t)_i % SEEDS, SIZE);
    for (uint32_t k = 0; k < t.query.in_count; k++) {
        round_floats(t.in[k], op_trial_in_count(&t, k));
    }
    op_trial single = op_trial_copy(&t, HR_F32), wide = op_trial_copy(&t, HR_F64);
    step_io io = {.learning_rate = 0.01, .update = 3};
    op_trial_run(&single, device, &io);
    op_trial_run(&wide, device, &io);
    if (op == HR_OP_BATCH_NORM) {
        apply_stored_statistics(&single, &wide, device);
    }
    for (uint32_t k = 0; k < t.query.in_count; k++) {
        check_equal(op, single.in[k], wide.in[k], op_trial_in_count(&t, k));
    }
    for (uint32_t k = 0; k < t.query.out_count; k++) {
        check_equal(op, single.out[k], wide.out[k], op_trial_out_count(&t, k));
    }
    op_trial_deinit(&single);
    op_trial_deinit(&wide);
    op_trial_deinit(&t);
    op_device_close(&device);
}
END_TEST

// One weight, its gradient and slots, over `updates` steps with the same gradient.
static double weight_after(hr_op op, uint32_t slots, double w, double g, uint64_t updates, double *slot)
{
    op_device device = reference();
    op_trial t = op_trial_make(op, (op_attr){.momentum = 0.9, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-7});
    for (uint32_t k = 0; k < 2 + slots; k++) {
        op_trial_add_in(&t, HR_F64, DIMS(1));
    }
    for (uint32_t k = 0; k < 1 + slots; k++) {
        op_trial_add_out(&t, HR_F64, DIMS(1));
    }
    t.in[0][0] = w;
    t.in[1][0] = g;
    for (uint64_t n = 1; n <= updates; n++) {
        step_io io = {.learning_rate = 0.1, .update = n};
        op_trial_run(&t, device, &io);
    }
    const double result = t.in[0][0];
    *slot = slots > 0 ? t.in[2][0] : 0.0;
    op_trial_deinit(&t);
    op_device_close(&device);
    return result;
}

START_TEST(sgd_steps_against_the_gradient)
{
    double slot = 0.0;
    ck_assert_double_eq_tol(weight_after(HR_OP_SGD, 0, 1.0, 0.5, 3, &slot), 1.0 - 3 * 0.1 * 0.5, 1e-15);
}
END_TEST

START_TEST(momentum_adds_up_a_geometric_sum)
{
    double slot = 0.0;
    // v: −0.05, −0.095, −0.1355
    ck_assert_double_eq_tol(weight_after(HR_OP_MOMENTUM, 1, 1.0, 0.5, 3, &slot), 1.0 - 0.2805, 1e-15);
    ck_assert_double_eq_tol(slot, -0.1355, 1e-15);
}
END_TEST

START_TEST(adam_with_a_constant_gradient_moves_by_the_rate_each_update)
{
    double slot = 0.0;
    // Both moments are the constant's after bias correction: each step is lr·g / (|g| + eps / sqrt(1 − b2^t)).
    double expected = 1.0;
    for (int t = 1; t <= 4; t++) {
        expected -= 0.1 * 0.5 / (0.5 + 1e-7 / sqrt(1.0 - pow(0.999, t)));
    }
    ck_assert_double_eq_tol(weight_after(HR_OP_ADAM, 2, 1.0, 0.5, 4, &slot), expected, 1e-12);
    ck_assert_double_eq_tol(slot, 0.5 * (1.0 - pow(0.9, 4)), 1e-15);
}
END_TEST

START_TEST(evaluation_uses_the_running_statistics_and_keeps_them)
{
    op_device device = reference();
    op_trial t = op_trial_make(HR_OP_BATCH_NORM_EVAL, (op_attr){.epsilon = 0.25});
    op_trial_add_in(&t, HR_F64, DIMS(2, 1));
    for (uint32_t k = 1; k < 5; k++) {
        op_trial_add_in(&t, HR_F64, DIMS(1));
    }
    op_trial_infer_out(&t, 1);
    t.in[0][0] = 3.0;
    t.in[0][1] = -1.0;
    t.in[1][0] = 4.0;  // gamma
    t.in[2][0] = 0.5;  // beta
    t.in[3][0] = 1.0;  // mean
    t.in[4][0] = 3.75; // variance; with epsilon 4
    op_trial_run(&t, device, NULL);
    ck_assert_double_eq(t.out[0][0], 4.5);
    ck_assert_double_eq(t.out[0][1], -3.5);
    ck_assert_double_eq(t.in[3][0], 1.0);
    ck_assert_double_eq(t.in[4][0], 3.75);
    op_trial_deinit(&t);
    op_device_close(&device);
}
END_TEST

START_TEST(one_row_has_no_unbiased_variance_and_stays_finite)
{
    op_device device = reference();
    op_trial t = op_trial_make(HR_OP_BATCH_NORM, (op_attr){.epsilon = 1e-3, .momentum = 0.5});
    op_trial_add_in(&t, HR_F64, DIMS(1, 1));
    for (uint32_t k = 1; k < 5; k++) {
        op_trial_add_in(&t, HR_F64, DIMS(1));
        t.in[k][0] = 1.0;
    }
    op_trial_infer_out(&t, 3);
    t.in[0][0] = 7.0;
    op_trial_run(&t, device, NULL);
    ck_assert_double_eq(t.out[0][0], 1.0); // beta
    ck_assert_double_eq(t.in[3][0], 4.0);
    ck_assert_double_eq(t.in[4][0], 0.5);
    op_trial_deinit(&t);
    op_device_close(&device);
}
END_TEST

START_TEST(the_first_of_equal_logits_is_the_answer)
{
    op_device device = reference();
    op_trial t = op_trial_make(HR_OP_ACCURACY, (op_attr){0});
    op_trial_add_in(&t, HR_F64, DIMS(3, 3));
    op_trial_add_in(&t, HR_I32, DIMS(3));
    op_trial_infer_out(&t, 1);
    const double logits[] = {1, 1, 0, 0, 2, 2, 5, 4, 3}, labels[] = {0, 2, 0};
    for (int i = 0; i < 9; i++) {
        t.in[0][i] = logits[i];
    }
    for (int i = 0; i < 3; i++) {
        t.in[1][i] = labels[i];
    }
    op_trial_run(&t, device, NULL);
    ck_assert_double_eq(t.out[0][0], 2.0);
    op_trial_deinit(&t);
    op_device_close(&device);
}
END_TEST

START_TEST(the_first_of_equal_pixels_is_the_place)
{
    op_device device = reference();
    const op_attr window = {
        .kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2, .pad_top = 1, .pad_left = 1};
    op_trial t = op_trial_make(HR_OP_MAX_POOL, window);
    op_trial_add_in(&t, HR_F64, DIMS(1, 3, 3, 1));
    op_trial_infer_out(&t, 2);
    const double x[] = {-5, 1, 1, 2, 3, 0, 2, 3, 3};
    for (int i = 0; i < 9; i++) {
        t.in[0][i] = x[i];
    }
    op_trial_run(&t, device, NULL);
    const double y[] = {-5, 1, 2, 3}, place[] = {3, 2, 1, 0};
    for (int i = 0; i < 4; i++) {
        ck_assert_double_eq(t.out[0][i], y[i]); // padding never wins, not even over a negative pixel
        ck_assert_double_eq(t.out[1][i], place[i]);
    }
    op_trial_deinit(&t);
    op_device_close(&device);
}
END_TEST

START_TEST(huge_logits_give_a_finite_loss)
{
    op_device device = reference();
    op_trial t = op_trial_make(HR_OP_SOFTMAX_XENT, (op_attr){0});
    op_trial_add_in(&t, HR_F64, DIMS(1, 2));
    op_trial_add_in(&t, HR_I32, DIMS(1));
    op_trial_infer_out(&t, 2);
    t.in[0][0] = 1e4;
    t.in[0][1] = -1e4;
    t.in[1][0] = 1;
    op_trial_run(&t, device, NULL);
    ck_assert_double_eq(t.out[1][0], 2e4);
    ck_assert_double_eq(t.out[0][0], 1.0);
    op_trial stream = op_trial_make(HR_OP_SOFTMAX_XENT_STREAM, (op_attr){0});
    op_trial_add_in(&stream, HR_F64, DIMS(1, 2));
    op_trial_add_in(&stream, HR_I32, DIMS(1));
    op_trial_infer_out(&stream, 3);
    memcpy(stream.in[0], t.in[0], 2 * sizeof *t.in[0]);
    stream.in[1][0] = 1;
    op_trial_run(&stream, device, NULL);
    ck_assert_double_eq(stream.out[2][0], 2e4);
    ck_assert_double_eq(stream.out[0][0], 1e4);
    ck_assert_double_eq(stream.out[1][0], 1.0);
    op_trial_deinit(&stream);
    op_trial_deinit(&t);
    op_device_close(&device);
}
END_TEST

START_TEST(input_takes_images_in_their_type_and_read_brings_scalars_back)
{
    op_device device = reference();
    const double images[] = {0.25, 0.5, 0.75, 1.0};
    const int32_t labels[] = {3, 1};
    step_io io = {.slot = {images, labels}};
    op_trial x = op_trial_make(HR_OP_INPUT, (op_attr){.slot = 0});
    op_trial y = op_trial_make(HR_OP_INPUT, (op_attr){.slot = 1});
    op_trial loss = op_trial_make(HR_OP_READ, (op_attr){.slot = 0});
    op_trial correct = op_trial_make(HR_OP_READ, (op_attr){.slot = 1});
    op_trial_add_out(&x, HR_F64, DIMS(2, 2));
    op_trial_add_out(&y, HR_I32, DIMS(2));
    op_trial_add_in(&loss, HR_F32, DIMS(1));
    op_trial_add_in(&correct, HR_I32, DIMS(1));
    loss.in[0][0] = 1.5;
    correct.in[0][0] = 7;
    op_trial_run(&x, device, &io);
    op_trial_run(&y, device, &io);
    op_trial_run(&loss, device, &io);
    op_trial_run(&correct, device, &io);
    ck_assert_double_eq(x.out[0][3], 1.0);
    ck_assert_double_eq(y.out[0][0], 3.0);
    ck_assert_double_eq(io.loss, 1.5);
    ck_assert_int_eq(io.correct, 7);
    op_trial_deinit(&x);
    op_trial_deinit(&y);
    op_trial_deinit(&loss);
    op_trial_deinit(&correct);
    op_device_close(&device);
}
END_TEST

// A program of one ReLU over four float32 numbers.
typedef struct tiny {
    program p;
    tensor tensors[2];
    instr instrs[1];
} tiny;

static void tiny_init(tiny *t, hr_op op, hr_layout layout)
{
    const hr_shape four = shape_of(1, (const int64_t[]){4});
    *t = (tiny){.instrs[0] = {.op = op, .in = {0}, .out = {1}, .in_count = 1, .out_count = 1}};
    for (uint32_t k = 0; k < 2; k++) {
        t->tensors[k] = (tensor){
            .name = "t", .shape = four, .dtype = HR_F32, .layout = layout, .bytes = 16, .storage = k};
    }
    t->p = (program){
        .tensors = t->tensors, .instrs = t->instrs, .tensor_count = 2, .instr_count = 1, .batch = 4};
}

START_TEST(what_it_cannot_run_is_refused_at_load)
{
    op_device device = reference();
    tiny t;
    void *kernels = NULL;
    hr_err err = {0};
    tiny_init(&t, HR_OP_REORDER, HR_LAYOUT_PLAIN);
    ck_assert_int_eq(device.ops->load(device.context, &t.p, &kernels, &err), HR_DEVICE);
    ck_assert_str_eq(err.sentence, "the reference device has no kernel for reorder");
    ck_assert_ptr_null(kernels);
    tiny_init(&t, HR_OP_RELU, HR_LAYOUT_LIBRARY);
    ck_assert_int_eq(device.ops->load(device.context, &t.p, &kernels, &err), HR_DEVICE);
    ck_assert_str_eq(err.sentence, "relu on the reference device needs plain layouts, had library");
    op_device_close(&device);
}
END_TEST

START_TEST(every_allocation_of_load_may_fail)
{
    op_device device = reference();
    tiny t;
    void *kernels = NULL;
    tiny_init(&t, HR_OP_RELU, HR_LAYOUT_PLAIN);
    const int64_t live = hr_host_mem_live();
    hr_status status = HR_NOMEM;
    uint64_t nth = 0;
    while (status != HR_OK) {
        hr_err err = {0};
        ck_assert_int_eq(status, HR_NOMEM);
        (void)hr_host_mem_fail_at(++nth);
        status = device.ops->load(device.context, &t.p, &kernels, &err);
        ck_assert_int_eq(err.status, status);
        ck_assert(status == HR_OK || hr_host_mem_live() == live);
    }
    (void)hr_host_mem_fail_at(0);
    ck_assert_uint_eq(nth, 4); // record, queries, scratch, and the one that succeeds
    device.ops->unload(device.context, kernels);
    ck_assert_int_eq(hr_host_mem_live(), live);
    op_device_close(&device);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reference_device");
    TCase *all = tcase_create("promises");
    tcase_add_loop_test(all, float32_results_are_rounded_float64_results, 0,
                        (int)(sizeof operations / sizeof operations[0]) * SEEDS);
    tcase_add_test(all, sgd_steps_against_the_gradient);
    tcase_add_test(all, momentum_adds_up_a_geometric_sum);
    tcase_add_test(all, adam_with_a_constant_gradient_moves_by_the_rate_each_update);
    tcase_add_test(all, evaluation_uses_the_running_statistics_and_keeps_them);
    tcase_add_test(all, one_row_has_no_unbiased_variance_and_stays_finite);
    tcase_add_test(all, the_first_of_equal_logits_is_the_answer);
    tcase_add_test(all, the_first_of_equal_pixels_is_the_place);
    tcase_add_test(all, huge_logits_give_a_finite_loss);
    tcase_add_test(all, input_takes_images_in_their_type_and_read_brings_scalars_back);
    tcase_add_test(all, what_it_cannot_run_is_refused_at_load);
    tcase_add_test(all, every_allocation_of_load_may_fail);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
