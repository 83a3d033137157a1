// SPDX-License-Identifier: Apache-2.0
// A card that is there chooses as a plan does that was made elsewhere from the card's properties alone: the same engine, the
// same workspace, whatever the limit. Runs on a card, or on the emulated one (tests/card), whose library says other things
// of a card by its number than by its properties, as the true one does.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headroom/preset.h"
#include "headroom/units.h"

#include "base/file.h"
#include "numeric/op_harness.h"

static hr_err err;

typedef struct layer {
    int64_t samples, size, in, out;
    int32_t kernel, stride, before, behind;
} layer;

// Of ResNet-50 and of the ResNet for small images; even and uneven padding; channels that no vector has.
static const layer layers[] = {
    {64, 224, 3, 64, 7, 2, 3, 3},   {64, 56, 64, 64, 3, 1, 1, 1},   {64, 28, 128, 128, 3, 1, 1, 1},
    {64, 14, 512, 512, 3, 2, 0, 1}, {64, 56, 256, 512, 1, 2, 0, 0}, {32, 32, 64, 64, 3, 1, 1, 1},
    {32, 16, 128, 128, 3, 1, 1, 1}, {32, 4, 512, 512, 3, 1, 1, 1},  {3, 9, 5, 21, 3, 1, 0, 1},
};
static const hr_op directions[] = {HR_OP_CONV2D, HR_OP_CONV2D_BWD_DATA, HR_OP_CONV2D_BWD_WEIGHTS};
static const hr_dtype types[] = {HR_F32, HR_F16, HR_BF16};
static const uint64_t limits[] = {0, HR_MIB, UINT64_MAX};
enum {
    LAYERS = sizeof layers / sizeof *layers,
    DIRECTIONS = 3,
    TYPES = 3,
    LIMITS = sizeof limits / sizeof *limits,
    QUERIES = LAYERS * DIRECTIONS * TYPES,
};

static op_operand operand(hr_dtype dtype, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (op_operand){.shape = shape_of(4, (const int64_t[]){a, b, c, d}), .dtype = dtype};
}

static op_query query_at(int k)
{
    const layer *l = &layers[k / (DIRECTIONS * TYPES)];
    const hr_op op = directions[k / TYPES % DIRECTIONS];
    const hr_dtype dtype = types[k % TYPES];
    const int64_t out = (l->size + l->before + l->behind - l->kernel) / l->stride + 1;
    const op_operand x = operand(dtype, l->samples, l->size, l->size, l->in),
                     w = operand(dtype, l->kernel, l->kernel, l->in, l->out),
                     y = operand(dtype, l->samples, out, out, l->out);
    op_query q = {.op = op,
                  .in_count = 2,
                  .out_count = 1,
                  .attr = {.kernel_h = l->kernel,
                           .kernel_w = l->kernel,
                           .stride_h = l->stride,
                           .stride_w = l->stride,
                           .pad_top = l->before,
                           .pad_left = l->before,
                           .pad_bottom = l->behind,
                           .pad_right = l->behind,
                           .groups = 1}};
    q.in[0] = op == HR_OP_CONV2D_BWD_DATA ? y : x;
    q.in[1] = op == HR_OP_CONV2D_BWD_WEIGHTS ? y : w;
    q.out[0] = op == HR_OP_CONV2D ? y : op == HR_OP_CONV2D_BWD_DATA ? x : w;
    return q;
}

// The card that is there, and the same one known by nothing but the file of its properties.
typedef struct two_ways {
    void *card, *plan;
    hr_target by_card, by_plan;
} two_ways;

static void *open_plan(const device_facts *facts, bool tf32)
{
    char path[] = "/tmp/cuda_planned_XXXXXX";
    void *context = NULL;
    hr_card card;
    ck_assert_int_eq(hr_card_load("h200-141g", &card, &err), HR_OK);
    const int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    const ssize_t bytes = (ssize_t)strlen(facts->properties);
    ck_assert_int_eq(write(fd, facts->properties, (size_t)bytes), bytes);
    file_close(fd);
    card.compute_major = facts->compute_major;
    card.compute_minor = facts->compute_minor;
    (void)snprintf(card.properties_path, sizeof card.properties_path, "%s", path);
    const device_options options = {.card = &card, .plan_only = true, .tf32 = tf32};
    ck_assert_msg(device_cuda.open(&options, &context, &err) == HR_OK, "%s", err.sentence);
    (void)remove(path);
    return context;
}

static two_ways open_both(bool tf32)
{
    two_ways two = {0};
    device_facts facts;
    const device_options options = {.tf32 = tf32};
    ck_assert_msg(device_cuda.open(&options, &two.card, &err) == HR_OK, "%s", err.sentence);
    ck_assert(device_cuda.facts(two.card, &facts));
    two.plan = open_plan(&facts, tf32);
    device_cuda.target(two.card, &two.by_card);
    device_cuda.target(two.plan, &two.by_plan);
    return two;
}

static void close_both(two_ways *two)
{
    device_cuda.close(two->card);
    device_cuda.close(two->plan);
}

static void expect_same(const op_query *q, const target_answer *card, const target_answer *plan)
{
    char shape[96];
    ck_assert_msg(strcmp(card->impl, plan->impl) == 0 && card->workspace_bytes == plan->workspace_bytes &&
                      card->reorder_count == plan->reorder_count && card->behind == plan->behind,
                  "%s of %s over %s: planned '%s' with %llu B, the card would take '%s' with %llu B",
                  op_name((hr_op)q->op), dtype_name((hr_dtype)q->in[0].dtype),
                  shape_text(&q->in[0].shape, shape, sizeof shape), plan->impl,
                  (unsigned long long)plan->workspace_bytes, card->impl,
                  (unsigned long long)card->workspace_bytes);
}

static void compare_answers(const two_ways *two, const op_query *q)
{
    for (int i = 0; i < LIMITS; i++) {
        target_answer card, plan;
        ck_assert_msg(two->by_plan.ask(two->plan, q, limits[i], &plan, &err) == HR_OK, "%s", err.sentence);
        ck_assert_msg(two->by_card.ask(two->card, q, limits[i], &card, &err) == HR_OK, "%s", err.sentence);
        expect_same(q, &card, &plan);
    }
}

START_TEST(a_card_chooses_as_its_properties_were_planned_for)
{
    two_ways two = open_both(_i != 0);
    for (int k = 0; k < QUERIES; k++) {
        const op_query q = query_at(k);
        compare_answers(&two, &q);
    }
    close_both(&two);
}
END_TEST

// What is chosen once something has run, for a handle then there is.
START_TEST(what_has_run_changes_no_choice)
{
    const op_attr attr = {.kernel_h = 3,
                          .kernel_w = 3,
                          .stride_h = 1,
                          .stride_w = 1,
                          .pad_top = 1,
                          .pad_left = 1,
                          .pad_bottom = 1,
                          .pad_right = 1,
                          .groups = 1};
    two_ways two = open_both(false);
    op_device card = op_device_open(&device_cuda, 1);
    op_trial t = op_trial_make(HR_OP_CONV2D, attr);
    op_trial_add_in(&t, HR_F32, (const int64_t[OP_MAX_RANK]){2, 5, 5, 8});
    op_trial_add_in(&t, HR_F32, (const int64_t[OP_MAX_RANK]){3, 3, 8, 8});
    op_trial_infer_out(&t, 1);
    op_trial_run(&t, card, NULL);
    hr_target ran;
    device_cuda.target(card.context, &ran);
    for (int k = 0; k < QUERIES; k++) {
        const op_query q = query_at(k);
        target_answer now, plan;
        ck_assert_int_eq(ran.ask(card.context, &q, UINT64_MAX, &now, &err), HR_OK);
        ck_assert_int_eq(two.by_plan.ask(two.plan, &q, UINT64_MAX, &plan, &err), HR_OK);
        expect_same(&q, &now, &plan);
    }
    op_trial_deinit(&t);
    op_device_close(&card);
    close_both(&two);
}
END_TEST

int main(void)
{
    if (!test_device_is_there(&device_cuda)) {
        return TEST_SKIPPED;
    }
    Suite *suite = suite_create("cuda_planned");
    TCase *c = tcase_create("plan and card");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, a_card_chooses_as_its_properties_were_planned_for, 0, 2);
    tcase_add_test(c, what_has_run_changes_no_choice);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
