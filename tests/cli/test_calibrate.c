// SPDX-License-Identifier: Apache-2.0
// doctor --calibrate: what it prints, and what plans for the cpu device know from then on.
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/program.h"

static const char calibrate[] = "doctor --calibrate --json --seconds 3 -s threads.count=1";

static json_t *json_of(const char *words, int exit_code)
{
    outcome o = program_run(words);
    assert_exit(&o, words, exit_code);
    json_t *document = assert_json(&o, words);
    outcome_deinit(&o);
    return document;
}

// -1: they are not this machine's own.
static double step_seconds(const char *words)
{
    json_t *report = json_of(words, 0);
    const json_t *step = json_object_get(report, "step");
    const json_t *seconds = json_object_get(step, "seconds"),
                 *source = json_object_get(step, "seconds_source");
    const char *basis = json_string_value(json_object_get(step, "seconds_basis"));
    ck_assert_msg(json_real_value(seconds) > 0 && basis != NULL, "%s", words);
    ck_assert_str_eq(json_string_value(source), "simulated");
    const bool is_own = strcmp(basis, "calibration") == 0;
    ck_assert(is_own || strcmp(basis, "usual_cores") == 0);
    const double value = is_own ? json_real_value(seconds) : -1;
    json_decref(report);
    return value;
}

static void assert_says(const char *words, const char *sentence, bool says)
{
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_msg((strstr(o.out, sentence) != NULL) == says, "%s: %s", words, o.out);
    outcome_deinit(&o);
}

// Every family with its numbers; each of those that only the cpu device can have measured.
static void assert_document(const json_t *c)
{
    const json_t *families = json_object_get(c, "families");
    bool has_product = false;
    ck_assert_str_eq(json_string_value(json_object_get(c, "schema")), "headroom.calibration/1");
    ck_assert_str_ne(json_string_value(json_object_get(c, "isa")), "");
    ck_assert_int_eq(json_integer_value(json_object_get(c, "threads")), 1);
    ck_assert(json_real_value(json_object_get(c, "seconds")) > 0);
    ck_assert_uint_gt(json_array_size(families), 10);
    for (size_t k = 0; k < json_array_size(families); k++) {
        static const char *const rates[] = {"flops_per_second", "bytes_per_second"};
        const json_t *row = json_array_get(families, k);
        const char *name = json_string_value(json_object_get(row, "name"));
        const char *dtype = json_string_value(json_object_get(row, "dtype"));
        ck_assert_uint_eq(json_object_size(row), 6);
        ck_assert(strcmp(dtype, "float32") == 0 || strcmp(dtype, "bfloat16") == 0);
        ck_assert_int_gt(json_integer_value(json_object_get(row, "instructions")), 0);
        ck_assert(json_number_value(json_object_get(row, "start_seconds")) >= 0);
        for (int r = 0; r < 2; r++) {
            const json_t *rate = json_object_get(row, rates[r]);
            ck_assert_msg(json_is_null(rate) || json_number_value(rate) > 0, "%s %s", name, rates[r]);
        }
        has_product = has_product || strcmp(name, "product") == 0;
    }
    ck_assert(has_product);
}

// A document that was kept, or says why not; both are valid, for a machine that tests is seldom idle.
static json_t *calibrated(int *exit_code, double *seconds)
{
    outcome o = program_run(calibrate);
    json_t *document = assert_json(&o, calibrate);
    const json_t *refusal = json_object_get(document, "refusal");
    *exit_code = o.exit_code;
    *seconds = json_real_value(json_object_get(document, "seconds"));
    ck_assert_int_eq(o.exit_code, json_is_null(refusal) ? 0 : 1);
    ck_assert(json_is_null(refusal) || json_is_null(json_object_get(document, "kept")));
    ck_assert(json_is_null(refusal) || strlen(json_string_value(refusal)) > 20);
    outcome_deinit(&o);
    return document;
}

static void assert_models(const json_t *models)
{
    ck_assert_uint_gt(json_array_size(models), 0);
    for (size_t k = 0; k < json_array_size(models); k++) {
        const json_t *row = json_array_get(models, k);
        ck_assert_uint_eq(json_object_size(row), 7);
        ck_assert_int_ge(json_integer_value(json_object_get(row, "steps")), 3);
        ck_assert_int_ge(json_integer_value(json_object_get(row, "batch")), 1);
        ck_assert(json_real_value(json_object_get(row, "planned_seconds")) > 0);
        ck_assert(json_real_value(json_object_get(row, "measured_seconds")) > 0);
        ck_assert(json_number_value(json_object_get(row, "noise")) >= 0);
    }
}
static const char plan[] = "plan cifar10_separable_cnn_tiny --json -s device.kind=cpu -s threads.count=1";

// Without oneDNN there is no cpu device, and the program says so.
static bool is_missing(const char *words)
{
    outcome o = program_run(words);
    const bool missing = o.exit_code == 4;
    outcome_deinit(&o);
    return missing;
}

START_TEST(a_calibrated_machine_knows_how_long_a_step_takes)
{
    char file[256];
    if (is_missing(plan)) {
        ck_assert(is_missing(calibrate));
        return;
    }
    ck_assert_double_eq(step_seconds(plan), -1);
    assert_says("plan cifar10_separable_cnn_tiny -s threads.count=1", "headroom doctor --calibrate", true);
    int exit_code = 0;
    double seconds = 0;
    json_t *c = calibrated(&exit_code, &seconds);
    ck_assert_double_gt(seconds, 0);
    assert_models(json_object_get(c, "models"));
    if (exit_code != 0) {
        json_decref(c);
        ck_assert_double_eq(step_seconds(plan), -1);
        return;
    }
    assert_document(c);
    (void)snprintf(file, sizeof file, "%s", json_string_value(json_object_get(c, "kept")));
    json_decref(c);
    ck_assert_ptr_nonnull(strstr(file, program_home()));
    ck_assert_double_gt(step_seconds(plan), 0);
    assert_says("plan cifar10_separable_cnn_tiny -s threads.count=1", "headroom doctor --calibrate", false);
    // Another number of threads was not measured, and a file that is no longer whole is not believed.
    ck_assert_double_eq(
        step_seconds("plan cifar10_separable_cnn_tiny --json -s device.kind=cpu -s threads.count=3"), -1);
    FILE *f = fopen(file, "ab");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs("more", f), 0);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_double_eq(step_seconds(plan), -1);
}
END_TEST

START_TEST(what_belongs_to_a_calibration_is_refused_without_one)
{
    static const char *const words[] = {"doctor --json", "doctor -s threads.count=1", "doctor --seconds 3",
                                        "doctor --calibrate --seconds 0",
                                        "doctor --calibrate -s threads.count=-1"};
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        outcome o = program_run(words[k]);
        assert_exit(&o, words[k], 2);
        outcome_deinit(&o);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("calibrate");
    TCase *all = tcase_create("promises");
    tcase_add_test(all, a_calibrated_machine_knows_how_long_a_step_takes);
    tcase_add_test(all, what_belongs_to_a_calibration_is_refused_without_one);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    program_remove_home();
    return failed != 0;
}
