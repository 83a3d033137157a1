// SPDX-License-Identifier: Apache-2.0
// Attention and convolutions on the cuda device, at the shapes where its kernels change their way: tiles and one more,
// one query, heads of one feature to heads that are made in windows, keys of another number than queries; images of one
// pixel, kernels larger than the image, groups, strides that kernels do not reach over, channels in vectors and not.
// Padding below zero, which cuDNN does not take, brings convolutions to our own product. Forward and backward against
// the judge in all three types, and the same bits in a second run of what is ours.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/bf16_trial.h"
#include "numeric/op_draw.h"
#include "numeric/op_tolerance.h"

static const hr_dtype types[] = {HR_F32, HR_F16, HR_BF16};
enum { TYPES = sizeof types / sizeof types[0], SEEDS = 16 };

static op_device card, judge;
static uint64_t state;

static void open_devices(void)
{
    card = op_device_open(&device_cuda, 1);
    judge = op_device_open(&device_reference, 1);
}

static void close_devices(void)
{
    op_device_close(&card);
    op_device_close(&judge);
}

// ---- one trial on both devices --------------------------------------------------------------------------------

static op_trial in_type(op_trial *t, hr_dtype type, bf16_wide w)
{
    if (type == HR_F32) {
        op_trial rounded = op_trial_copy(t, HR_F32);
        op_trial_deinit(t);
        *t = rounded;
        return op_trial_copy(t, HR_F32);
    }
    half_round_inputs(t, w, type);
    return half_trial(t, w, type);
}

// Where the judge has zero or nearly so (the gradient of a softmax over one key), no more than what rounding leaves.
static bool agrees(const double *ours, const double *judged, uint64_t count, double limit)
{
    double largest = 0.0;
    for (uint64_t i = 0; i < count; i++) {
        const double apart = fabs(ours[i] - judged[i]);
        largest = apart > largest || apart != apart ? apart : largest;
    }
    return largest <= limit || op_distance(ours, judged, count) <= limit;
}

static void run_both(op_trial *t, hr_dtype type, bf16_wide w)
{
    char shape[96];
    const bool any_order =
        t->query.op == HR_OP_ATTENTION_BWD && type != HR_F32; // the library may add as it likes
    op_trial ours = in_type(t, type, w), again = in_type(t, type, w);
    op_trial_run(&ours, card, NULL);
    op_trial_run(&again, card, NULL);
    op_trial_run(t, judge, NULL);
    for (uint32_t k = 0; k < t->query.out_count; k++) {
        const uint64_t count = op_trial_out_count(t, k);
        ck_assert_msg(agrees(ours.out[k], t->out[k], count, op_tolerance((hr_op)t->query.op, type)),
                      "%s of %s over %s, kernel %dx%d, stride %d, groups %d, heads %d: output %u is %g from "
                      "the judge's",
                      op_name((hr_op)t->query.op), dtype_name(type),
                      shape_text(&t->query.in[0].shape, shape, sizeof shape), t->query.attr.kernel_h,
                      t->query.attr.kernel_w, t->query.attr.stride_h, t->query.attr.groups,
                      t->query.attr.heads, k, op_distance(ours.out[k], t->out[k], count));
        ck_assert_msg(any_order || memcmp(ours.out[k], again.out[k], count * sizeof(double)) == 0,
                      "%s: output %u has other bits in a second run", op_name((hr_op)t->query.op), k);
    }
    op_trial_deinit(&ours);
    op_trial_deinit(&again);
}

static void run_gradients(const op_trial *forward, hr_dtype type)
{
    const op_row *row = op_row_of((hr_op)forward->query.op);
    const uint64_t count = op_trial_out_count(forward, 0);
    double *dy = calloc(count, sizeof *dy);
    ck_assert_ptr_nonnull(dy);
    op_fill(dy, count, &state, -1.0, 1.0);
    for (uint32_t g = 0; g < row->grad_count; g++) {
        if (op_trial_has_gradient(forward, g)) {
            op_trial t = op_trial_backward(forward, g, dy);
            run_both(&t, type, bf16_wide_of_backward(&forward->query, &row->grad[g]));
            op_trial_deinit(&t);
        }
    }
    free(dy);
}

static void check_in_all_types(op_trial *made)
{
    for (int k = 0; k < TYPES; k++) {
        op_trial t = op_trial_copy(made, HR_F64);
        run_both(&t, types[k], bf16_wide_of((hr_op)t.query.op));
        if (t.query.attr.act == HR_ACT_NONE) {
            run_gradients(&t, types[k]);
        }
        op_trial_deinit(&t);
    }
    op_trial_deinit(made);
}

static int64_t any(int64_t low, int64_t high)
{
    return op_random_int(&state, low, high);
}

static void draw(op_trial *t, const int64_t dims[OP_MAX_RANK])
{
    op_trial_add_in(t, HR_F64, dims);
    op_fill(t->in[t->query.in_count - 1], op_trial_in_count(t, t->query.in_count - 1u), &state, -1.0, 1.0);
}

// ---- attention ------------------------------------------------------------------------------------------------

static const struct {
    int64_t samples, queries, keys, heads, features;
} attentions[] = {
    {1, 1, 1, 1, 1},   {2, 1, 7, 3, 1},   {1, 64, 64, 1, 64},  {1, 65, 63, 2, 8},  {1, 63, 130, 1, 40},
    {2, 5, 5, 2, 7},   {1, 70, 70, 1, 3}, {1, 130, 65, 1, 16}, {1, 9, 9, 1, 65},   {1, 20, 66, 1, 100},
    {1, 66, 20, 1, 9}, {1, 7, 7, 2, 128}, {1, 10, 11, 1, 129}, {1, 67, 3, 1, 256}, {1, 3, 3, 1, 300},
};
enum { ATTENTIONS = sizeof attentions / sizeof attentions[0] };

START_TEST(attention_at_the_edges_of_tiles)
{
    const int64_t width = attentions[_i / 2].heads * attentions[_i / 2].features,
                  n = attentions[_i / 2].samples;
    state = (uint64_t)_i;
    op_trial t = op_trial_make(HR_OP_ATTENTION, (op_attr){.heads = (int32_t)attentions[_i / 2].heads,
                                                          .flags = _i % 2 == 1 ? OP_FLAG_CAUSAL : 0});
    draw(&t, DIMS(n, attentions[_i / 2].queries, width));
    draw(&t, DIMS(n, attentions[_i / 2].keys, width));
    draw(&t, DIMS(n, attentions[_i / 2].keys, width));
    op_trial_infer_out(&t, 2);
    check_in_all_types(&t);
}
END_TEST

// ---- convolutions ---------------------------------------------------------------------------------------------

static op_trial convolution(op_attr a, int64_t h, int64_t w, int64_t channels, int64_t filters)
{
    op_trial t = op_trial_make(HR_OP_CONV2D, a);
    draw(&t, DIMS(any(1, 2), h, w, channels));
    draw(&t, DIMS(a.kernel_h, a.kernel_w, channels / a.groups, filters));
    if (any(0, 1) == 1) {
        draw(&t, DIMS(filters));
    }
    op_trial_infer_out(&t, 1);
    return t;
}

static hr_act any_act(void)
{
    static const hr_act acts[] = {HR_ACT_NONE, HR_ACT_NONE, HR_ACT_RELU, HR_ACT_RELU6};
    return acts[any(0, 3)];
}

// Rectangular kernels, strides of up to three and gaps between taps, so that some pixels meet no tap, and an image cut at its lower edge.
START_TEST(convolutions_without_a_library)
{
    static const int64_t channels[] = {1, 3, 5, 8, 16, 24};
    state = (uint64_t)_i + 100;
    op_attr a = {.kernel_h = (int32_t)any(1, 4),
                 .kernel_w = (int32_t)any(1, 4),
                 .stride_h = (int32_t)any(1, 3),
                 .stride_w = (int32_t)any(1, 3),
                 .pad_top = (int32_t)any(0, 3),
                 .pad_left = (int32_t)any(0, 3),
                 .pad_bottom = -1,
                 .pad_right = (int32_t)any(0, 3),
                 .gap_h = _i % 2 == 1 ? (int32_t)any(0, 3) : 0,
                 .gap_w = _i % 2 == 1 ? (int32_t)any(0, 3) : 0,
                 .groups = (int32_t)any(1, 3),
                 .act = (int32_t)any_act()};
    const int64_t c = channels[any(0, 5)] * a.groups, f = channels[any(0, 5)] * a.groups;
    const int64_t high = op_reach(a.kernel_h, a.gap_h), wide = op_reach(a.kernel_w, a.gap_w);
    op_trial t = convolution(a, high + any(1, 9), wide + any(0, 9), c, f);
    check_in_all_types(&t);
}
END_TEST

// More rows and columns than a tile has, depth that is no multiple of a step.
START_TEST(convolutions_of_several_tiles)
{
    state = 7;
    const op_attr a = {.kernel_h = 3,
                       .kernel_w = 3,
                       .stride_h = 1,
                       .stride_w = 2,
                       .pad_top = 2,
                       .pad_left = 1,
                       .pad_bottom = -1,
                       .pad_right = 1,
                       .groups = 1};
    op_trial odd = convolution(a, 14, 23, 67, 70), even = convolution(a, 14, 23, 72, 136);
    check_in_all_types(&odd);
    check_in_all_types(&even);
}
END_TEST

START_TEST(transposed_convolutions_without_a_library)
{
    state = (uint64_t)_i + 200;
    const int32_t stride = (int32_t)any(2, 3), kernel = (int32_t)any(1, 4);
    const op_attr a = {.kernel_h = kernel,
                       .kernel_w = kernel,
                       .stride_h = stride,
                       .stride_w = stride,
                       .pad_top = kernel > 1,
                       .pad_bottom = -1,
                       .pad_right = 1 - stride,
                       .groups = 1};
    const int64_t c = any(1, 20), f = _i % 2 == 0 ? 8 * any(1, 3) : any(1, 20);
    op_trial t = op_trial_make(HR_OP_CONV2D_TRANSPOSE, a);
    draw(&t, DIMS(any(1, 2), any(2, 7), any(1, 7), c));
    draw(&t, DIMS(a.kernel_h, a.kernel_w, f, c));
    if (any(0, 1) == 1) {
        draw(&t, DIMS(f));
    }
    op_trial_infer_out(&t, 1);
    check_in_all_types(&t);
}
END_TEST

// Images of one pixel, kernels larger than the image, every side padded by itself.
START_TEST(depthwise_convolutions)
{
    state = (uint64_t)_i + 300;
    const int32_t kernel = any(0, 1) == 1 ? 3 : 5, stride = (int32_t)any(1, 2);
    const op_attr a = {.kernel_h = kernel,
                       .kernel_w = kernel,
                       .stride_h = stride,
                       .stride_w = stride,
                       .pad_top = (int32_t)any(kernel / 2, kernel - 1),
                       .pad_left = (int32_t)any(kernel / 2, kernel - 1),
                       .pad_bottom = (int32_t)any(kernel / 2, kernel - 1),
                       .pad_right = (int32_t)any(kernel / 2, kernel - 1),
                       .act = (int32_t)any_act()};
    op_attr grouped = a;
    const int64_t c = 8 * (_i % 4 == 0 ? any(5, 20) : any(1, 3));
    const int64_t h = _i % 3 == 0 ? any(1, 2) : any(3, 14), w = _i % 5 == 0 ? any(1, 2) : any(3, 19);
    grouped.groups = (int32_t)c;
    op_trial t = convolution(grouped, h, w, c, c);
    check_in_all_types(&t);
}
END_TEST

int main(void)
{
    if (!test_device_is_there(&device_cuda)) {
        return TEST_SKIPPED;
    }
    Suite *suite = suite_create("cuda_tiles");
    TCase *all = tcase_create("against the judge");
    tcase_set_timeout(all, 60);
    tcase_add_checked_fixture(all, open_devices, close_devices);
    tcase_add_loop_test(all, attention_at_the_edges_of_tiles, 0, 2 * ATTENTIONS);
    tcase_add_loop_test(all, convolutions_without_a_library, 0, SEEDS);
    tcase_add_test(all, convolutions_of_several_tiles);
    tcase_add_loop_test(all, transposed_convolutions_without_a_library, 0, SEEDS);
    tcase_add_loop_test(all, depthwise_convolutions, 0, SEEDS);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
