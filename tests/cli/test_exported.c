// SPDX-License-Identifier: Apache-2.0
// Promise: what scripts/export/torch_to_headroom.py writes of a PyTorch module is a model like any other: it has the
// module's parameters, trains, and its plan is its run. The files of tests/data/exported are what it wrote of
// tests/cli/exported_modules.py, and scripts/export/keras_to_headroom.py of tests/cli/exported_keras.py; a Python that has
// PyTorch and Keras (HEADROOM_PEER_PYTHON) writes them again byte for byte.
#include <check.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/program.h"

enum { LEAST_FILES = 24, WORDS_MAX = 4096 };

static glob_t files;

static json_t *report_of(const char *command, const char *path)
{
    char words[WORDS_MAX];
    (void)snprintf(words, sizeof words,
                   "%s %s --json --steps 60 -s device.kind=cpu -s optimizer.learning_rate=0.01", command,
                   path);
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    json_t *report = assert_json(&o, words);
    outcome_deinit(&o);
    return report;
}

static const json_t *field(const json_t *report, const char *group, const char *key)
{
    const json_t *value = json_object_get(json_object_get(report, group), key);
    ck_assert_msg(value != NULL, "%s.%s", group, key);
    return value;
}

// What the first line says: "# Written by torch_to_headroom.py: MODULE, N parameters."
static long long parameters_of(const char *path)
{
    char line[256] = "";
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL && fgets(line, sizeof line, f) != NULL, "%s", path);
    ck_assert_int_eq(fclose(f), 0);
    const char *comma = strrchr(line, ',');
    ck_assert_msg(comma != NULL && strstr(line, "# Written by ") == line, "%s: %s", path, line);
    return strtoll(comma + 1, NULL, 10);
}

START_TEST(an_exported_model_trains_and_its_plan_is_its_run)
{
    const char *path = files.gl_pathv[_i];
    json_t *plan = report_of("plan", path);
    json_t *run = report_of("run", path);
    ck_assert_int_eq(json_integer_value(field(plan, "model", "trainable_parameters")), parameters_of(path));
    ck_assert_msg(json_equal(json_object_get(plan, "memory"), json_object_get(run, "memory")), "%s", path);
    const double first = json_real_value(field(run, "train", "loss_first"));
    const double last = json_real_value(field(run, "train", "loss_last"));
    ck_assert_msg(last < first, "%s: loss %g, then %g", path, first, last);
    json_decref(plan);
    json_decref(run);
}
END_TEST

START_TEST(the_frameworks_write_the_same_files_again)
{
    const char *python = getenv("HEADROOM_PEER_PYTHON");
    if (python == NULL) {
        return; // nothing here needs PyTorch
    }
    char words[WORDS_MAX], again[320];
    (void)snprintf(again, sizeof again, "%s/exported", program_home());
    ck_assert_int_eq(mkdir(again, 0700), 0);
    (void)snprintf(words, sizeof words,
                   "'%s' tests/cli/exported_modules.py %s 2>/dev/null && '%s' tests/cli/exported_keras.py %s "
                   "2>/dev/null && "
                   "diff -r %s tests/data/exported",
                   python, again, python, again, again);
    ck_assert_msg(system(words) == 0, "%s", words); // NOLINT(cert-env33-c): two Pythons, diff
}
END_TEST

// Runs the exporter for a module of tests/cli/exported_modules.py; its words are in HOME/said, its file is HOME/MODULE.yaml.
static void export_module(const char *python, const char *module, const char *example, int status,
                          const char *then)
{
    char words[WORDS_MAX];
    (void)snprintf(words, sizeof words,
                   "cd '%s' && '%s' \"$OLDPWD\"/scripts/export/torch_to_headroom.py "
                   "\"$OLDPWD\"/tests/cli/exported_modules.py:%s %s --output %s.yaml >said 2>&1; "
                   "test $? = %d && ! grep -q Traceback said && %s || { cat said; false; }",
                   program_home(), python, module, example, module, status, then);
    ck_assert_msg(system(words) == 0, "%s", words); // NOLINT(cert-env33-c): a Python, grep
}

START_TEST(what_no_layer_holds_is_named_all_at_once_and_nothing_is_written)
{
    const char *python = getenv("HEADROOM_PEER_PYTHON");
    if (python == NULL) {
        return; // nothing here needs PyTorch
    }
    export_module(python, "Mistakes", "--ids 8", 1,
                  "grep -q '3 things in Mistakes' said && "
                  "grep -q 'div in the module itself (exported_modules.py:.*rounding_mode' said && "
                  "grep -q 'embedding in `words`.*: an embedding with scale_grad_by_freq=True' said && "
                  "grep -q 'cumsum in the module itself.*no layer' said && test \"$(ls Mistakes*)\" = ''");
}
END_TEST

// Moved, joined and hidden as PyTorch does it, or refused: a file that says something else is not written.
static const struct {
    const char *module;
    int status;
    const char *then;
} moved[] = {
    {"WindowsTurned", 1, "grep -q 'windows in another order' said"},
    {"WindowsInside", 1, "grep -q 'windows in another order' said"},
    {"WindowsDown", 1, "grep -q 'windows in another order' said"},
    {"WindowsFaint", 1, "grep -q 'hides by less than -100' said"},
    {"RolledBatch", 1, "grep -q 'a roll of the batch' said"},
    {"TakenTwice", 0, "grep -q 'patch_merging.reshape, kind: reshape, shape: .4, 48.}' TakenTwice.yaml"},
    {"JoinedTwice", 0, "grep -q 'inputs: .stem, permute, permute_1.' JoinedTwice.yaml"},
};

START_TEST(what_is_moved_is_written_as_it_is_or_refused)
{
    const char *python = getenv("HEADROOM_PEER_PYTHON");
    if (python == NULL) {
        return; // nothing here needs PyTorch
    }
    export_module(python, moved[_i].module, "--shape 3,16,16", moved[_i].status, moved[_i].then);
}
END_TEST

START_TEST(a_bias_of_scores_is_no_causal_mask)
{
    const char *python = getenv("HEADROOM_PEER_PYTHON");
    if (python == NULL) {
        return; // nothing here needs PyTorch
    }
    export_module(python, "Slanted", "--ids 8", 1,
                  "grep -q 'as ALiBi adds it' said && test ! -e Slanted.yaml");
}
END_TEST

START_TEST(a_module_that_cannot_be_made_is_one_sentence)
{
    const char *python = getenv("HEADROOM_PEER_PYTHON");
    if (python == NULL) {
        return; // nothing here needs PyTorch
    }
    export_module(python, "Unmade", "--ids 8", 1,
                  "grep -q 'Unmade: RuntimeError: a width of 7$' said && test $(wc -l <said) = 1 && "
                  "test ! -e Unmade.yaml");
}
END_TEST

START_TEST(a_module_in_bfloat16_has_that_policy)
{
    const char *python = getenv("HEADROOM_PEER_PYTHON");
    if (python == NULL) {
        return; // nothing here needs PyTorch
    }
    export_module(
        python, "Short", "--ids 8", 0,
        "grep -qx 'precision: {policy: bfloat16}' Short.yaml && grep -q 'row 3 of `words.weight`' said");
}
END_TEST

START_TEST(a_binary_loss_gets_logits_through_what_only_moves_them)
{
    const char *python = getenv("HEADROOM_PEER_PYTHON"), *binary = "--shape 8 --loss binary_cross_entropy";
    if (python == NULL) {
        return; // nothing here needs PyTorch
    }
    // The sigmoid within stays, the last is gone, or what reads it besides has one of its own.
    export_module(python, "OneShare", binary, 0,
                  "grep -q 'last sigmoid is left out' said && test $(grep -c sigmoid OneShare.yaml) = 1 && "
                  "grep -q 'name: out, kind: dense, units: 4}' OneShare.yaml");
    export_module(python, "Shares", binary, 0,
                  "grep -q 'last sigmoid is left out' said && test $(grep -c sigmoid Shares.yaml) = 2 && "
                  "grep -q 'name: out, kind: dense, units: 4}' Shares.yaml && "
                  "grep -q 'prediction: out}' Shares.yaml");
    export_module(
        python, "OneShare", "--shape 8", 0,
        "grep -q 'add --loss binary_cross_entropy' said && test $(grep -c sigmoid OneShare.yaml) = 2");
    export_module(python, "MixedShares", binary, 1,
                  "grep -q 'joins probabilities of a sigmoid with other numbers' said && "
                  "test ! -e MixedShares.yaml");
}
END_TEST

int main(void)
{
    if (glob("tests/data/exported/*.yaml", 0, NULL, &files) != 0 || files.gl_pathc < LEAST_FILES) {
        (void)fprintf(stderr, "tests/data/exported: needed %d files, had %zu\n", LEAST_FILES, files.gl_pathc);
        return 1;
    }
    Suite *suite = suite_create("exported");
    TCase *cases = tcase_create("modules");
    tcase_add_loop_test(cases, an_exported_model_trains_and_its_plan_is_its_run, 0, (int)files.gl_pathc);
    tcase_add_test(cases, the_frameworks_write_the_same_files_again);
    tcase_add_test(cases, what_no_layer_holds_is_named_all_at_once_and_nothing_is_written);
    tcase_add_loop_test(cases, what_is_moved_is_written_as_it_is_or_refused, 0,
                        (int)(sizeof moved / sizeof *moved));
    tcase_add_test(cases, a_bias_of_scores_is_no_causal_mask);
    tcase_add_test(cases, a_module_that_cannot_be_made_is_one_sentence);
    tcase_add_test(cases, a_module_in_bfloat16_has_that_policy);
    tcase_add_test(cases, a_binary_loss_gets_logits_through_what_only_moves_them);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    globfree(&files);
    program_remove_home();
    return failed != 0;
}
