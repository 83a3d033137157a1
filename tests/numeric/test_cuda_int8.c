// SPDX-License-Identifier: Apache-2.0
// Products with whole-number weights on a card: cuBLASLt's where workspace.limit lets it, our own below, both near the judge, and
// who computes is said.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "card/reach.h"
#include "numeric/op_cases.h"
#include "numeric/op_tolerance.h"

enum { SEEDS = 32, SMALL = 5, LARGE = 18, FEW_ROWS = 8 };

static const hr_op products[] = {HR_OP_DENSE_INT8, HR_OP_DENSE_INT8_WEIGHTS, HR_OP_DENSE_INT4_WEIGHTS};
enum { PRODUCTS = sizeof products / sizeof *products };

static const struct {
    uint64_t limit_bytes;
    const char *who; // how the answer begins
} limits[] = {{0, "cublaslt "}, {1, "own "}};
enum { LIMITS = sizeof limits / sizeof *limits };

static void expect_who(const op_device *card, const op_query *q, const char *who)
{
    hr_target target;
    target_answer answer;
    hr_err err;
    const uint64_t limit = card->workspace_limit == 0 ? UINT64_MAX : card->workspace_limit;
    card->ops->target(card->context, &target);
    ck_assert_int_eq(target.ask(target.context, q, limit, &answer, &err), HR_OK);
    ck_assert_msg(strncmp(answer.impl, who, strlen(who)) == 0, "%s", answer.impl);
    ck_assert_int_eq(strstr(answer.impl, ", not cublaslt") != NULL,
                     limit != UINT64_MAX && strstr(answer.impl, "few rows") == NULL);
}

// Weights alone: each number is read once, whatever the limit.
static bool has_few_rows(const op_query *q)
{
    uint64_t elements = 0;
    (void)shape_elements(&q->out[0].shape, &elements);
    return q->op != HR_OP_DENSE_INT8 &&
           elements / (uint64_t)q->out[0].shape.dim[q->out[0].shape.rank - 1] <= FEW_ROWS;
}

static uint64_t library_runs(const card_reach *reach)
{
    card_totals totals = {0};
    if (reach != NULL) {
        reach->card_count(&totals);
    }
    return totals.library_runs;
}

// Trials of `op`, each near the judge, of which the library ran all or none.
static void check(hr_op op, uint64_t limit_bytes, const char *who, uint64_t of_library)
{
    op_device card = op_device_open(&device_cuda, 1), judge = op_device_open(&device_reference, 1);
    card.workspace_limit = limit_bytes;
    card_reach reached;
    const card_reach *reach = card_is_emulated(&reached) ? &reached : NULL;
    uint32_t few_count = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        op_trial drawn = op_case(op, seed, seed % 3 == 0 ? LARGE : SMALL);
        drawn.query.attr.act = seed % 4 == 1 ? HR_ACT_RELU6 : seed % 4 == 3 ? HR_ACT_RELU : HR_ACT_NONE;
        op_trial ours = op_trial_copy(&drawn, HR_F32), judged = op_trial_copy(&drawn, HR_F32);
        const bool few = has_few_rows(&ours.query);
        few_count += few;
        expect_who(&card, &ours.query, few ? "own few rows" : who);
        const uint64_t runs = library_runs(reach);
        op_trial_run(&ours, card, NULL);
        ck_assert_uint_eq(library_runs(reach) - runs, reach != NULL && !few ? of_library : 0);
        op_trial_run(&judged, judge, NULL);
        const double distance = op_distance(ours.out[0], judged.out[0], op_trial_out_count(&ours, 0));
        ck_assert_msg(distance <= op_tolerance(op, HR_F32), "%s, seed %u: %g", op_name(op), (unsigned)seed,
                      distance);
        op_trial_deinit(&judged);
        op_trial_deinit(&ours);
        op_trial_deinit(&drawn);
    }
    ck_assert(few_count < SEEDS && (few_count > 0 || op == HR_OP_DENSE_INT8));
    op_device_close(&judge);
    op_device_close(&card);
}

START_TEST(a_product_is_near_the_judge_whoever_computes_it)
{
    const int which = _i / PRODUCTS;
    check(products[_i % PRODUCTS], limits[which].limit_bytes, limits[which].who, which == 0);
}
END_TEST

// It cannot be asked before: what it promised and has not, our own kernels do within its workspace.
START_TEST(a_card_without_whole_number_kernels_multiplies_all_the_same)
{
    ck_assert_int_eq(setenv("CARD_NO_INT8", "1", 1), 0);
    check(HR_OP_DENSE_INT8, 0, "cublaslt ", 0);
    ck_assert_int_eq(unsetenv("CARD_NO_INT8"), 0);
}
END_TEST

int main(void)
{
    if (!test_device_is_there(&device_cuda)) {
        return TEST_SKIPPED;
    }
    Suite *suite = suite_create("cuda_int8");
    TCase *all = tcase_create("products");
    tcase_add_loop_test(all, a_product_is_near_the_judge_whoever_computes_it, 0, PRODUCTS * LIMITS);
    card_reach reached;
    if (card_is_emulated(&reached)) {
        tcase_add_test(all, a_card_without_whole_number_kernels_multiplies_all_the_same);
    }
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
