// SPDX-License-Identifier: Apache-2.0
// Operations of the cuda device whose rows of logits are padded: what lies between two rows, NaN before every run, counts
// for nothing, and no result but where it is asked for. Against the judge in every type, and with the bits that the loss
// has where its rows are plain vectors already.
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/op_draw.h"
#include "numeric/op_tolerance.h"
#include "numeric/two_devices.h"

enum { ROWS = 7, WIDTH = 24, OUT = 0x80 };

// Held in registers of a warp, of a block, and longer; one more than whole vectors, and one less.
static const int64_t lengths[] = {9, 1001, 1023, 1025, 2049, 8191, 8193, 9001, 50257};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static two_devices two;

static void open_devices(void)
{
    two_devices_open(&two);
}

static void close_devices(void)
{
    two_devices_close(&two);
}

// Bit k: input k; OUT: output 0.
static void pad(op_query *q, uint32_t operands)
{
    for (uint32_t k = 0; k < q->in_count; k++) {
        q->in[k].layout = (operands >> k & 1) != 0 ? HR_LAYOUT_PADDED : HR_LAYOUT_PLAIN;
    }
    q->out[0].layout = (operands & OUT) != 0 ? HR_LAYOUT_PADDED : HR_LAYOUT_PLAIN;
}

static void check_device_takes(const op_query *q)
{
    hr_target target;
    two.card.ops->target(two.card.context, &target);
    ck_assert_msg(target.pads_rows(target.context, q), "%s", op_name((hr_op)q->op));
}

// `t` holds the judge's values afterwards.
static void check(op_trial *t, hr_dtype type, bf16_wide w, uint32_t operands)
{
    op_trial ours = two_devices_in_type(t, type, w), shared = two_devices_in_type(t, type, w);
    pad(&ours.query, operands);
    pad(&shared.query, operands);
    check_device_takes(&ours.query);
    op_trial_run(&ours, two.card, NULL);
    op_trial_run(t, two.judge, NULL);
    for (uint32_t k = 0; k < t->query.out_count; k++) {
        const double apart = op_distance(ours.out[k], t->out[k], op_trial_out_count(t, k));
        const bool real = dtype_is_real((hr_dtype)t->query.out[k].dtype);
        ck_assert_msg(apart <= (real ? op_tolerance((hr_op)t->query.op, type) : 0),
                      "%s of %s: output %u is %g from the judge's", op_name((hr_op)t->query.op),
                      dtype_name(type), k, apart);
    }
    if (op_trial_may_share(&shared)) {
        op_trial_run_in_place(&shared, two.card, NULL);
        ck_assert_mem_eq(shared.out[0], ours.out[0], op_trial_out_count(t, 0) * sizeof *t->out[0]);
    }
    op_trial_deinit(&shared);
    op_trial_deinit(&ours);
}

static op_trial loss_of(hr_op op, int64_t classes)
{
    op_trial t = op_trial_make(op, (op_attr){.scale = 0.5});
    two_devices_draw(&two, &t, DIMS(ROWS, classes), -7.0, 7.0);
    op_trial_add_in(&t, HR_I32, DIMS(ROWS));
    for (int64_t r = 0; r < ROWS; r++) {
        t.in[1][r] = (double)(r == 0 ? classes - 1 : op_random_int(&two.state, 0, classes - 1));
    }
    op_trial_infer_out(&t, op_row_of(op)->min_out);
    return t;
}

START_TEST(losses_see_no_padding)
{
    for (int k = 0; k < TWO_TYPES; k++) {
        op_trial loss = loss_of(HR_OP_SOFTMAX_XENT_STREAM, lengths[_i]),
                 correct = loss_of(HR_OP_ACCURACY, lengths[_i]);
        op_trial both = loss_of(HR_OP_SOFTMAX_XENT_GRADIENT, lengths[_i]);
        check(&both, two_types[k], bf16_wide_of(HR_OP_SOFTMAX_XENT_GRADIENT), 0x1 | OUT);
        op_trial_deinit(&both);
        check(&correct, two_types[k], bf16_wide_of(HR_OP_ACCURACY), 0x1);
        check(&loss, two_types[k], bf16_wide_of(HR_OP_SOFTMAX_XENT_STREAM), 0x1);
        op_trial back = op_trial_backward(&loss, 0, NULL);
        const op_grad *rule = &op_row_of(HR_OP_SOFTMAX_XENT_STREAM)->grad[0];
        check(&back, two_types[k], bf16_wide_of_backward(&loss.query, rule), 0x1 | OUT);
        op_trial_deinit(&back);
        op_trial_deinit(&loss);
        op_trial_deinit(&correct);
    }
}
END_TEST

// Weights of an output layer, as they are and as an embedding's table.
START_TEST(products_see_no_padding)
{
    const int64_t words = lengths[_i / 2] > 9001 ? 3001 : lengths[_i / 2];
    const bool turned = _i % 2 == 1;
    for (int k = 0; k < TWO_TYPES; k++) {
        op_trial t = op_trial_make(HR_OP_DENSE, (op_attr){.flags = turned ? OP_FLAG_TRANSPOSE : 0});
        two_devices_draw(&two, &t, DIMS(ROWS, WIDTH), -1.0, 1.0);
        two_devices_draw(&two, &t, turned ? DIMS(words, WIDTH) : DIMS(WIDTH, words), -1.0, 1.0);
        op_trial_infer_out(&t, 1);
        check(&t, two_types[k], bf16_wide_of(HR_OP_DENSE), OUT);
        double *dy = calloc((size_t)(ROWS * words), sizeof *dy);
        ck_assert_ptr_nonnull(dy);
        op_fill(dy, (uint64_t)(ROWS * words), &two.state, -1.0, 1.0);
        for (uint32_t g = 0; g < 2; g++) {
            op_trial back = op_trial_backward(&t, g, dy);
            check(&back, two_types[k], (bf16_wide){0, 0}, back.query.op == HR_OP_DENSE_BWD_DATA ? 0x1 : 0x2);
            op_trial_deinit(&back);
        }
        free(dy);
        op_trial_deinit(&t);
    }
}
END_TEST

// What no kernel takes so is refused, and not read as if it were plain.
START_TEST(what_is_not_taken_is_refused)
{
    hr_target target;
    target_answer answer;
    hr_err err = {0};
    two.card.ops->target(two.card.context, &target);
    op_trial t = op_trial_make(HR_OP_GELU, (op_attr){0});
    two_devices_draw(&two, &t, DIMS(ROWS, 1027), -1.0, 1.0);
    op_trial_infer_out(&t, 1);
    op_trial ours = two_devices_in_type(&t, HR_F32, (bf16_wide){0, 0});
    pad(&ours.query, 0x1 | OUT);
    ck_assert(!target.pads_rows(target.context, &ours.query));
    ck_assert_int_eq(target.ask(target.context, &ours.query, UINT64_MAX, &answer, &err), HR_DEVICE);
    ck_assert_str_eq(err.sentence, "gelu on the cuda device needs plain layouts, had padded");
    op_trial_deinit(&ours);
    op_trial_deinit(&t);
}
END_TEST

int main(void)
{
    if (!test_device_is_there(&device_cuda)) {
        return TEST_SKIPPED;
    }
    Suite *suite = suite_create("cuda_padded");
    TCase *c = tcase_create("padded rows");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, open_devices, close_devices);
    tcase_add_loop_test(c, losses_see_no_padding, 0, LENGTHS);
    tcase_add_loop_test(c, products_see_no_padding, 0, 2 * LENGTHS);
    tcase_add_test(c, what_is_not_taken_is_refused);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
