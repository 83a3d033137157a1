// SPDX-License-Identifier: Apache-2.0
// The values of operations on the judge against PyTorch in float64: what the gradient test cannot see, because
// it would accept any function with the right derivative.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/fixture.h"
#include "numeric/op_harness.h"

static const double tolerance = 1e-12;

enum { GRADIENT = 9 }; // the script's number for dy

static hr_op op_named(const char *name)
{
    for (hr_op op = 0; op < HR_OP_COUNT; op++) {
        if (strcmp(op_name(op), name) == 0) {
            return op;
        }
    }
    ck_abort_msg("no operation %s", name);
}

static int32_t attr_integer(const json_t *attr, const char *key)
{
    return (int32_t)json_integer_value(json_object_get(attr, key));
}

static op_attr attr_of(const json_t *attr)
{
    return (op_attr){
        .kernel_h = attr_integer(attr, "kernel_h"),
        .kernel_w = attr_integer(attr, "kernel_w"),
        .stride_h = attr_integer(attr, "stride_h"),
        .stride_w = attr_integer(attr, "stride_w"),
        .gap_h = attr_integer(attr, "gap_h"),
        .gap_w = attr_integer(attr, "gap_w"),
        .pad_top = attr_integer(attr, "pad_top"),
        .pad_left = attr_integer(attr, "pad_left"),
        .pad_bottom = attr_integer(attr, "pad_bottom"),
        .pad_right = attr_integer(attr, "pad_right"),
        .groups = attr_integer(attr, "groups"),
        .axis = attr_integer(attr, "axis"),
        .offset = attr_integer(attr, "offset"),
        .count = attr_integer(attr, "count"),
        .epsilon = json_real_value(json_object_get(attr, "epsilon")),
        .momentum = json_real_value(json_object_get(attr, "momentum")),
        .heads = attr_integer(attr, "heads"),
        .flags = attr_integer(attr, "flags"),
        .rule = attr_integer(attr, "rule"),
        .scale = json_number_value(json_object_get(attr, "scale")),
        .rate = json_number_value(json_object_get(attr, "rate")),
        .base = json_number_value(json_object_get(attr, "base")),
    };
}

// The script's operand(): numbers in [-1, 1) named after the case.
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

// Input k is made of whole numbers below numbers[k], where that is not 0; of 0, 1 and what lies between them where shares[k]
// is not 0; of wider numbers where there is a spread.
static void add_in(op_trial *t, const json_t *c, uint32_t k, const char *name,
                   const int64_t dims[OP_MAX_RANK])
{
    const json_int_t below = json_integer_value(json_array_get(json_object_get(c, "numbers"), k));
    op_trial_add_in(t, below > 0 ? HR_I32 : HR_F64, dims);
    fill(name, k, t->in[k], op_trial_in_count(t, k));
    const json_t *spread = json_object_get(c, "spread");
    for (uint64_t i = 0; spread != NULL && i < op_trial_in_count(t, k); i++) {
        t->in[k][i] *= json_real_value(spread);
    }
    for (uint64_t i = 0; below > 0 && i < op_trial_in_count(t, k); i++) {
        t->in[k][i] = floor((t->in[k][i] + 1.0) / 2.0 * (double)below);
    }
    const json_int_t parts = json_integer_value(json_array_get(json_object_get(c, "shares"), k));
    for (uint64_t i = 0; parts > 0 && i < op_trial_in_count(t, k); i++) {
        t->in[k][i] = floor((t->in[k][i] + 1.0) / 2.0 * (double)parts) / (double)(parts - 1);
    }
}

static op_trial trial_of(const json_t *c, const char *name)
{
    const hr_op op = op_named(json_string_value(json_object_get(c, "op")));
    const json_t *shapes = json_object_get(c, "in");
    op_trial t = op_trial_make(op, attr_of(json_object_get(c, "attr")));
    for (uint32_t k = 0; k < json_array_size(shapes); k++) {
        int64_t dims[OP_MAX_RANK] = {0};
        for (size_t d = 0; d < json_array_size(json_array_get(shapes, k)); d++) {
            dims[d] = json_integer_value(json_array_get(json_array_get(shapes, k), d));
        }
        add_in(&t, c, k, name, dims);
    }
    op_trial_infer_out(&t, op_row_of(op)->min_out);
    return t;
}

static void compare(const char *name, const char *what, uint32_t k, const json_t *stored,
                    const double *values, uint64_t count)
{
    const double distance = fixture_distance(stored, values, count);
    ck_assert_msg(distance <= tolerance, "%s: %s %u is %g from PyTorch's", name, what, k, distance);
}

static void compare_outputs(const char *name, const json_t *stored, const op_trial *t)
{
    for (uint32_t k = 0; k < json_array_size(stored); k++) {
        const json_t *one = json_array_get(stored, k);
        if (k < t->query.out_count) {
            compare(name, "output", k, one, t->out[k], op_trial_out_count(t, k));
        } else {
            compare(name, "running statistic", k, one, t->in[k], op_trial_in_count(t, k));
        }
    }
}

static void compare_gradients(const char *name, const json_t *stored, const op_trial *t, op_device device)
{
    const op_row *row = op_row_of((hr_op)t->query.op);
    double *dy = calloc(op_trial_out_count(t, 0), sizeof *dy);
    ck_assert_ptr_nonnull(dy);
    fill(name, GRADIENT, dy, op_trial_out_count(t, 0));
    for (uint32_t g = 0; g < row->grad_count; g++) {
        if (!op_trial_has_gradient(t, g)) {
            continue;
        }
        op_trial backward = op_trial_backward(t, g, dy);
        op_trial_run(&backward, device, NULL);
        for (uint32_t k = 0; k < backward.query.out_count; k++) {
            const uint32_t input = row->grad[g].result[k];
            compare(name, "gradient of input", input, json_array_get(stored, input), backward.out[k],
                    op_trial_out_count(&backward, k));
        }
        op_trial_deinit(&backward);
    }
    free(dy);
}

static const char *const files[] = {"ops.json", "ops_attention.json", "ops_sequence.json",
                                    "ops_recurrent.json", "ops_image.json"};

START_TEST(values_and_gradients_are_pytorchs)
{
    json_t *root = fixture_open(files[_i]);
    op_device device = op_device_open(&device_reference, 1);
    const json_t *cases = json_object_get(root, "cases");
    ck_assert_uint_gt(json_array_size(cases), 0);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *c = json_array_get(cases, i);
        const char *name = json_string_value(json_object_get(c, "name"));
        op_trial t = trial_of(c, name);
        op_trial_run(&t, device, NULL);
        compare_outputs(name, json_object_get(c, "out"), &t);
        compare_gradients(name, json_object_get(c, "grad"), &t, device);
        op_trial_deinit(&t);
    }
    op_device_close(&device);
    json_decref(root);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ops_fixtures");
    TCase *all = tcase_create("PyTorch");
    tcase_add_loop_test(all, values_and_gradients_are_pytorchs, 0, (int)(sizeof files / sizeof files[0]));
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
