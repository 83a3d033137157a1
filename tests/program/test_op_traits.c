// SPDX-License-Identifier: Apache-2.0
// No operation is left at a silent default: what passes, devices and the cost model ask stands in every row.
#include <check.h>
#include <stdlib.h>

#include "ops/op.h"

static bool is_computed(const op_row *row)
{
    return !row->control && !row->view && !row->orders;
}

START_TEST(every_row_says_its_traits)
{
    const op_row *row = op_row_of((hr_op)_i);
    const op_traits *t = &row->traits;
    ck_assert_msg((t->cost != COST_NOTHING) == is_computed(row), "%s: cost", row->name);
    ck_assert_uint_lt(t->cost, COST_FAMILY_COUNT);
    if (is_computed(row) || row->view) {
        ck_assert_msg(t->recompute != OP_RECOMPUTE_UNSAID, "%s: recompute", row->name);
        ck_assert_msg(t->acts != OP_ACTS_UNSAID, "%s: acts", row->name);
        ck_assert_msg(t->tiling != OP_TILING_UNSAID, "%s: tiling", row->name);
    }
}
END_TEST

START_TEST(what_is_said_of_parts_speaks_of_operands_that_are_there)
{
    const op_row *row = op_row_of((hr_op)_i);
    const op_traits *t = &row->traits;
    const uint32_t inputs = (1u << row->max_in) - 1, outputs = (1u << row->max_out) - 1;
    ck_assert_msg((t->whole & ~inputs) == 0, "%s: whole", row->name);
    ck_assert_msg((t->repeated & ~inputs) == 0, "%s: repeated", row->name);
    ck_assert_msg((t->sum & ~outputs) == 0, "%s: sum", row->name);
    ck_assert_msg((t->large & ~((outputs * OP_TILE_OUT_0) | inputs)) == 0, "%s: large", row->name);
    ck_assert_msg((t->tiling == OP_BY_IMAGE) == (t->large != 0), "%s: windows look at an image", row->name);
    ck_assert_msg((t->tiling == OP_BY_PERIOD) == (t->repeated != 0), "%s: an input is repeated", row->name);
    ck_assert_msg(t->tiling != OP_WHOLE || (t->whole | t->sum) == 0, "%s is not cut", row->name);
}
END_TEST

// Checkpointing makes forward results again, and nothing else: only their rows have a rule of shapes, or are views.
START_TEST(only_forward_rows_are_made_again)
{
    const op_row *row = op_row_of((hr_op)_i);
    ck_assert_msg(row->traits.recompute != OP_CHEAP || row->shape != NULL || row->view, "%s", row->name);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("traits of operations");
    TCase *tests = tcase_create("rows");
    tcase_add_loop_test(tests, every_row_says_its_traits, 0, HR_OP_COUNT);
    tcase_add_loop_test(tests, what_is_said_of_parts_speaks_of_operands_that_are_there, 0, HR_OP_COUNT);
    tcase_add_loop_test(tests, only_forward_rows_are_made_again, 0, HR_OP_COUNT);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
