// SPDX-License-Identifier: Apache-2.0
// compress.distill: the loss is that of keras.distillation's Distiller, with its gradient, and a whole step's gradient is the
// central difference of that formula, written out once more here.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "numeric/fixture.h"
#include "numeric/op_harness.h"
#include "numeric/step_harness.h"

enum { CASES = 5, BATCH = 7, CLASSES = 10, SEED = 4 };

// ---- one loss -------------------------------------------------------------------------------------------------

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    ck_assert_msg(json_is_number(value), "no number called %s", key);
    return json_number_value(value);
}

static void take(const json_t *object, const char *key, double *to, uint64_t count)
{
    const json_t *list = json_object_get(object, key);
    ck_assert_uint_eq(json_array_size(list), count);
    for (uint64_t k = 0; k < count; k++) {
        to[k] = json_number_value(json_array_get(list, (size_t)k));
    }
}

static op_trial loss_of(const json_t *c, hr_op op, hr_dtype real, op_attr attr)
{
    const int64_t classes = (int64_t)number(c, "classes");
    const int64_t rows = (int64_t)json_array_size(json_object_get(c, "labels"));
    op_trial t = op_trial_make(op, attr);
    op_trial_add_in(&t, real, (const int64_t[OP_MAX_RANK]){rows, classes});
    take(c, "student", t.in[0], op_trial_in_count(&t, 0));
    if (op == HR_OP_KL) {
        op_trial_add_in(&t, real, (const int64_t[OP_MAX_RANK]){rows, classes});
        take(c, "teacher", t.in[1], op_trial_in_count(&t, 1));
    } else {
        op_trial_add_in(&t, HR_I32, (const int64_t[OP_MAX_RANK]){rows});
        take(c, "labels", t.in[1], op_trial_in_count(&t, 1));
    }
    op_trial_infer_out(&t, 2);
    return t;
}

// Adds weight times the loss and its gradient.
static double add_loss(const json_t *c, op_device device, hr_dtype real, hr_op op, double weight,
                       double *gradient)
{
    const double temperature = op == HR_OP_KL ? number(c, "temperature") : 0;
    op_trial forward = loss_of(c, op, real, (op_attr){.scale = weight, .epsilon = temperature});
    op_trial_run(&forward, device, NULL);
    op_trial backward = op_trial_backward(&forward, 0, NULL);
    op_trial_run(&backward, device, NULL);
    const double loss = forward.out[1][0];
    for (uint64_t k = 0; k < op_trial_in_count(&forward, 0); k++) {
        gradient[k] += backward.out[0][k];
    }
    op_trial_deinit(&backward);
    op_trial_deinit(&forward);
    return weight * loss;
}

static void check_case(const json_t *c, const char *name, hr_dtype real, double tolerance)
{
    const double alpha = number(c, "alpha");
    const size_t count = json_array_size(json_object_get(c, "student"));
    op_device device = op_device_open(test_device(name), 1);
    double *gradient = calloc(count, sizeof *gradient), *theirs = calloc(count, sizeof *theirs);
    ck_assert(gradient != NULL && theirs != NULL);
    double loss = add_loss(c, device, real, HR_OP_KL, 1 - alpha, gradient);
    if (alpha > 0) {
        loss += add_loss(c, device, real, HR_OP_SOFTMAX_XENT, alpha, gradient);
    }
    take(c, "gradient", theirs, count);
    ck_assert_msg(fabs(loss / number(c, "loss") - 1) <= tolerance, "%s: %.9g, Keras %.9g", name, loss,
                  number(c, "loss"));
    ck_assert_msg(op_distance(gradient, theirs, count) <= tolerance, "%s: gradient is %.3g from Keras'", name,
                  op_distance(gradient, theirs, count));
    free(gradient);
    free(theirs);
    op_device_close(&device);
}

START_TEST(the_loss_is_that_of_keras)
{
    json_t *file = fixture_open("distill.json");
    const json_t *cases = json_object_get(file, "cases");
    ck_assert_uint_eq(json_array_size(cases), CASES);
    check_case(json_array_get(cases, (size_t)_i), "reference", HR_F64, 1e-7); // Keras adds up in float32
#if HEADROOM_HAVE_ONEDNN
    check_case(json_array_get(cases, (size_t)_i), "cpu", HR_F32, 1e-6);
#endif
    json_decref(file);
}
END_TEST

// ---- a step ---------------------------------------------------------------------------------------------------

typedef struct setting {
    const char *device;
    const char *pairs[4];
    double alpha, temperature, tolerance;
} setting;

static const setting settings[] = {
    {"reference",
     {"device.kind=reference", "precision.policy=float64", "execution.mode=eager"},
     0.5,
     3,
     1e-7},
    {"reference",
     {"device.kind=reference", "precision.policy=float64", "execution.mode=graph"},
     0.3,
     2,
     1e-7},
    {"reference",
     {"device.kind=reference", "precision.policy=float64", "checkpoint.strategy=every:1"},
     0,
     5,
     1e-7},
#if HEADROOM_HAVE_ONEDNN
    {"cpu", {"execution.mode=graph"}, 0.5, 3, 2e-5},
    {"cpu", {"execution.mode=eager", "checkpoint.strategy=sqrt"}, 0.9, 1, 2e-5},
#endif
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static double log_sum(const double *z, double temperature)
{
    double top = z[0], sum = 0;
    for (int k = 1; k < CLASSES; k++) {
        top = fmax(top, z[k]);
    }
    for (int k = 0; k < CLASSES; k++) {
        sum += exp((z[k] - top) / temperature);
    }
    return top / temperature + log(sum);
}

// alpha L_student + (1 - alpha) T² mean KL, when `add` is on logit `of` of each student's row.
static double formula(const setting *s, const double *student, const double *teacher, int of, double add)
{
    double sum = 0;
    for (int r = 0; r < BATCH; r++) {
        double z[CLASSES], kl = 0;
        const double *t = teacher + r * CLASSES, temperature = s->temperature;
        for (int k = 0; k < CLASSES; k++) {
            z[k] = student[r * CLASSES + k] + (k == of ? add : 0);
        }
        for (int k = 0; k < CLASSES; k++) {
            const double log_p = t[k] / temperature - log_sum(t, temperature);
            kl += exp(log_p) * (log_p - z[k] / temperature + log_sum(z, temperature));
        }
        sum += s->alpha * (log_sum(z, 1) - z[(3 * r + SEED) % CLASSES]) +
               (1 - s->alpha) * temperature * temperature * kl;
    }
    return sum / BATCH;
}

static step_result step_of(const setting *s)
{
    char alpha[64], temperature[64];
    const char *pairs[10] = {"compress.distill=self", alpha, temperature};
    (void)snprintf(alpha, sizeof alpha, "compress.distill_alpha=%g", s->alpha);
    (void)snprintf(temperature, sizeof temperature, "compress.distill_temperature=%g", s->temperature);
    for (int k = 0; k < 4; k++) {
        pairs[3 + k] = s->pairs[k];
    }
    json_t *fixture = json_pack("{s:s, s:i, s:i, s:{s:s, s:f}}", "model", "mlp_tiny", "seed", SEED, "batch",
                                BATCH, "optimizer", "kind", "sgd", "learning_rate", 0.01);
    step_result out = step_run(fixture, test_device(s->device), pairs);
    json_decref(fixture);
    return out;
}

START_TEST(the_gradient_of_a_step_is_the_central_difference_of_the_formula)
{
    const setting *s = &settings[_i];
    const double h = 1e-5;
    step_result r = step_of(s);
    const step_value *z = step_find(&r, "logits"), *t = step_find(&r, "teacher_logits");
    const step_value *gradient = step_find(&r, "dense_2/bias:grad"), *loss = step_find(&r, "loss");
    ck_assert(z != NULL && t != NULL && gradient != NULL && loss != NULL);
    ck_assert_uint_eq(t->count, BATCH * CLASSES);
    ck_assert_double_gt(op_distance(z->values, t->values, t->count), 0.1); // a teacher of other weights
    double numeric[CLASSES];
    for (int k = 0; k < CLASSES; k++) {
        numeric[k] =
            (formula(s, z->values, t->values, k, h) - formula(s, z->values, t->values, k, -h)) / (2 * h);
    }
    ck_assert_double_lt(fabs(loss->values[0] / formula(s, z->values, t->values, 0, 0) - 1), s->tolerance);
    ck_assert_double_lt(op_distance(gradient->values, numeric, CLASSES), s->tolerance);
    step_result_deinit(&r);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("distill");
    TCase *tests = tcase_create("distill");
    tcase_add_loop_test(tests, the_loss_is_that_of_keras, 0, CASES);
    tcase_add_loop_test(tests, the_gradient_of_a_step_is_the_central_difference_of_the_formula, 0, SETTINGS);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
