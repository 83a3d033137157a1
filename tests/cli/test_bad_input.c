// SPDX-License-Identifier: Apache-2.0
// What is wrong on the command line, in a preset, a model or a recipe: its sentence, its exit code, and all of it in one go.
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "program.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct {
    const char *words;
    int exit_code;
    const char *said; // on stderr
    const char *tried;
} wrong[] = {
    {"pln", 2, "command line failed: there is no command or preset 'pln' — did you mean 'plan'?",
     "headroom plan -h"},
    {"nothing_like_it", 2, "there is no command or preset 'nothing_like_it'", "headroom --help"},
    {"plan", 2, "plan needs a PRESET, had none", "headroom plan demo"},
    {"run", 2, "run needs a PRESET, had none", "headroom run demo"},
    {"plan demo extra", 2, "plan takes at most 1 argument, had 'extra' too", "headroom plan -h"},
    {"plan demo -s batch.size 64", 2, "plan takes at most 1 argument, had '64' too", "-s batch.size=64"},
    {"plan demo --vram 8GiB", 2, "plan has no option '--vram'", "-s device.vram=8GiB"},
    {"plan demo --batch-size=64", 2, "plan has no option '--batch-size=64'", "-s batch.size=64"},
    {"run demo --device cpu", 2, "run has no option '--device'", "-s device.kind=cpu"},
    {"run demo --lr", 2, "run has no option '--lr'", "-s optimizer.learning_rate="},
    {"run demo --nothing_like_it 3", 2, "run has no option", "headroom run -h"},
    {"train mlp", 2, "there is no command or preset 'train'", "headroom run mlp"},
    {"resnet-5O", 2, "there is no command or preset 'resnet-5O'", "headroom resnet50"},
    {"devices extra", 2, "devices takes no argument, had 'extra'", "headroom devices -h"},
    {"plan demo --jsn", 2, "plan has no option '--jsn' — did you mean --json?", "headroom plan -h"},
    {"plan demo -x", 2, "plan has no option '-x'", "headroom plan -h"},
    {"presets --steps 3", 2, "presets has no option '--steps'", "headroom presets -h"},
    {"plan demo --json=yes", 2, "--json takes no value, had 'yes'", "headroom plan -h"},
    {"plan demo -s", 2, "--set needs a value: --set KEY=VALUE", "headroom plan -h"},
    {"plan demo --steps", 2, "--steps needs a value: --steps N", "headroom plan -h"},
    {"plan demo --steps 0", 2, "--steps needs a whole number of at least 1, had '0'", "--steps 1"},
    {"plan demo --steps 1e3", 2, "--steps needs a whole number of at least 1, had '1e3'", "--steps 1"},
    {"plan demo --steps -4", 2, "--steps needs a whole number of at least 1, had '-4'", "--steps 1"},
    {"plan demo --steps 99999999999999999999", 2, "--steps needs a whole number", "--steps 1"},
    {"run demo --steps x", 2, "--steps needs a whole number of at least 1, had 'x'", "--steps 1"},
    {"plan demo --diff execution.fuse=off", 2, "--diff is about the listing",
     "headroom plan demo --listing --diff execution.fuse=off"},
    {"plan demo --listing --diff nothing=1", 2, "no knob is called 'nothing'", "headroom knobs"},
    {"plan demo --listing --json", 2, "--listing stands alone", "headroom plan demo --listing"},
    {"plan demo --repeat 0", 2, "--repeat needs a whole number of at least 1, had '0'", "--repeat 1"},
    {"plan demo -s batch.szie=3", 2, "knob failed: no knob is called 'batch.szie'", "batch.size"},
    {"plan demo --as jax", 2, "execution.as: needs one of headroom, pytorch, tensorflow, had 'jax'",
     "-s execution.as=headroom"},
    {"plan demo --as pytorch -s execution.mode=graph", 2, "needed execution.mode=eager, had graph",
     "-s execution.mode=eager"},
    {"plan lstm_lm_medium_tiny --as tensorflow", 2, "execution.as=tensorflow has no rule for lstm (lstm0)",
     "-s execution.as=headroom"},
    {"plan lstm_lm_medium_tiny --as pytorch", 2, "execution.as=pytorch has no rule for lstm (lstm0)",
     "-s execution.as=headroom"},
    {"plan t5_base --as tensorflow", 2, "needed precision.policy float32 or float64, had mixed_bfloat16",
     "-s precision.policy=float32"},
    {"config check lstm_lm_medium_tiny --as tensorflow", 2,
     "execution.as=tensorflow has no rule for lstm (lstm0)", "-s execution.as=headroom"},
    {"config check lstm_lm_medium_tiny --as pytorch", 2, "execution.as=pytorch has no rule for lstm (lstm0)",
     "-s execution.as=headroom"},
    {"plan demo -s batch.size=0", 2, "needs a whole number from 1 to 1048576", "batch.size"},
    {"plan demo -s batch.size", 2, "knob failed: batch.size: needs a value behind '='", "-s batch.size="},
    {"plan demo -s optimizer.kind=adm", 2, "knob failed", "adam"},
    {"plan demo -s precision.policy=float64", 2, "combination of knobs failed", "-s "},
    {"plan dmo", 2, "preset failed: no preset is called 'dmo'", "headroom plan demo"},
    {"demo --script missing.keys", 5, "reading failed: missing.keys", "ls -l 'missing.keys'"},
    {"plan ./missing.yaml", 5, "reading failed: ./missing.yaml", ""},
    {"run demo -s pipeline.path=/nowhere --steps 1", 5, "/nowhere", ""},
    {"run demo --steps 1 --trace /nowhere/trace.csv", 5, "/nowhere/trace.csv", ""},
    {"run demo --steps 1 -s train.save=/nowhere/save", 5, "/nowhere/save", ""},
    {"run demo --steps 1 -s train.resume=/nowhere/save", 5, "/nowhere/save", ""},
    {"plan demo -s device.card=rtx9999", 2, "no card is called 'rtx9999'", "headroom cards"},
    {"plan demo -s batch.size=512", 1, "memory failed:", "-s "},
    {"run demo -s batch.size=512 --steps 1", 1, "memory failed:", "-s "},
    {"plan demo -s pipeline.ram_limit=1MiB", 1, "memory failed: pipeline:", "-s "},
    {"run demo -s pipeline.ram_limit=1MiB --steps 1", 1, "memory failed: pipeline:", "-s "},
    {"script", 2, "script needs a RECIPE, had none", "headroom script largest_batch"},
    {"script largest_bach", 2, "there is no recipe 'largest_bach'; there are ",
     "headroom script largest_batch"},
    {"manual headroom-pln.1", 2, "there is no page 'headroom-pln.1' — did you mean 'headroom-plan.1'?",
     "headroom manual headroom-plan.1"},
    {"script /nowhere.lua", 5, "/nowhere.lua", ""},
    {"terms fragmentatoin", 2, "there is no term 'fragmentatoin' — did you mean 'fragmentation'?",
     "headroom terms fragmentation"},
    {"knobs pipelin", 2, "there is no knob 'pipelin' — did you mean 'pipeline'?", "headroom knobs pipeline"},
    {"knobs batch.szie", 2, "there is no knob 'batch.szie' — did you mean 'batch.size'?",
     "headroom knobs batch.size"},
    {"config", 2, "config needs check, show, export or init", "headroom config -h"},
    {"config chekc demo", 2, "config needs check, show, export or init, had 'chekc'", "headroom config -h"},
    {"config check", 2, "config check needs a PRESET, had none", "headroom config check demo"},
    {"config export demo tensorflow", 2, "needed preset, pytorch or keras, had 'tensorflow'",
     "headroom config export demo keras"},
    {"config init demo", 2, "config init takes no PRESET, had 'demo'", "headroom config show demo"},
    {"demo", 2, "the workbench needs a terminal", "headroom run demo"},
    {"x.hrt", 2, "the workbench needs a terminal", "headroom plan x.hrt"}, // a trace cannot be run
    {"completion", 2, "completion needs bash, zsh or fish, had nothing", "headroom completion bash"},
    {"completion tcsh", 2, "completion needs bash, zsh or fish, had tcsh", "headroom completion bash"},
};

START_TEST(bad_input_has_its_sentence_and_its_exit_code)
{
    outcome o = program_run(wrong[_i].words);
    assert_exit(&o, wrong[_i].words, wrong[_i].exit_code);
    const char *line = strstr(o.err, "headroom: ");
    ck_assert_msg(line != NULL && strstr(o.err, wrong[_i].said) != NULL, "headroom %s: %s", wrong[_i].words,
                  o.err);
    const char *hint = strstr(line, "\n  try: ");
    ck_assert_msg(hint != NULL && strstr(hint, wrong[_i].tried) != NULL, "headroom %s: %s", wrong[_i].words,
                  o.err);
    outcome_deinit(&o);
}
END_TEST

START_TEST(a_knob_that_is_set_and_does_nothing_is_told)
{
    static const struct {
        const char *words, *said; // NULL: nothing
    } rows[] = {
        {"plan demo -s optimizer.momentum=0.5",
         "headroom: optimizer.momentum has no effect here: it applies with optimizer.kind momentum.\n"},
        {"plan demo -s optimizer.momentum=0.5 -s optimizer.kind=momentum", NULL},
        {"plan demo -s allocator.max_split=64MiB --json",
         "headroom: allocator.max_split has no effect here: it applies with allocator.kind caching.\n"},
        {"plan demo -s batch.accumulate=2", NULL}};
    for (size_t k = 0; k < COUNT(rows); k++) {
        outcome o = program_run(rows[k].words);
        assert_exit(&o, rows[k].words, 0);
        ck_assert_msg(rows[k].said == NULL ? strstr(o.err, "no effect") == NULL
                                           : strcmp(o.err, rows[k].said) == 0,
                      "%s", o.err);
        outcome_deinit(&o);
    }
}
END_TEST

// A recipe of ours is asked what it takes as a command is.
START_TEST(recipes_say_what_they_take)
{
    static const struct {
        const char *words, *said;
    } rows[] = {{"script -h", "what_fits              What fits a card: a table of ways"},
                {"script -h", "largest_batch "},
                {"script what_fits -h", "headroom script what_fits [PRESET] [CARD] [SIZE] [knob=value ...]"},
                {"script largest_batch --help", "headroom script largest_batch [PRESET] [knob=value ...]"}};
    for (size_t k = 0; k < COUNT(rows); k++) {
        outcome o = program_run(rows[k].words);
        assert_exit(&o, rows[k].words, 0);
        ck_assert_msg(strstr(o.out, rows[k].said) != NULL, "%s", o.out);
        ck_assert_ptr_null(strstr(o.out, "SPDX"));
        outcome_deinit(&o);
    }
}
END_TEST

START_TEST(an_error_is_json_too_when_json_is_asked_for)
{
    static const char *const words[] = {"plan dmo --json", "plan demo --jsn --json", "run --json",
                                        "run demo --json -s pipeline.path=/nowhere",
                                        "terms nosuchthing --json"};
    for (size_t k = 0; k < COUNT(words); k++) {
        outcome o = program_run(words[k]);
        json_t *document = assert_json(&o, words[k]);
        ck_assert_str_eq(json_string_value(json_object_get(document, "schema")), "headroom.error/1");
        ck_assert_int_eq(json_integer_value(json_object_get(document, "exit_code")), o.exit_code);
        ck_assert_ptr_nonnull(strstr(o.err, json_string_value(json_object_get(document, "sentence"))));
        ck_assert_ptr_nonnull(strstr(o.err, json_string_value(json_object_get(document, "try"))));
        ck_assert_ptr_nonnull(strstr(o.err, json_string_value(json_object_get(document, "error"))));
        json_decref(document);
        outcome_deinit(&o);
    }
}
END_TEST

START_TEST(every_problem_of_a_preset_is_shown_in_one_go)
{
    char path[128], words[192];
    snprintf(path, sizeof path, "%s/bad.yaml", program_home());
    FILE *file = fopen(path, "w");
    fputs("extends: demo\nbatch: {sze: 3}\noptimizer: {kind: adm}\n", file);
    fclose(file);
    snprintf(words, sizeof words, "config check %s", path);
    outcome o = program_run(words);
    assert_exit(&o, words, 2);
    ck_assert_ptr_nonnull(strstr(o.err, "bad.yaml:2:"));
    ck_assert_ptr_nonnull(strstr(o.err, "bad.yaml:3:"));
    const char *first = strstr(o.err, "did you mean 'size'?");
    ck_assert(first != NULL && strstr(first + 1, "did you mean 'size'?") == NULL);
    ck_assert_ptr_nonnull(strstr(o.err, "bad.yaml: see the lines above.\n  try: edit the line shown; "));
    outcome_deinit(&o);
}
END_TEST

START_TEST(every_problem_of_a_model_is_shown_in_one_go)
{
    static const char *const verbs[] = {"config check", "plan", "run"};
    char path[128], words[192];
    snprintf(path, sizeof path, "%s/bad_model.yaml", program_home());
    FILE *file = fopen(path, "w");
    fputs("device: {vram: 64MiB}\n"
          "model:\n"
          "  input: {shape: [32, 32, 3]}\n"
          "  classes: 10\n"
          "  loss: softmax_cross_entropy\n"
          "  layers:\n"
          "    - {kind: conv2dd, filters: 8, kernel: 3}\n"
          "    - {kind: flatten, unitz: 3}\n"
          "    - {kind: dense, units: -4}\n",
          file);
    fclose(file);
    for (size_t k = 0; k < COUNT(verbs); k++) {
        snprintf(words, sizeof words, "%s %s", verbs[k], path);
        outcome o = program_run(words);
        assert_exit(&o, words, 2);
        const char *at = o.err;
        for (int line = 7; line <= 9; line++) {
            char place[64];
            snprintf(place, sizeof place, "bad_model.yaml:%d:", line);
            at = strstr(at, place);
            ck_assert_msg(at != NULL, "%s: %s", place, o.err);
            const char *caret = strstr(at, "^\n");
            const char *source = strstr(at, "\n      - {kind: ");
            ck_assert(source != NULL && caret != NULL && source < caret);
            at = caret;
        }
        ck_assert_ptr_nonnull(strstr(at, "headroom: model failed: "));
        ck_assert_ptr_nonnull(strstr(at, "bad_model.yaml: see the lines above.\n  try: "));
        outcome_deinit(&o);
    }
}
END_TEST

START_TEST(a_preset_that_must_be_trusted_says_how)
{
    char path[128], words[192];
    snprintf(path, sizeof path, "%s/far.yaml", program_home());
    FILE *file = fopen(path, "w");
    fputs("extends: demo\ntrain: {save: ../far.safetensors}\n", file);
    fclose(file);
    static const char *const verbs[] = {"config check", "plan"};
    for (size_t k = 0; k < COUNT(verbs); k++) {
        char hint[256];
        snprintf(words, sizeof words, "%s %s", verbs[k], path);
        snprintf(hint, sizeof hint, "  try: headroom %s --trust\n", words);
        outcome o = program_run(words);
        assert_exit(&o, words, 2);
        ck_assert_msg(strstr(o.err, hint) != NULL, "%s", o.err);
        outcome_deinit(&o);
        strcat(words, " --trust");
        o = program_run(words);
        assert_exit(&o, words, 0);
        outcome_deinit(&o);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("bad input");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, NULL, program_remove_home);
    tcase_add_loop_test(tests, bad_input_has_its_sentence_and_its_exit_code, 0, (int)COUNT(wrong));
    tcase_add_test(tests, every_problem_of_a_model_is_shown_in_one_go);
    tcase_add_test(tests, an_error_is_json_too_when_json_is_asked_for);
    tcase_add_test(tests, recipes_say_what_they_take);
    tcase_add_test(tests, a_knob_that_is_set_and_does_nothing_is_told);
    tcase_add_test(tests, every_problem_of_a_preset_is_shown_in_one_go);
    tcase_add_test(tests, a_preset_that_must_be_trusted_says_how);
    Suite *suite = suite_create("bad input");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
