// SPDX-License-Identifier: Apache-2.0
// The time of an instruction on a card: products fill a card in waves, bytes pass at the bandwidth that is reached, and
// what knobs and cards do to the planned time of a whole step.
#include <check.h>
#include <stdlib.h>

#include "headroom/engine.h"

#include "device/card_time.h"

static const char *const all_cards[] = {"rtx3060-12g", "rtx3070-8g", "rtx4090-24g", "a100-80g", "h200-141g"};
enum { ALL_CARDS = sizeof all_cards / sizeof *all_cards };

static card_time time_on(const char *name, bool tf32, bool captured)
{
    hr_card card;
    card_time t;
    hr_err err = {0};
    ck_assert_msg(hr_card_load(name, &card, &err) == HR_OK, "%s", err.sentence);
    card_time_init(&t, &card, tf32, captured);
    return t;
}

// Nanoseconds of y[m, n] = x[m, k] w.
static uint64_t dense_ns(const card_time *t, hr_dtype dtype, int64_t m, int64_t n, int64_t k)
{
    const tensor tensors[] = {{.shape = shape_of(2, (const int64_t[]){m, k}), .dtype = dtype},
                              {.shape = shape_of(2, (const int64_t[]){k, n}), .dtype = dtype},
                              {.shape = shape_of(2, (const int64_t[]){m, n}), .dtype = dtype}};
    const instr i = {.op = HR_OP_DENSE,
                     .in = {0, 1},
                     .out = {2},
                     .in_count = 2,
                     .out_count = 1,
                     .flops = (uint64_t)(2 * m * n * k),
                     .bytes_moved = (uint64_t)(m * k + k * n + m * n) * dtype_bytes(dtype)};
    const program p = {.tensors = tensors, .instrs = &i, .tensor_count = 3, .instr_count = 1};
    return card_time_ns(t, &p, &i);
}

// The share of the card file's rate that a product of two-byte numbers reaches.
static double share_of(const card_time *t, int64_t m, int64_t n, int64_t k)
{
    const double flops = 2.0 * (double)m * (double)n * (double)k;
    return flops / t->card.bfloat16_flops / ((double)dense_ns(t, HR_BF16, m, n, k) * 1e-9);
}

START_TEST(the_multiprocessors_of_a_card_are_counted_by_its_rate)
{
    const double published[ALL_CARDS] = {28, 46, 128, 108, 132};
    for (int k = 0; k < ALL_CARDS; k++) {
        const card_time t = time_on(all_cards[k], false, false);
        ck_assert_double_eq_tol(t.multiprocessors, published[k], 0.04 * published[k]);
    }
}
END_TEST

START_TEST(large_products_reach_what_was_measured_and_small_ones_do_not)
{
    for (int k = 0; k < ALL_CARDS; k++) {
        const card_time t = time_on(all_cards[k], false, true);
        const double large = share_of(&t, 8192, 8192, 8192);
        ck_assert_double_lt(large, t.rates->tensor);
        ck_assert_double_gt(large, 0.8 * t.rates->tensor);
        ck_assert_double_lt(share_of(&t, 512, 512, 512), 0.6 * large);
        ck_assert_double_lt(share_of(&t, 8192, 32, 8192), 0.6 * large); // mostly traffic
    }
}
END_TEST

START_TEST(a_product_that_does_not_fill_the_card_takes_as_long_as_one_that_does)
{
    const card_time t = time_on("a100-80g", false, true);
    const uint64_t one = dense_ns(&t, HR_F16, 128, 128, 512),
                   all = dense_ns(&t, HR_F16, 27 * 128, 4 * 128, 512);
    ck_assert_uint_lt(all, 6 * one); // for 108 times the work, on 108 multiprocessors
    ck_assert_uint_gt(dense_ns(&t, HR_F16, 8 * 27 * 128, 4 * 128, 512), 3 * all);
}
END_TEST

START_TEST(more_of_a_product_never_takes_less)
{
    const card_time t = time_on("h200-141g", false, false);
    const int64_t fixed = 768;
    uint64_t last[3] = {0};
    for (int64_t size = 16; size <= 16384; size += 48) {
        const uint64_t ns[] = {dense_ns(&t, HR_BF16, size, fixed, fixed),
                               dense_ns(&t, HR_BF16, fixed, size, fixed),
                               dense_ns(&t, HR_BF16, fixed, fixed, size)};
        for (int k = 0; k < 3; k++) {
            ck_assert_msg(ns[k] >= last[k], "%lld along %d", (long long)size, k);
            last[k] = ns[k];
        }
    }
}
END_TEST

START_TEST(types_order_the_products)
{
    for (int k = 0; k < ALL_CARDS; k++) {
        const card_time plain = time_on(all_cards[k], false, false);
        const card_time tf32 = time_on(all_cards[k], true, false);
        const uint64_t half = dense_ns(&plain, HR_F16, 4096, 4096, 4096);
        const uint64_t rounded = dense_ns(&tf32, HR_F32, 4096, 4096, 4096);
        const uint64_t full = dense_ns(&plain, HR_F32, 4096, 4096, 4096);
        ck_assert_uint_lt(half, rounded);
        ck_assert_uint_le(rounded, full);
        ck_assert_uint_lt(full, dense_ns(&plain, HR_F64, 4096, 4096, 4096) + full / 2);
        ck_assert_uint_eq(half, dense_ns(&tf32, HR_F16, 4096, 4096, 4096));
    }
}
END_TEST

START_TEST(bytes_pass_at_the_bandwidth_that_is_reached)
{
    const tensor x = {.shape = shape_of(1, (const int64_t[]){1 << 28}), .dtype = HR_F32};
    for (int k = 0; k < ALL_CARDS; k++) {
        const card_time t = time_on(all_cards[k], false, false);
        instr i = {.op = HR_OP_ADD,
                   .in_count = 1,
                   .out_count = 1,
                   .flops = 1 << 28,
                   .bytes_moved = UINT64_C(3) << 30};
        const program p = {.tensors = &x, .instrs = &i, .tensor_count = 1, .instr_count = 1};
        const double add = (double)card_time_ns(&t, &p, &i) * 1e-9;
        const double reached = (double)i.bytes_moved / add / t.card.memory_bytes_per_second;
        ck_assert_double_eq_tol(reached, t.rates->memory, 0.05);
        i.op = HR_OP_BATCH_NORM; // reads its x once more
        ck_assert_double_gt((double)card_time_ns(&t, &p, &i) * 1e-9, 1.5 * add);
    }
}
END_TEST

START_TEST(an_interpreter_issues_more_slowly_than_a_graph_and_a_captured_step_is_issued_by_nobody)
{
    const instr i = {.op = HR_OP_RELU, .in_count = 1, .out_count = 1}, none = {.op = HR_OP_FREE};
    const program eager = {.eager = true}, graph = {.eager = false};
    const card_time t = time_on("a100-80g", false, false), captured = time_on("a100-80g", false, true);
    ck_assert_uint_gt(card_issue_ns(&t, &eager, &i), card_issue_ns(&t, &graph, &i));
    ck_assert_uint_gt(card_issue_ns(&t, &graph, &i), 0);
    ck_assert_uint_eq(card_issue_ns(&captured, &eager, &i), 0);
    ck_assert_uint_eq(card_issue_ns(&t, &eager, &none), 0);
}
END_TEST

// A step of the named preset under `pairs` (ends in NULL), as a what-if says it.
static hr_whatif plan_of(const char *name, const char *const *pairs)
{
    hr_err err = {0};
    hr_preset *preset = NULL;
    hr_planner *planner = NULL;
    hr_whatif w = {0};
    ck_assert_msg(hr_preset_open(name, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    hr_knobs knobs = *hr_preset_knobs(preset);
    for (; *pairs != NULL; pairs++) {
        ck_assert_msg(hr_knobs_set_pair(&knobs, *pairs, &err) == HR_OK, "%s", err.sentence);
    }
    ck_assert_msg(hr_planner_open(preset, &planner, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(hr_planner_plan(planner, &knobs, &w, &err) == HR_OK, "%s", err.sentence);
    hr_planner_close(planner);
    hr_preset_close(preset);
    return w;
}

static double seconds_of(const char *name, const char *const *pairs)
{
    return plan_of(name, pairs).step_seconds;
}

#define SECONDS(name, ...) seconds_of(name, (const char *const[]){__VA_ARGS__, NULL})
#define A100               "device.kind=plan", "device.card=a100-80g"

// What workspace.limit keeps from a library costs time, and gives back bytes.
START_TEST(a_smaller_workspace_limit_never_makes_a_step_faster)
{
    static const char *const limits[] = {"workspace.limit=none", "workspace.limit=8MiB",
                                         "workspace.limit=1MiB", "workspace.limit=0B"};
    double last = 0;
    for (int k = 0; k < 4; k++) {
        const double seconds = SECONDS("resnet50", A100, limits[k]);
        ck_assert_double_ge(seconds, last);
        last = seconds;
    }
    ck_assert_double_gt(last, 1.02 * SECONDS("resnet50", A100));
}
END_TEST

START_TEST(an_engine_behind_the_first_is_slower_and_a_kernel_of_our_own_slower_still)
{
    const card_time t = time_on("h200-141g", false, false);
    const tensor x = {.shape = shape_of(4, (const int64_t[]){64, 56, 56, 64}), .dtype = HR_F16};
    instr i = {.op = HR_OP_CONV2D,
               .in_count = 1,
               .out_count = 1,
               .attr = {.kernel_h = 3, .kernel_w = 3, .groups = 1},
               .impl = "cudnn eng1",
               .flops = UINT64_C(15000000000),
               .bytes_moved = 51380224};
    const program p = {.tensors = &x, .instrs = &i, .tensor_count = 1, .instr_count = 1};
    uint64_t last = 0, first = card_time_ns(&t, &p, &i);
    for (i.behind = 0; i.behind < 9; i.behind++) {
        const uint64_t ns = card_time_ns(&t, &p, &i);
        ck_assert_uint_ge(ns, last);
        last = ns;
    }
    ck_assert_uint_le(last, 2 * first);
    i.behind = 0;
    i.impl = "own direct, not cudnn";
    ck_assert_uint_gt(card_time_ns(&t, &p, &i), 4 * first);
}
END_TEST

START_TEST(an_estimate_comes_with_a_range)
{
    const hr_whatif w = plan_of("resnet50", (const char *const[]){A100, NULL});
    ck_assert(w.step_seconds_low < w.step_seconds && w.step_seconds < w.step_seconds_high);
    ck_assert(w.step_seconds_high < 2 * w.step_seconds_low);
    const hr_whatif tight = plan_of("resnet50", (const char *const[]){A100, "workspace.limit=0B", NULL});
    ck_assert_double_gt(tight.step_seconds_high / tight.step_seconds, w.step_seconds_high / w.step_seconds);
}
END_TEST

// Whatever the limit.
START_TEST(without_a_card_a_step_takes_what_it_takes_on_the_card_unlimited)
{
    const hr_whatif none = plan_of(
        "resnet50", (const char *const[]){"device.kind=plan", "device.card=", "device.vram=80GiB", NULL});
    const hr_whatif unlimited =
        plan_of("resnet50", (const char *const[]){"device.kind=plan", "device.card=unlimited", NULL});
    const hr_whatif named = plan_of("resnet50", (const char *const[]){A100, NULL});
    ck_assert_double_eq(none.step_seconds, unlimited.step_seconds);
    ck_assert_int_eq(none.step_basis, HR_TIME_USUAL_CARD);
    ck_assert_int_eq(unlimited.step_basis, HR_TIME_USUAL_CARD);
    ck_assert_int_eq(named.step_basis, HR_TIME_DATASHEET);
}
END_TEST

// A small model waits for the host that issues its kernels, a large one does not.
START_TEST(launches_are_what_small_steps_take)
{
#define SMALL A100, "batch.size=8"
    const double eager = SECONDS("cifar10_separable_cnn", SMALL, "execution.mode=eager");
    const double graph = SECONDS("cifar10_separable_cnn", SMALL, "execution.mode=graph");
    const double captured =
        SECONDS("cifar10_separable_cnn", SMALL, "execution.mode=graph", "execution.cuda_graph=on");
    ck_assert_double_lt(graph, 0.5 * eager);
    ck_assert_double_lt(captured, 0.9 * graph);
    const double large = SECONDS("resnet50", A100, "execution.mode=eager");
    ck_assert_double_lt(large, 1.15 * SECONDS("resnet50", A100, "execution.mode=graph"));
}
END_TEST

START_TEST(tf32_shortens_a_float32_step_and_no_other)
{
    const double plain = SECONDS("resnet18", A100, "precision.tf32=off");
    ck_assert_double_lt(SECONDS("resnet18", A100, "precision.tf32=on"), 0.8 * plain);
    const double half = SECONDS("resnet18", A100, "precision.policy=float16", "precision.tf32=off");
    ck_assert_double_eq(SECONDS("resnet18", A100, "precision.policy=float16", "precision.tf32=on"), half);
}
END_TEST

int main(void)
{
    hr_preset_search_beside(".");
    Suite *suite = suite_create("card_time");
    TCase *all = tcase_create("promises");
    tcase_add_test(all, the_multiprocessors_of_a_card_are_counted_by_its_rate);
    tcase_add_test(all, large_products_reach_what_was_measured_and_small_ones_do_not);
    tcase_add_test(all, a_product_that_does_not_fill_the_card_takes_as_long_as_one_that_does);
    tcase_add_test(all, more_of_a_product_never_takes_less);
    tcase_add_test(all, types_order_the_products);
    tcase_add_test(all, bytes_pass_at_the_bandwidth_that_is_reached);
    tcase_add_test(all,
                   an_interpreter_issues_more_slowly_than_a_graph_and_a_captured_step_is_issued_by_nobody);
    tcase_add_test(all, a_smaller_workspace_limit_never_makes_a_step_faster);
    tcase_add_test(all, an_engine_behind_the_first_is_slower_and_a_kernel_of_our_own_slower_still);
    tcase_add_test(all, an_estimate_comes_with_a_range);
    tcase_add_test(all, without_a_card_a_step_takes_what_it_takes_on_the_card_unlimited);
    tcase_add_test(all, launches_are_what_small_steps_take);
    tcase_add_test(all, tf32_shortens_a_float32_step_and_no_other);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
