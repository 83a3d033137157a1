// SPDX-License-Identifier: Apache-2.0
// Dropout within cuDNN's attention: the library draws a mask of its own, the same for the same step, in forward and in
// backward. With scores of 0 and one-hot values y shows the mask; attention with that mask, in double, is the judge.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/op_draw.h"
#include "numeric/op_tolerance.h"
#include "numeric/two_devices.h"

enum { SAMPLES = 3, HEADS = 2, LENGTH = 16, WIDTH = HEADS * LENGTH, COUNT = SAMPLES * LENGTH * WIDTH };
enum { WEIGHTS = SAMPLES * HEADS * LENGTH * LENGTH };

static const double rate = 0.25;
static two_devices two;
static double mask[WEIGHTS]; // 0, or 1 / (1 - rate)

static void open_devices(void)
{
    two_devices_open(&two);
}

static void close_devices(void)
{
    two_devices_close(&two);
}

static op_trial attention(bool causal)
{
    const op_attr attr = {.heads = HEADS,
                          .flags = causal ? OP_FLAG_CAUSAL : 0,
                          .rate = rate,
                          .salt = UINT64_C(0x123456789ABCDEF)};
    return op_trial_make(HR_OP_ATTENTION, attr);
}

// Head h of row i of sample n begins at this element.
static int64_t place(int64_t n, int64_t h, int64_t i)
{
    return (n * LENGTH + i) * WIDTH + h * LENGTH;
}

static void run(op_trial *t, step_io *io)
{
    hr_target target;
    target_answer answer;
    hr_err err = {0};
    two.card.ops->target(two.card.context, &target);
    ck_assert_msg(target.ask(target.context, &t->query, UINT64_MAX, &answer, &err) == HR_OK, "%s",
                  err.sentence);
    ck_assert_msg(strncmp(answer.impl, "cudnn", 5) == 0, "%s", answer.impl);
    op_trial_run(t, two.card, io);
}

static void read_mask(step_io *io, double *to)
{
    op_trial t = attention(false);
    for (int k = 0; k < 3; k++) {
        op_trial_add_in(&t, HR_BF16, DIMS(SAMPLES, LENGTH, WIDTH));
    }
    for (int64_t i = 0; i < SAMPLES * HEADS * LENGTH; i++) {
        t.in[2][place(i / LENGTH / HEADS, i / LENGTH % HEADS, i % LENGTH) + i % LENGTH] = 1.0;
    }
    op_trial_infer_out(&t, 2);
    run(&t, io);
    for (int64_t w = 0; w < WEIGHTS; w++) {
        const int64_t row = w / LENGTH, head = row / LENGTH;
        const double kept = LENGTH * t.out[0][place(head / HEADS, head % HEADS, row % LENGTH) + w % LENGTH];
        ck_assert_msg(kept == 0.0 || fabs(kept * (1.0 - rate) - 1.0) < 0.01, "weight %d is %g", (int)w, kept);
        to[w] = kept == 0.0 ? 0.0 : 1.0 / (1.0 - rate);
    }
    op_trial_deinit(&t);
}

START_TEST(a_step_has_one_mask_and_another_step_another)
{
    static double same[WEIGHTS], other[WEIGHTS];
    double kept = 0.0;
    step_io io = {.update = 3, .seed = 7, .first_sample = 64};
    read_mask(&io, mask);
    read_mask(&io, same);
    ck_assert_mem_eq(mask, same, sizeof mask);
    for (int k = 0; k < 3; k++) {
        step_io changed = io;
        changed.update += k == 0;
        changed.seed += k == 1;
        changed.first_sample += k == 2 ? SAMPLES : 0;
        read_mask(&changed, other);
        ck_assert_mem_ne(mask, other, sizeof mask);
    }
    for (int w = 0; w < WEIGHTS; w++) {
        kept += mask[w] > 0.0;
    }
    ck_assert_double_le(fabs(kept / WEIGHTS - (1.0 - rate)), 5.0 * sqrt(rate * (1.0 - rate) / WEIGHTS));
}
END_TEST

// ---- the judge ------------------------------------------------------------------------------------------------

static double dot(const double *a, const double *b)
{
    double sum = 0.0;
    for (int d = 0; d < LENGTH; d++) {
        sum += a[d] * b[d];
    }
    return sum;
}

// Weights of query i of a head before dropout.
static void weigh(const op_trial *t, int64_t n, int64_t h, int64_t i, double p[LENGTH])
{
    const int64_t seen = (t->query.attr.flags & OP_FLAG_CAUSAL) != 0 ? i + 1 : LENGTH;
    double sum = 0.0;
    for (int64_t j = 0; j < LENGTH; j++) {
        p[j] = j < seen
                   ? exp(dot(t->in[0] + place(n, h, i), t->in[1] + place(n, h, j)) / sqrt((double)LENGTH))
                   : 0.0;
        sum += p[j];
    }
    for (int64_t j = 0; j < LENGTH; j++) {
        p[j] /= sum;
    }
}

typedef struct judged {
    double y[COUNT], dq[COUNT], dk[COUNT], dv[COUNT];
} judged;

static void judge_query(const op_trial *t, const double *dy, int64_t n, int64_t h, int64_t i, judged *out)
{
    const double *kept = mask + ((n * HEADS + h) * LENGTH + i) * LENGTH;
    const int64_t here = place(n, h, i);
    double p[LENGTH], mean = 0.0;
    weigh(t, n, h, i, p);
    for (int64_t j = 0; j < LENGTH; j++) {
        mean += p[j] * kept[j] * dot(dy + here, t->in[2] + place(n, h, j));
    }
    for (int64_t j = 0; j < LENGTH; j++) {
        const int64_t there = place(n, h, j);
        const double ds = p[j] * (kept[j] * dot(dy + here, t->in[2] + there) - mean) / sqrt((double)LENGTH);
        for (int64_t d = 0; d < LENGTH; d++) {
            out->y[here + d] += p[j] * kept[j] * t->in[2][there + d];
            out->dv[there + d] += p[j] * kept[j] * dy[here + d];
            out->dq[here + d] += ds * t->in[1][there + d];
            out->dk[there + d] += ds * t->in[0][here + d];
        }
    }
}

static void ck_near(const char *what, const double *ours, const double *wanted)
{
    const double distance = op_distance(ours, wanted, COUNT),
                 most = 2.0 * op_tolerance(HR_OP_ATTENTION_BWD, HR_BF16);
    ck_assert_msg(distance <= most, "%s is %g away", what, distance);
}

START_TEST(both_passes_have_the_mask_of_the_step)
{
    static double dy[COUNT];
    static judged wanted;
    step_io io = {.update = 5, .seed = 9, .first_sample = 0};
    op_trial t = attention(_i == 1);
    read_mask(&io, mask);
    for (int k = 0; k < 3; k++) {
        two_devices_draw(&two, &t, DIMS(SAMPLES, LENGTH, WIDTH), -1.0, 1.0);
    }
    op_trial_infer_out(&t, 2);
    half_round_inputs(&t, bf16_wide_of(HR_OP_ATTENTION), HR_BF16);
    op_trial ours = half_trial(&t, bf16_wide_of(HR_OP_ATTENTION), HR_BF16);
    run(&ours, &io);
    op_fill(dy, COUNT, &two.state, -1.0, 1.0);
    memset(&wanted, 0, sizeof wanted);
    for (int64_t row = 0; row < SAMPLES * HEADS * LENGTH; row++) {
        judge_query(&t, dy, row / LENGTH / HEADS, row / LENGTH % HEADS, row % LENGTH, &wanted);
    }
    ck_near("y", ours.out[0], wanted.y);
    op_trial backward = op_trial_backward(&ours, 0, dy);
    run(&backward, &io);
    ck_near("dq", backward.out[0], wanted.dq);
    ck_near("dk", backward.out[1], wanted.dk);
    ck_near("dv", backward.out[2], wanted.dv);
    op_trial_deinit(&backward);
    op_trial_deinit(&ours);
    op_trial_deinit(&t);
}
END_TEST

int main(void)
{
    if (!test_device_is_there(&device_cuda)) {
        return TEST_SKIPPED;
    }
    Suite *suite = suite_create("cuda_attention_dropout");
    TCase *c = tcase_create("cuDNN's masks");
    tcase_add_checked_fixture(c, open_devices, close_devices);
    tcase_add_test(c, a_step_has_one_mask_and_another_step_another);
    tcase_add_loop_test(c, both_passes_have_the_mask_of_the_step, 0, 2);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
