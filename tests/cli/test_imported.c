// SPDX-License-Identifier: Apache-2.0
// Promise: an ONNX or a Keras file is a model like any other: it trains, and its plan is its run.
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "cli/program.h"

enum { WORDS_MAX = 512 };

static const char *const files[] = {
    "onnx/residual_script.onnx", "onnx/norms_script.onnx",  "onnx/dropped_dynamo.onnx",
    "onnx/patches_fixed.onnx",   "onnx/rotary_script.onnx", "onnx/tied_script.onnx",
    "keras/shared_2.json",       "keras/compiled.keras",    "keras/tagged.keras",
    "keras/focal.keras",         "keras/waves.json",        "keras/gated.json",
};

static json_t *report_of(const char *command, const char *file)
{
    char words[WORDS_MAX];
    (void)snprintf(words, sizeof words,
                   "%s tests/data/%s --json --steps 60 -s device.kind=cpu -s batch.size=32 -s "
                   "optimizer.learning_rate=0.01",
                   command, file);
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    json_t *report = assert_json(&o, words);
    outcome_deinit(&o);
    return report;
}

static double loss(const json_t *report, const char *key)
{
    const json_t *value = json_object_get(json_object_get(report, "train"), key);
    ck_assert_msg(json_is_real(value), "train.%s", key);
    return json_real_value(value);
}

START_TEST(an_imported_model_trains_and_its_plan_is_its_run)
{
    json_t *plan = report_of("plan", files[_i]), *run = report_of("run", files[_i]);
    ck_assert_msg(json_equal(json_object_get(plan, "memory"), json_object_get(run, "memory")), "%s",
                  files[_i]);
    ck_assert_msg(json_equal(json_object_get(plan, "model"), json_object_get(run, "model")), "%s", files[_i]);
    ck_assert_msg(loss(run, "loss_last") < loss(run, "loss_first"), "%s: loss %g, then %g", files[_i],
                  loss(run, "loss_first"), loss(run, "loss_last"));
    json_decref(plan);
    json_decref(run);
}
END_TEST

// ---- opaque layers --------------------------------------------------------------------------------------------

static const char opaque[] = "model:\n"
                             "  input: {shape: [32, 32, 3]}\n"
                             "  classes: 10\n"
                             "  loss: softmax_cross_entropy\n"
                             "  layers:\n"
                             "    - {name: conv, kind: conv2d, filters: 32, kernel: 3}\n"
                             "    - {name: odd, kind: opaque, shape: [7, 7, 12], parameters: 100}\n"
                             "    - {name: flatten, kind: flatten}\n"
                             "    - {name: classify, kind: dense, units: 10}\n"
                             "device: {kind: plan, vram: 1GiB}\n";

static void write_opaque(char path[WORDS_MAX])
{
    (void)snprintf(path, WORDS_MAX, "%s/opaque.yaml", program_home());
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(opaque, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

// In the gradient of what is opaque only conv/out and odd/out are kept for it: floats of 32 samples.
START_TEST(what_opaque_layers_may_keep_is_said)
{
    enum { KEPT = 32 * 4 * (30 * 30 * 32 + 7 * 7 * 12) };
    static const char *const modes[] = {"eager", "graph", "eager --as pytorch"};
    char path[WORDS_MAX], words[2 * WORDS_MAX];
    write_opaque(path);
    for (size_t k = 0; k < sizeof modes / sizeof *modes; k++) {
        (void)snprintf(words, sizeof words, "plan %s --json -s execution.mode=%s", path, modes[k]);
        json_t *report = program_json(words);
        const json_t *peak = json_object_get(json_object_get(report, "memory"), "at_peak");
        ck_assert_msg(strstr(json_string_value(json_object_get(peak, "name")), "odd/opaque_bwd") != NULL,
                      "%s", words);
        ck_assert_int_eq(json_integer_value(json_object_get(peak, "opaque_bytes")), KEPT);
        json_decref(report);
    }
    (void)snprintf(words, sizeof words, "plan %s", path);
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_msg(strstr(o.out, "  with 1 opaque layer: between ") != NULL, "%s", o.out);
    outcome_deinit(&o);
}
END_TEST

START_TEST(what_is_opaque_is_not_run)
{
    static const char *const devices[] = {"cpu", "reference"};
    char path[WORDS_MAX], words[2 * WORDS_MAX];
    write_opaque(path);
    for (size_t k = 0; k < sizeof devices / sizeof *devices; k++) {
        (void)snprintf(words, sizeof words, "run %s -s device.kind=%s", path, devices[k]);
        outcome o = program_run(words);
        ck_assert_msg(o.exit_code != 0 && strstr(o.err, "an opaque layer: ") != NULL &&
                          strstr(o.err, "-s device.kind=plan") != NULL,
                      "%s", o.err);
        outcome_deinit(&o);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("imported");
    TCase *cases = tcase_create("files");
    tcase_add_test(cases, what_opaque_layers_may_keep_is_said);
    tcase_add_test(cases, what_is_opaque_is_not_run);
    tcase_add_loop_test(cases, an_imported_model_trains_and_its_plan_is_its_run, 0,
                        (int)(sizeof files / sizeof *files));
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    program_remove_home();
    return failed != 0;
}
