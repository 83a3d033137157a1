// SPDX-License-Identifier: Apache-2.0
// Fake quantization is TensorFlow's, level for level: values and what of the gradient goes through, of activations and of
// weights; the moving average of a range is tfmot's.
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/fake_quant_values.h"
#include "numeric/op_harness.h"
#include "ops/fake_quant.h"

#if !defined TEST_DEVICE && HEADROOM_HAVE_ONEDNN
#define TEST_DEVICE "cpu"
#endif

enum {
    ACTIVATIONS = sizeof fake_quant_activations / sizeof *fake_quant_activations,
    WEIGHTS = sizeof fake_quant_weights / sizeof *fake_quant_weights,
};

static void assert_row(const fake_quant_levels *l, const fake_quant_row *row)
{
    for (int k = 0; k < FAKE_QUANT_VALUES; k++) {
        ck_assert_msg(fake_quant_value(l, row->x[k]) == row->y[k], "%a of %a: TensorFlow has %a",
                      (double)fake_quant_value(l, row->x[k]), (double)row->x[k], (double)row->y[k]);
        ck_assert_int_eq(fake_quant_passes(l, row->x[k]), row->passes[k]);
    }
}

START_TEST(activations_have_tensorflows_levels)
{
    const fake_quant_row *row = &fake_quant_activations[_i];
    const fake_quant_levels l = fake_quant_of_range(row->range);
    assert_row(&l, row);
}
END_TEST

START_TEST(weights_have_tensorflows_levels)
{
    const fake_quant_row *row = &fake_quant_weights[_i];
    const fake_quant_levels l = fake_quant_of_weights(row->range[0]);
    assert_row(&l, row);
}
END_TEST

// At most half a level is lost within the range, zero stays zero, and what was quantised stays where it is.
START_TEST(levels_are_near_and_stay)
{
    uint64_t state = (uint64_t)_i + 1;
    const float range[2] = {(float)op_random(&state, 0.0, 9.0), (float)op_random(&state, 1e-3, 9.0)};
    const fake_quant_levels l = fake_quant_of_range(range);
    ck_assert(fake_quant_value(&l, 0.0F) == 0.0F);
    for (int k = 0; k < 1000; k++) {
        const float x = (float)op_random(&state, (double)l.low, (double)l.high);
        const float y = fake_quant_value(&l, x);
        ck_assert_double_le((double)fabsf(x - y), (double)l.scale * 0.5001);
        ck_assert_msg(fabsf(fake_quant_value(&l, y) - y) <= 1e-6F * fabsf(y), "%a moves again", (double)y);
    }
}
END_TEST

START_TEST(a_range_without_width_has_one_level)
{
    const fake_quant_levels l = fake_quant_of_range((const float[2]){0.0F, 0.0F});
    ck_assert(fake_quant_value(&l, 0.5F) == 0.0F && fake_quant_value(&l, -0.5F) == 0.0F);
    const fake_quant_levels w = fake_quant_of_weights(0.0F);
    ck_assert(fake_quant_value(&w, 0.0F) == 0.0F);
}
END_TEST

// range ← range − (range − batch)(1 − 0.999); without a decay the widest so far.
START_TEST(ranges_follow)
{
    float range = FAKE_QUANT_INITIAL;
    double exact = 6.0;
    for (int k = 0; k < 5000; k++) {
        range = fake_quant_moved(range, 1.5F, FAKE_QUANT_DECAY);
        exact = exact * 0.999 + 1.5 * 0.001;
    }
    ck_assert_double_eq_tol((double)range, exact, 1e-3);
    ck_assert(fake_quant_moved(2.0F, 3.0F, 0.0) == 3.0F && fake_quant_moved(2.0F, 1.0F, 0.0) == 2.0F);
}
END_TEST

// ---- what is no number, on the judge and a device --------------------------------------------------------------

static const char *const devices[] = {"reference",
#ifdef TEST_DEVICE
                                      TEST_DEVICE
#endif
};
enum { DEVICES = sizeof devices / sizeof *devices, VALUES = 40, BAD = 17 };

// Values from -2 to 2, one of them bad; the range {2, 2} beside activations.
static op_trial bad_trial(hr_op op, double bad, double decay)
{
    op_trial t = op_trial_make(op, (op_attr){.momentum = decay});
    op_trial_add_in(&t, HR_F32, (const int64_t[OP_MAX_RANK]){VALUES});
    for (int k = 0; k < VALUES; k++) {
        t.in[0][k] = k == BAD ? bad : -2.0 + 4.0 * k / (VALUES - 1);
    }
    if (op != HR_OP_FAKE_QUANT_WEIGHTS) {
        op_trial_add_in(&t, HR_F32, (const int64_t[OP_MAX_RANK]){2});
        t.in[1][0] = t.in[1][1] = 2.0;
    }
    if (op == HR_OP_TRACK_RANGE) {
        op_trial_add_out(&t, HR_F32, (const int64_t[OP_MAX_RANK]){2});
    } else {
        op_trial_infer_out(&t, 1);
    }
    return t;
}

static void run_bad(op_trial *t, const char *name)
{
    op_device device = op_device_open(test_device(name), 2);
    op_trial_run(t, device, NULL);
    op_device_close(&device);
}

START_TEST(what_is_no_number_stays_so)
{
    static const hr_op ops[] = {HR_OP_FAKE_QUANT, HR_OP_FAKE_QUANT_WEIGHTS};
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
        op_trial t = bad_trial(ops[o], NAN, 0.0);
        run_bad(&t, devices[_i]);
        for (int k = 0; k < VALUES; k++) {
            ck_assert_msg(k == BAD ? isnan(t.out[0][k]) : fabs(t.out[0][k] - t.in[0][k]) < 0.02,
                          "%s: %g became %g", op_name(ops[o]), t.in[0][k], t.out[0][k]);
        }
        op_trial_deinit(&t);
    }
}
END_TEST

// A batch that reaches to infinity, on either side, leaves that side of the range where it is.
START_TEST(a_range_stays_finite)
{
    static const double bad[] = {INFINITY, -INFINITY, NAN};
    for (int k = 0; k < 6; k++) {
        op_trial t = bad_trial(HR_OP_TRACK_RANGE, bad[k / 2], k % 2 == 0 ? 0.0 : FAKE_QUANT_DECAY);
        run_bad(&t, devices[_i]);
        ck_assert_msg(t.in[1][0] == 2.0 && t.in[1][1] == 2.0, "%g: range %g, %g", bad[k / 2], t.in[1][0],
                      t.in[1][1]);
        op_trial_deinit(&t);
    }
}
END_TEST

int main(void)
{
#ifdef TEST_DEVICE
    if (!test_device_is_there(test_device(TEST_DEVICE))) {
        return TEST_SKIPPED;
    }
#endif
    Suite *suite = suite_create("fake_quant");
    TCase *all = tcase_create("levels");
    tcase_add_loop_test(all, activations_have_tensorflows_levels, 0, ACTIVATIONS);
    tcase_add_loop_test(all, weights_have_tensorflows_levels, 0, WEIGHTS);
    tcase_add_loop_test(all, levels_are_near_and_stay, 0, 50);
    tcase_add_test(all, a_range_without_width_has_one_level);
    tcase_add_test(all, ranges_follow);
    tcase_add_loop_test(all, what_is_no_number_stays_so, 0, DEVICES);
    tcase_add_loop_test(all, a_range_stays_finite, 0, DEVICES);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
