// SPDX-License-Identifier: Apache-2.0
// Where a row says that a result may take the place of an input, it has the same bits there: every operation that
// has cases, forward and gradients, on the cpu device and on the judge, one and three threads.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/op_cases.h"

enum { SEEDS = 8, SIZE = 5 };

typedef struct bench {
    op_device device;
    hr_dtype real; // the judge's float64 is used where it lies, its float32 is not
    uint64_t seed;
    step_io io;
} bench;

static bool has_kernel(const bench *b, const op_query *q)
{
    hr_target target;
    target_answer answer;
    hr_err err = {0};
    b->device.ops->target(b->device.context, &target);
    return target.ask(target.context, q, UINT64_MAX, &answer, &err) == HR_OK;
}

static void compare(const op_trial *apart, const op_trial *shared, uint64_t seed)
{
    for (uint32_t k = 0; k < apart->query.out_count; k++) {
        ck_assert_msg(
            memcmp(apart->out[k], shared->out[k], op_trial_out_count(apart, k) * sizeof *apart->out[k]) == 0,
            "%s, seed %u: output %u has other bits in the place of an input", op_name((hr_op)apart->query.op),
            (unsigned)seed, k);
    }
}

static bool check_trial(bench *b, op_trial *t)
{
    if (!has_kernel(b, &t->query)) {
        return false;
    }
    op_trial shared = op_trial_copy(t, b->real);
    step_io again = b->io;
    op_trial_run(t, b->device, &b->io);
    if (op_trial_may_share(&shared)) {
        op_trial_run_in_place(&shared, b->device, &again);
        compare(t, &shared, b->seed);
    }
    op_trial_deinit(&shared);
    return true;
}

static void check_operation(bench *b, hr_op op)
{
    op_trial made = op_case(op, b->seed, SIZE);
    op_trial t = op_trial_copy(&made, b->real);
    const bool ran = check_trial(b, &t);
    for (uint32_t g = 0; ran && g < op_row_of(op)->grad_count; g++) {
        double *dy = calloc(op_trial_out_count(&t, 0), sizeof *dy);
        ck_assert_ptr_nonnull(dy);
        uint64_t state = b->seed;
        op_fill(dy, op_trial_out_count(&t, 0), &state, -1.0, 1.0);
        if (op_trial_has_gradient(&t, g)) {
            op_trial backward = op_trial_backward(&t, g, dy);
            (void)check_trial(b, &backward);
            op_trial_deinit(&backward);
        }
        free(dy);
    }
    op_trial_deinit(&made);
    op_trial_deinit(&t);
}

// Another file that includes this one may say which device is tested.
#ifndef TEST_DEVICE
#define TEST_DEVICE "cpu"
#endif

static const char *const devices[] = {TEST_DEVICE, "reference"};

START_TEST(a_result_has_the_same_bits_in_the_place_of_its_input)
{
    const uint64_t seed = (uint64_t)_i % SEEDS;
    const device_ops *device = test_device(devices[_i / SEEDS]);
    bench b = {.device = op_device_open(device, seed % 2 == 0 ? 1 : 3),
               .real = device == &device_reference ? HR_F64 : HR_F32,
               .seed = seed,
               .io = {.learning_rate = 0.01, .update = 3, .seed = seed}};
    for (hr_op op = 0; op < HR_OP_COUNT; op++) {
        if (op_has_cases(op)) {
            check_operation(&b, op);
        }
    }
    op_device_close(&b.device);
}
END_TEST

int main(void)
{
    if (!test_device_is_there(test_device(TEST_DEVICE))) {
        return TEST_SKIPPED;
    }
    Suite *suite = suite_create("ops_in_place_cpu");
    TCase *all = tcase_create("the same bits");
    tcase_set_timeout(all, 60);
    tcase_add_loop_test(all, a_result_has_the_same_bits_in_the_place_of_its_input, 0, 2 * SEEDS);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
