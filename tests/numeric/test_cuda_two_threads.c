// SPDX-License-Identifier: Apache-2.0
// A card that computes while a planner asks: both use one handle of cuDNN, one at a time. The emulated cuDNN sees it when they
// do not.
#include <check.h>
#include <pthread.h>
#include <stdlib.h>

#include "numeric/op_draw.h"
#include "numeric/op_harness.h"

enum { ASKED = 24, RUNS = 24, FILTERS = 8 };

static op_device card;
static op_query asked[ASKED];

static op_trial convolution(op_draw *d, int64_t size)
{
    op_trial t = op_trial_make(
        HR_OP_CONV2D, (op_attr){.kernel_h = 3, .kernel_w = 3, .stride_h = 1, .stride_w = 1, .groups = 1});
    op_draw_in(d, &t, DIMS(1, size, size, FILTERS), -1.0, 1.0);
    op_draw_in(d, &t, DIMS(3, 3, FILTERS, FILTERS), -1.0, 1.0);
    op_trial_infer_out(&t, 1);
    op_trial narrow = op_trial_copy(&t, HR_F32);
    op_trial_deinit(&t);
    return narrow;
}

static void *ask_all(void *unused)
{
    (void)unused;
    hr_target target;
    card.ops->target(card.context, &target);
    for (int k = 0; k < ASKED; k++) {
        target_answer answer;
        hr_err err;
        if (target.ask(target.context, &asked[k], UINT64_MAX, &answer, &err) != HR_OK) {
            return NULL;
        }
    }
    return asked; // all was answered
}

START_TEST(a_run_and_a_planner_share_no_handle_at_a_time)
{
    op_draw d = {.state = 3, .size = 8};
    pthread_t planner;
    void *answered = NULL;
    for (int k = 0; k < ASKED; k++) {
        op_trial t = convolution(&d, 6 + k);
        asked[k] = t.query;
        op_trial_deinit(&t);
    }
    op_trial t = convolution(&d, 5);
    op_trial_run(&t, card, NULL); // there is a handle from here on
    ck_assert_int_eq(pthread_create(&planner, NULL, ask_all, NULL), 0);
    for (int k = 0; k < RUNS; k++) {
        op_trial_run(&t, card, NULL);
    }
    ck_assert_int_eq(pthread_join(planner, &answered), 0);
    ck_assert_ptr_nonnull(answered);
    op_trial_run(&t, card, NULL); // nobody has seen two at once
    op_trial_deinit(&t);
}
END_TEST

int main(void)
{
    setenv("CARD_SLOW_HANDLE", "1", 1);
    if (!test_device_is_there(&device_cuda)) {
        return TEST_SKIPPED;
    }
    card = op_device_open(&device_cuda, 1);
    Suite *suite = suite_create("cuda_two_threads");
    TCase *c = tcase_create("two_threads");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, a_run_and_a_planner_share_no_handle_at_a_time);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK); // the device is open
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    op_device_close(&card);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
