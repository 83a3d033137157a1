// SPDX-License-Identifier: Apache-2.0
// Three updates of the judge from slots of zero against PyTorch's optimizers in float64 (make_optim_fixtures.py says
// where the formulas agree) and of a device in float32, and its bytes of ADAM8BIT against the judge's. The device is the
// cpu; another file that includes this one may name another.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/fixture.h"
#include "numeric/op_cases.h"

#if !defined TEST_DEVICE && HEADROOM_HAVE_ONEDNN
#define TEST_DEVICE "cpu"
#endif

static const double tolerance = 1e-12, float_tolerance = 1e-6;

static hr_op op_named(const char *name)
{
    for (hr_op op = 0; op < HR_OP_COUNT; op++) {
        if (strcmp(op_name(op), name) == 0) {
            return op;
        }
    }
    ck_abort_msg("no operation %s", name);
}

static double number(const json_t *c, const char *key)
{
    return json_number_value(json_object_get(c, key));
}

// The script's numbers(): in [-1, 1), named after the case.
static void fill(const char *name, uint64_t index, double *values, uint64_t count)
{
    char purpose[128];
    (void)snprintf(purpose, sizeof purpose, "test/ops/%s", name);
    float *uniform = calloc(count, sizeof *uniform);
    ck_assert_ptr_nonnull(uniform);
    fixture_uniform(index, purpose, uniform, count);
    for (uint64_t i = 0; i < count; i++) {
        values[i] = 2.0 * (double)uniform[i] - 1.0;
    }
    free(uniform);
}

static void add_both(op_trial *t, const int64_t dims[OP_MAX_RANK])
{
    op_trial_add_in(t, HR_F64, dims);
    op_trial_add_out(t, HR_F64, dims);
}

// Variable, gradient, and slots of zero as the operation's row counts them.
static op_trial trial_of(const json_t *c)
{
    const json_t *attr = json_object_get(c, "attr"), *shape = json_object_get(c, "shape");
    const hr_op op = op_named(json_string_value(json_object_get(c, "op")));
    const bool factored = op == HR_OP_ADAFACTOR || op == HR_OP_ADAFACTOR_KERAS;
    const size_t rank = json_array_size(shape);
    int64_t dims[OP_MAX_RANK] = {0}, rows[OP_MAX_RANK] = {0}, columns[OP_MAX_RANK] = {0};
    op_trial t = op_trial_make(op, (op_attr){.momentum = number(attr, "momentum"),
                                             .beta1 = number(attr, "beta1"),
                                             .beta2 = number(attr, "beta2"),
                                             .epsilon = number(attr, "epsilon"),
                                             .flags = number(attr, "torch") > 0 ? OP_FLAG_TORCH : 0,
                                             .rate = number(attr, "rate")});
    for (size_t k = 0; k < rank; k++) {
        dims[k] = json_integer_value(json_array_get(shape, k));
        rows[k] = k + 1 < rank ? dims[k] : 0;
        columns[k] = k + 2 < rank ? dims[k] : 0;
    }
    add_both(&t, dims);
    op_trial_add_in(&t, HR_F64, dims);
    if (factored && rank > 1) {
        columns[rank - 2] = dims[rank - 1];
        add_both(&t, rows);
        add_both(&t, columns);
    }
    const uint32_t like = !factored ? op_row_of(op)->min_in - 2u : rank < 2 || op == HR_OP_ADAFACTOR_KERAS;
    for (uint32_t k = 0; k < like; k++) {
        add_both(&t, dims);
    }
    return t;
}

// A case on a device whose numbers are `real`.
static void check_case(const json_t *root, const json_t *c, op_device device, hr_dtype real)
{
    const char *name = json_string_value(json_object_get(c, "name"));
    const uint64_t steps = (uint64_t)number(root, "steps");
    op_trial drawn = trial_of(c), t = op_trial_copy(&drawn, real);
    const uint64_t count = op_trial_in_count(&t, 0);
    fill(name, 0, t.in[0], count);
    for (uint64_t step = 1; step <= steps; step++) {
        step_io io = {.learning_rate = number(c, "rate"), .update = step};
        fill(name, step, t.in[1], count);
        op_trial_run(&t, device, &io); // slots and variable come back updated
    }
    const double distance = fixture_distance(json_object_get(c, "w"), t.in[0], count);
    ck_assert_msg(distance <= (real == HR_F64 ? tolerance : float_tolerance), "%s is %g from PyTorch's", name,
                  distance);
    op_trial_deinit(&drawn);
    op_trial_deinit(&t);
}

static void check_cases(op_device device, hr_dtype real)
{
    json_t *root = fixture_open("optimizers.json");
    const json_t *cases = json_object_get(root, "cases");
    ck_assert_uint_gt(json_array_size(cases), 0);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        check_case(root, json_array_get(cases, i), device, real);
    }
    json_decref(root);
    op_device_close(&device);
}

START_TEST(updates_are_pytorchs)
{
    check_cases(op_device_open(&device_reference, 1), HR_F64);
}
END_TEST

#ifdef TEST_DEVICE
START_TEST(updates_of_the_device_are_pytorchs)
{
    check_cases(op_device_open(test_device(TEST_DEVICE), 2), HR_F32);
}
END_TEST

// Weights agree as other updates do; where rounding decides between two codes, they are neighbours.
START_TEST(bytes_are_the_judges_or_their_neighbours)
{
    op_device device = op_device_open(test_device(TEST_DEVICE), 2),
              judge = op_device_open(&device_reference, 1);
    step_io io = {.learning_rate = 0.01, .update = 3};
    op_trial drawn = op_case(HR_OP_ADAM8BIT, (uint64_t)_i, 18);
    op_trial ours = op_trial_copy(&drawn, HR_F32), judged = op_trial_copy(&drawn, HR_F32);
    uint64_t different = 0;
    const uint64_t count = op_trial_in_count(&drawn, 0);
    op_trial_run(&ours, device, &io);
    op_trial_run(&judged, judge, &io);
    ck_assert_double_le(op_distance(ours.in[0], judged.in[0], count), 1e-6);
    ck_assert_double_le(op_distance(ours.in[4], judged.in[4], op_trial_in_count(&drawn, 4)), 1e-6);
    for (uint32_t k = 2; k < 4; k++) {
        for (uint64_t i = 0; i < count; i++) {
            ck_assert_msg(fabs(ours.in[k][i] - judged.in[k][i]) <= 1.0, "code %u of %u", (unsigned)i, k);
            different += ours.in[k][i] != judged.in[k][i];
        }
    }
    ck_assert_uint_le(different, 1 + count / 100);
    op_trial_deinit(&drawn);
    op_trial_deinit(&ours);
    op_trial_deinit(&judged);
    op_device_close(&device);
    op_device_close(&judge);
}
END_TEST
#endif

int main(void)
{
#ifdef TEST_DEVICE
    if (!test_device_is_there(test_device(TEST_DEVICE))) {
        return TEST_SKIPPED;
    }
#endif
    Suite *suite = suite_create("update_fixtures");
    TCase *all = tcase_create("updates");
    tcase_add_test(all, updates_are_pytorchs);
#ifdef TEST_DEVICE
    tcase_add_test(all, updates_of_the_device_are_pytorchs);
    tcase_add_loop_test(all, bytes_are_the_judges_or_their_neighbours, 0, 8);
#endif
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
