// SPDX-License-Identifier: Apache-2.0
// The cpu device in bfloat16 against PyTorch's CPU kernels in bfloat16, forward and gradients: as near to them as two
// roundings allow, and not much farther than they are from what float64 gives for the same rounded operands.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/bf16_trial.h"
#include "numeric/fixture.h"

// A mean squared error of 1e-3 of the mean square, and so much of PyTorch's own distance. What is float32 in both is a
// float32 sum of a few products, on either side.
static const double nmse_most = 1e-3, share_most = 2.0, float32_most = 1e-6;

enum { GRADIENT = 9, NAME_MAX = 128 }; // the script's number for dy

static op_device cpu;

static hr_op op_named(const char *name)
{
    for (hr_op op = 0; op < HR_OP_COUNT; op++) {
        if (strcmp(op_name(op), name) == 0) {
            return op;
        }
    }
    ck_abort_msg("no operation %s", name);
}

static op_attr attr_of(const json_t *attr)
{
    op_attr a = {.epsilon = json_real_value(json_object_get(attr, "epsilon")),
                 .momentum = json_real_value(json_object_get(attr, "momentum")),
                 .scale = json_number_value(json_object_get(attr, "scale"))};
    const struct {
        const char *key;
        int32_t *value;
    } integers[] = {{"kernel_h", &a.kernel_h},     {"kernel_w", &a.kernel_w},   {"stride_h", &a.stride_h},
                    {"stride_w", &a.stride_w},     {"pad_top", &a.pad_top},     {"pad_left", &a.pad_left},
                    {"pad_bottom", &a.pad_bottom}, {"pad_right", &a.pad_right}, {"groups", &a.groups},
                    {"heads", &a.heads},           {"flags", &a.flags}};
    for (size_t k = 0; k < sizeof integers / sizeof integers[0]; k++) {
        *integers[k].value = (int32_t)json_integer_value(json_object_get(attr, integers[k].key));
    }
    return a;
}

// The script's operand(): numbers in [-1, 1) named after the case.
static void fill(const char *name, uint64_t index, double *values, uint64_t count)
{
    char purpose[NAME_MAX];
    float *uniform = calloc(count, sizeof *uniform);
    ck_assert_ptr_nonnull(uniform);
    (void)snprintf(purpose, sizeof purpose, "test/ops/%s", name);
    fixture_uniform(index, purpose, uniform, count);
    for (uint64_t i = 0; i < count; i++) {
        values[i] = 2.0 * (double)uniform[i] - 1.0;
    }
    free(uniform);
}

// Input k is made of whole numbers below numbers[k], where that is not 0.
static void add_in(op_trial *t, const json_t *c, uint32_t k, const json_t *shape)
{
    const json_int_t below = json_integer_value(json_array_get(json_object_get(c, "numbers"), k));
    int64_t dims[OP_MAX_RANK] = {0};
    for (size_t d = 0; d < json_array_size(shape); d++) {
        dims[d] = json_integer_value(json_array_get(shape, d));
    }
    op_trial_add_in(t, below > 0 ? HR_I32 : HR_F64, dims);
    fill(json_string_value(json_object_get(c, "name")), k, t->in[k], op_trial_in_count(t, k));
    for (uint64_t i = 0; below > 0 && i < op_trial_in_count(t, k); i++) {
        t->in[k][i] = floor((t->in[k][i] + 1.0) / 2.0 * (double)below);
    }
}

static op_trial trial_of(const json_t *c)
{
    const hr_op op = op_named(json_string_value(json_object_get(c, "op")));
    const json_t *shapes = json_object_get(c, "in");
    op_trial t = op_trial_make(op, attr_of(json_object_get(c, "attr")));
    for (uint32_t k = 0; k < json_array_size(shapes); k++) {
        add_in(&t, c, k, json_array_get(shapes, k));
    }
    op_trial_infer_out(&t, op_row_of(op)->min_out);
    bf16_round_inputs(&t, bf16_wide_of(op));
    return t;
}

// The results are left in `t`.
static void run(op_trial *t, bf16_wide w)
{
    op_trial half = bf16_trial(t, w);
    op_trial_run(&half, cpu, NULL);
    for (uint32_t k = 0; k < t->query.out_count; k++) {
        memcpy(t->out[k], half.out[k], op_trial_out_count(t, k) * sizeof *t->out[k]);
    }
    op_trial_deinit(&half);
}

static void compare(const char *name, const char *what, uint32_t k, const json_t *stored,
                    const double *values, uint64_t count)
{
    if (!json_is_object(stored)) {
        return; // PyTorch has no gradient there
    }
    const double from_torch = fixture_entries_distance(json_object_get(stored, "torch"), values, count);
    const double from_exact = fixture_entries_distance(json_object_get(stored, "exact"), values, count);
    const double torchs = json_number_value(json_object_get(stored, "distance"));
    ck_assert_msg(from_torch * from_torch <= nmse_most, "%s: %s %u is %g from PyTorch's", name, what, k,
                  from_torch);
    ck_assert_msg(from_exact <= fmax(share_most * torchs, float32_most),
                  "%s: %s %u is %g from float64's, PyTorch's is %g", name, what, k, from_exact, torchs);
}

static void compare_gradients(const json_t *c, const char *name, const op_trial *t)
{
    const op_row *row = op_row_of((hr_op)t->query.op);
    double *dy = calloc(op_trial_out_count(t, 0), sizeof *dy);
    ck_assert_ptr_nonnull(dy);
    fill(name, GRADIENT, dy, op_trial_out_count(t, 0));
    bf16_round(dy, op_trial_out_count(t, 0));
    for (uint32_t g = 0; g < row->grad_count; g++) {
        if (!op_trial_has_gradient(t, g)) {
            continue;
        }
        op_trial backward = op_trial_backward(t, g, dy);
        run(&backward, bf16_wide_of_backward(&t->query, &row->grad[g]));
        for (uint32_t k = 0; k < backward.query.out_count; k++) {
            const uint32_t input = row->grad[g].result[k];
            compare(name, "gradient of input", input, json_array_get(json_object_get(c, "grad"), input),
                    backward.out[k], op_trial_out_count(&backward, k));
        }
        op_trial_deinit(&backward);
    }
    free(dy);
}

START_TEST(bfloat16_is_pytorchs)
{
    json_t *root = fixture_open("ops_bf16.json");
    const json_t *cases = json_object_get(root, "cases");
    cpu = op_device_open(&device_cpu, 1);
    ck_assert_uint_gt(json_array_size(cases), 40);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *c = json_array_get(cases, i);
        const char *name = json_string_value(json_object_get(c, "name"));
        op_trial t = trial_of(c);
        run(&t, bf16_wide_of((hr_op)t.query.op));
        compare(name, "output", 0, json_object_get(c, "out"), t.out[0], op_trial_out_count(&t, 0));
        compare_gradients(c, name, &t);
        op_trial_deinit(&t);
    }
    op_device_close(&cpu);
    json_decref(root);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cpu_bf16_fixtures");
    TCase *tc = tcase_create("PyTorch's bfloat16");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, bfloat16_is_pytorchs);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
