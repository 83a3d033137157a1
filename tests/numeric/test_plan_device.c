// SPDX-License-Identifier: Apache-2.0
// The plan device: estimated workspaces, simulated time, numbers for memory, and no arithmetic.
#include <check.h>
#include <math.h>
#include <string.h>

#include "headroom/event.h"
#include "headroom/units.h"

#include "device/device.h"

static const hr_card card = {.name = "test-card",
                             .memory_bytes_per_second = 1e9,
                             .float32_flops = 1e12,
                             .float64_flops = 1e11,
                             .link_bytes_per_second = 1e8,
                             .launch_seconds = 1e-6,
                             .granularity_bytes = 64 * 1024};

static void *open_plan(const hr_card *dress)
{
    void *context = NULL;
    const device_options options = {.card = dress};
    ck_assert_int_eq(device_plan.open(&options, &context, NULL), HR_OK);
    return context;
}

static target_answer answer_to(hr_op op, int64_t kernel, int64_t depth, int64_t channels,
                               uint64_t limit_bytes)
{
    void *context = open_plan(&card);
    const op_operand image = {.shape = shape_of(4, (const int64_t[]){2, 8, 8, channels})};
    const op_operand weights = {.shape = shape_of(4, (const int64_t[]){kernel, kernel, depth, channels})};
    op_query q = {.op = (uint32_t)op, .in_count = 2, .out_count = 1};
    q.attr.groups = (int32_t)(channels / depth);
    q.in[0] = q.in[1] = q.out[0] = image;
    *(op == HR_OP_CONV2D_BWD_WEIGHTS ? &q.out[0] : &q.in[1]) = weights;
    hr_target target;
    target_answer answer;
    device_plan.target(context, &target);
    ck_assert_int_eq(target.ask(target.context, &q, limit_bytes, &answer, NULL), HR_OK);
    ck_assert_uint_eq(answer.reorder_count, 0);
    device_plan.close(context);
    return answer;
}

static uint64_t workspace(hr_op op, int64_t kernel, int64_t depth, int64_t channels, uint64_t limit_bytes)
{
    return answer_to(op, kernel, depth, channels, limit_bytes).workspace_bytes;
}

START_TEST(convolution_workspaces_are_those_measured_on_a_card)
{
    ck_assert_uint_eq(workspace(HR_OP_CONV2D, 3, 64, 64, UINT64_MAX), 131);
    ck_assert_uint_eq(workspace(HR_OP_CONV2D_BWD_DATA, 3, 64, 64, UINT64_MAX), 131);
    ck_assert_uint_eq(workspace(HR_OP_CONV2D_BWD_WEIGHTS, 3, 64, 64, UINT64_MAX), 295107);
}
END_TEST

START_TEST(pointwise_and_depthwise_kernels_need_none)
{
    ck_assert_uint_eq(workspace(HR_OP_CONV2D_BWD_WEIGHTS, 1, 64, 64, UINT64_MAX), 0);
    ck_assert_uint_eq(workspace(HR_OP_CONV2D_BWD_WEIGHTS, 3, 1, 64, UINT64_MAX), 0);
    ck_assert_uint_eq(workspace(HR_OP_DENSE, 3, 64, 64, UINT64_MAX), 0);
}
END_TEST

START_TEST(a_limit_turns_the_split_product_off)
{
    ck_assert_uint_eq(workspace(HR_OP_CONV2D_BWD_WEIGHTS, 3, 64, 64, 295106), 0);
    ck_assert_uint_eq(workspace(HR_OP_CONV2D_BWD_WEIGHTS, 3, 64, 64, 295107), 295107);
    ck_assert_uint_eq(answer_to(HR_OP_CONV2D_BWD_WEIGHTS, 3, 64, 64, 295106).behind,
                      1); // it was the first choice
    ck_assert_uint_eq(answer_to(HR_OP_CONV2D_BWD_WEIGHTS, 3, 64, 64, 295107).behind, 0);
    ck_assert_uint_eq(answer_to(HR_OP_DENSE, 3, 64, 64, 0).behind, 0);
}
END_TEST

// Nanoseconds of one instruction over a tensor of `dtype` on the given card.
static uint64_t duration(const hr_card *dress, hr_op op, hr_dtype dtype, hr_lane lane, uint64_t flops,
                         uint64_t bytes_moved)
{
    void *context = open_plan(dress);
    const tensor t = {.name = "t", .shape = shape_of(1, (const int64_t[]){1}), .dtype = dtype};
    const instr i = {.op = op,
                     .in_count = 1,
                     .out_count = 1,
                     .lane = (uint8_t)lane,
                     .flops = flops,
                     .bytes_moved = bytes_moved};
    const program p = {.tensors = &t, .instrs = &i, .tensor_count = 1, .instr_count = 1, .batch = 1};
    ck_assert_int_eq(device_plan.time_basis(context),
                     dress == &card ? HR_TIME_DATASHEET : HR_TIME_USUAL_CARD);
    const uint64_t ns = device_plan.duration_ns(context, &p, &i);
    device_plan.close(context);
    return ns;
}

// Of what the card file promises: the rates that kernels reach are below it (tests/unit/test_card_time.c).
START_TEST(time_is_never_below_the_roofline)
{
    ck_assert_uint_gt(duration(&card, HR_OP_RELU, HR_F32, HR_LANE_COMPUTE, 5000000, 1000), 5000);
    ck_assert_uint_gt(duration(&card, HR_OP_RELU, HR_F32, HR_LANE_COMPUTE, 5000000, 7000), 7000);
    ck_assert_uint_gt(duration(&card, HR_OP_RELU, HR_F64, HR_LANE_COMPUTE, 5000000, 7000), 50000);
    ck_assert_uint_eq(duration(&card, HR_OP_INPUT, HR_F32, HR_LANE_H2D, 0, 100), 1000 + 1000);
}
END_TEST

START_TEST(more_work_never_takes_less)
{
    uint64_t last_flops = 0, last_bytes = 0;
    for (uint64_t amount = 1; amount < UINT64_C(1) << 50; amount = amount * 3 + 1) {
        const uint64_t by_flops = duration(&card, HR_OP_DENSE, HR_F16, HR_LANE_COMPUTE, amount, 4096);
        const uint64_t by_bytes = duration(&card, HR_OP_DENSE, HR_F16, HR_LANE_COMPUTE, 4096, amount);
        ck_assert_uint_ge(by_flops, last_flops);
        ck_assert_uint_ge(by_bytes, last_bytes);
        last_flops = by_flops;
        last_bytes = by_bytes;
    }
    ck_assert_uint_gt(last_bytes, 1000000); // and in the end it does take more
}
END_TEST

START_TEST(what_the_executor_does_itself_costs_nothing)
{
    const hr_op ops[] = {HR_OP_ALLOC, HR_OP_FREE, HR_OP_REPEAT, HR_OP_END, HR_OP_RETAIN, HR_OP_RESHAPE};
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        ck_assert_uint_eq(duration(&card, ops[k], HR_F32, HR_LANE_COMPUTE, 100, 100), 0);
    }
}
END_TEST

START_TEST(without_a_card_times_are_those_of_the_card_unlimited)
{
    hr_card unlimited;
    ck_assert_int_eq(hr_card_load(HR_CARD_UNLIMITED, &unlimited, NULL), HR_OK);
    ck_assert_uint_eq(duration(NULL, HR_OP_RELU, HR_F32, HR_LANE_COMPUTE, 5000000, 7000),
                      duration(&unlimited, HR_OP_RELU, HR_F32, HR_LANE_COMPUTE, 5000000, 7000));
}
END_TEST

START_TEST(memory_is_numbers_with_the_cards_granularity)
{
    const hr_card *dresses[] = {&card, NULL};
    const uint64_t granularities[] = {64 * HR_KIB, 2 * HR_MIB};
    for (int k = 0; k < 2; k++) {
        void *context = open_plan(dresses[k]);
        backing memory = {0};
        ck_assert_int_eq(device_plan.memory(context, UINT64_C(1) << 45, false, &memory, NULL), HR_OK);
        ck_assert_uint_eq(memory.granularity_bytes, granularities[k]);
        ck_assert_uint_ge(memory.take(memory.context, 1 << 20), UINT64_C(1) << 40);
        backing_close(&memory);
        device_plan.close(context);
    }
}
END_TEST

START_TEST(nothing_is_computed)
{
    void *context = open_plan(&card), *kernels = NULL;
    const tensor t = {.name = "loss", .shape = shape_of(1, (const int64_t[]){1})};
    const instr read = {.op = HR_OP_READ, .in_count = 1};
    const program p = {.tensors = &t, .instrs = &read, .tensor_count = 1, .instr_count = 1, .batch = 1};
    step_io io = {.loss = 1.0, .correct = 1};
    char weights[8] = "untouch";
    ck_assert_int_eq(device_plan.load(context, &p, &kernels, NULL), HR_OK);
    ck_assert_int_eq(device_plan.run(context, kernels, 0, NULL, &io, NULL), HR_OK);
    ck_assert_double_nan(io.loss);
    ck_assert_int_eq(io.correct, 0);
    ck_assert_int_eq(device_plan.copy_in(context, UINT64_C(1) << 40, weights, sizeof weights, NULL), HR_OK);
    ck_assert_int_eq(device_plan.copy_out(context, UINT64_C(1) << 40, weights, sizeof weights, NULL), HR_OK);
    ck_assert_mem_eq(weights, "\0\0\0\0\0\0\0", sizeof weights);
    device_plan.unload(context, kernels);
    device_plan.close(context);
}
END_TEST

START_TEST(it_says_which_card_answers)
{
    char text[16];
    void *context = open_plan(&card);
    device_plan.isa(context, text, sizeof text);
    ck_assert_str_eq(text, "test-card");
    device_plan.close(context);
    ck_assert(device_plan.simulated);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_device");
    TCase *all = tcase_create("promises");
    tcase_add_test(all, convolution_workspaces_are_those_measured_on_a_card);
    tcase_add_test(all, pointwise_and_depthwise_kernels_need_none);
    tcase_add_test(all, a_limit_turns_the_split_product_off);
    tcase_add_test(all, time_is_never_below_the_roofline);
    tcase_add_test(all, more_work_never_takes_less);
    tcase_add_test(all, what_the_executor_does_itself_costs_nothing);
    tcase_add_test(all, without_a_card_times_are_those_of_the_card_unlimited);
    tcase_add_test(all, memory_is_numbers_with_the_cards_granularity);
    tcase_add_test(all, nothing_is_computed);
    tcase_add_test(all, it_says_which_card_answers);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
