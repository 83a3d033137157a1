// SPDX-License-Identifier: Apache-2.0
// An engine that cuDNN names and then cannot make on the card: what was planned for it runs all the same, by the next
// implementation and in the memory that it had. Only the emulated card refuses; on a real one this is attention once more.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/bf16_trial.h"
#include "numeric/op_draw.h"
#include "numeric/op_tolerance.h"

enum { SAMPLES = 2, HEADS = 3, LENGTH = 40, FEATURES = 16 };

static op_device card, judge;

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

static void expect_planned_for_cudnn(const op_trial *t)
{
    hr_target target;
    target_answer answer;
    hr_err err;
    card.ops->target(card.context, &target);
    ck_assert_int_eq(target.ask(target.context, &t->query, UINT64_MAX, &answer, &err), HR_OK);
    ck_assert_msg(strncmp(answer.impl, "cudnn", 5) == 0, "%s", answer.impl);
}

static void check_both(op_trial *t, bf16_wide w)
{
    half_round_inputs(t, w, HR_F16);
    op_trial ours = half_trial(t, w, HR_F16);
    expect_planned_for_cudnn(&ours);
    op_trial_run(t, judge, NULL);
    op_trial_run(&ours, card, NULL);
    for (uint32_t k = 0; k < t->query.out_count; k++) {
        ck_assert_double_le(op_distance(ours.out[k], t->out[k], op_trial_out_count(t, k)),
                            op_tolerance((hr_op)t->query.op, HR_F16));
    }
    op_trial_deinit(&ours);
}

START_TEST(attention_goes_on_without_the_engine)
{
    static double dy[SAMPLES * LENGTH * HEADS * FEATURES];
    op_draw d = {.state = 5, .size = 8};
    op_trial t =
        op_trial_make(HR_OP_ATTENTION, (op_attr){.heads = HEADS, .flags = _i == 0 ? 0 : OP_FLAG_CAUSAL});
    for (int k = 0; k < 3; k++) {
        op_draw_in(&d, &t, DIMS(SAMPLES, LENGTH, HEADS * FEATURES), -2.0, 2.0);
    }
    op_trial_infer_out(&t, 2);
    check_both(&t, bf16_wide_of(HR_OP_ATTENTION));
    op_fill(dy, sizeof dy / sizeof *dy, &d.state, -1.0, 1.0);
    op_trial backward = op_trial_backward(&t, 0, dy);
    check_both(&backward, bf16_wide_of_backward(&t.query, &op_row_of(HR_OP_ATTENTION)->grad[0]));
    op_trial_deinit(&backward);
    op_trial_deinit(&t);
}
END_TEST

int main(void)
{
    setenv("CARD_REFUSE_PLANS", "1", 1);
    if (!test_device_is_there(&device_cuda)) {
        return TEST_SKIPPED;
    }
    Suite *suite = suite_create("cuda_refused");
    TCase *c = tcase_create("refused");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, open_devices, close_devices);
    tcase_add_loop_test(c, attention_goes_on_without_the_engine, 0, 2);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
