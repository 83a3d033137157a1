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

int main(void)
{
    Suite *suite = suite_create("imported");
    TCase *cases = tcase_create("files");
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
