// SPDX-License-Identifier: Apache-2.0
// The float32 sum of dq that engines for Hopper add to lies in a workspace that nobody sets to zero: from 9.6.0 on cuDNN does
// it, and an older one is not taken. On a card the gradients say so, on the emulated one its calls too.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "card/reach.h"
#include "numeric/op_draw.h"
#include "numeric/op_tolerance.h"
#include "numeric/two_devices.h"

enum { SAMPLES = 1, HEADS = 2, LENGTH = 128, FEATURES = 16, ROUNDS = 2 };

static card_reach card;
static bool emulated;

static void expect_planned_for_cudnn(const two_devices *two, const op_trial *t)
{
    hr_target target;
    target_answer answer;
    hr_err err = {0};
    two->card.ops->target(two->card.context, &target);
    ck_assert_msg(target.ask(target.context, &t->query, UINT64_MAX, &answer, &err) == HR_OK, "%s",
                  err.sentence);
    ck_assert_msg(strncmp(answer.impl, "cudnn", 5) == 0, "%s", answer.impl);
}

// Of one library, so that a sum that lies where the last one did is dirty.
static void run_both(two_devices *two, op_trial *t, bf16_wide w)
{
    half_round_inputs(t, w, HR_BF16);
    op_trial ours = half_trial(t, w, HR_BF16);
    expect_planned_for_cudnn(two, &ours);
    op_trial_run(t, two->judge, NULL);
    op_trial_run(&ours, two->card, NULL);
    for (uint32_t k = 0; k < t->query.out_count; k++) {
        ck_assert_double_le(op_distance(ours.out[k], t->out[k], op_trial_out_count(t, k)),
                            op_tolerance((hr_op)t->query.op, HR_BF16));
    }
    op_trial_deinit(&ours);
}

static void run_backward(two_devices *two)
{
    static double dy[SAMPLES * LENGTH * HEADS * FEATURES];
    op_trial t = op_trial_make(HR_OP_ATTENTION, (op_attr){.heads = HEADS, .flags = OP_FLAG_CAUSAL});
    for (int k = 0; k < 3; k++) {
        two_devices_draw(two, &t, DIMS(SAMPLES, LENGTH, HEADS * FEATURES), -2.0, 2.0);
    }
    op_trial_infer_out(&t, 2);
    run_both(two, &t, bf16_wide_of(HR_OP_ATTENTION));
    op_fill(dy, sizeof dy / sizeof *dy, &two->state, -1.0, 1.0);
    op_trial backward = op_trial_backward(&t, 0, dy);
    run_both(two, &backward, bf16_wide_of_backward(&t.query, &op_row_of(HR_OP_ATTENTION)->grad[0]));
    op_trial_deinit(&backward);
    op_trial_deinit(&t);
}

START_TEST(nobody_clears_the_sum_that_the_library_clears)
{
    two_devices two;
    two_devices_open(&two);
    const uint64_t before = emulated ? card.card_calls("cuMemsetD8Async") : 0;
    for (int k = 0; k < ROUNDS; k++) {
        run_backward(&two);
    }
    ck_assert(!emulated || card.card_calls("cuMemsetD8Async") == before);
    two_devices_close(&two);
}
END_TEST

int main(void)
{
    if (!test_device_is_there(&device_cuda)) {
        return TEST_SKIPPED;
    }
    emulated = card_is_emulated(&card);
    Suite *suite = suite_create("cuda_attention_sum");
    TCase *c = tcase_create("sum of dq");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, nobody_clears_the_sum_that_the_library_clears);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
