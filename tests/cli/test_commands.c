// SPDX-License-Identifier: Apache-2.0
// Promises of the command line: exit codes, sentences for every kind of bad input, plain text into pipes, one JSON
// document behind --json, and completion scripts that a shell accepts.
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "program.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

// ---- what is wrong is said ------------------------------------------------------------------------------------

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

// ---- what is right works --------------------------------------------------------------------------------------

static const struct {
    const char *words;
    const char *printed; // on stdout
} right[] = {
    {"-h", "headroom run PRESET"},
    {"--help", "-s, --set KEY=VALUE"},
    {"help", "headroom plan PRESET"},
    {"--version", "headroom 0.1.0\n"},
    {"--help", "expect TEXT"},
    {"run -h", "--trace FILE  "},
    {"plan demo --help", "--at-peak"},
    {"config -h", "headroom config ACTION [PRESET [FORM]]"},
    {"presets", "demo  "},
    {"presets mobilenet_v2", "few weights are not little\nmemory."},
    {"presets demo", "  batch.size=128\n"},
    {"cards", "rtx3070-8g"},
    {"devices", "reference"},
    {"knobs", "optimizer.learning_rate"},
    {"knobs batch.size", "1 to 1048576 samples"},
    {"knobs --markdown", "| `batch.size` | 32 |"},
    {"terms", "peak_in_use_bytes"},
    {"terms GradScaler", "loss_scale\n"},
    {"terms recompute_grad", "recomputation\n"},
    {"terms waste", "in_use − requested"},
    {"doctor", "cores"},
    {"config check demo", "demo: nothing is wrong with it"},
    {"config check t5_base_tiny --as pytorch -s optimizer.kind=adamw", "nothing is wrong with it"},
    {"config check demo -s device.vram=1MiB",
     "nothing is wrong with it"}, // what does not fit is the plan's to say
    {"config check demo -s device.kind=cuda -s device.card=a100-80g -s train.resume=absent.safetensors",
     "nothing is wrong with it"}, // a plan looks at no device and no weights
    {"config show demo", "  size: 128"},
    {"config show demo --origin", "presets/demo.yaml:"},
    {"config show demo -s batch.size=3 --origin", "# --set"},
    {"config init", "learning_rate: 0.001"},
    {"completion bash", "complete -F _headroom headroom"},
    {"completion zsh", "#compdef headroom"},
    {"completion fish", "complete -c headroom"},
    {"plan demo", "fits: "},
    {"knobs optimizer", "optimizer.momentum "},
    {"terms padding", "bytes that a layout adds"},
    {"plan demo --listing", "; a line: number, phase, bytes alive"},
    {"plan demo --listing", "; training step, batch 128: "},
    {"plan demo --listing -s pipeline.resident=on",
     "; the batch stays in its slots, and its data does not change"},
    {"plan demo -s pipeline.resident=on", "one batch stays on the device: its data does not change"},
    {"plan demo --listing -s batch.accumulate=3", "; training step, batch 128 x 3 = 384: "},
    {"plan demo -s batch.accumulate=3", "demo: batch 128 x 3 = 384, float32, eager, adam\n"},
    {"plan gpt2_124m -s checkpoint.strategy=sqrt -s offload.optimizer=on",
     ", recomputes (sqrt), offloads optimizer\n"},
    {"plan gpt2_124m -s offload.optimizer=on", "  offloaded to host"},
    {"plan demo --listing --diff optimizer.fused_backward=on", "lines go, "},
    {"plan demo --at-peak", "separable_conv2d/depthwise_weights"},
    {"plan demo --repeat 16", "distinct peaks       16"},
    {"plan demo -s device.kind=plan -s device.card=rtx3070-8g -s device.vram=64MiB", "ms s"},
    {"plan -sbatch.size=64 demo --set=execution.mode=graph", "batch 64, float32, graph"},
    {"plan demo --as pytorch -s batch.size=64 -s device.vram=1GiB",
     "demo: batch 64, float32, eager as PyTorch, adam\n"},
    {"plan demo --as pytorch -s batch.size=64 -s device.vram=1GiB", "64.00 MiB p  taken"},
    {"plan demo --as pytorch -s allocator.kind=bfc -s batch.size=64 -s device.vram=1GiB",
     "1.00 GiB p  taken"},
    {"plan demo -s allocator.kind=bfc --as pytorch -s batch.size=64 -s device.vram=1GiB",
     "1.00 GiB p  taken"},
    {"plan demo --as=pytorch -s batch.size=64 -s device.vram=1GiB --listing", "/hold  probs:total_weight"},
    {"plan demo --as tensorflow -s batch.size=64 -s device.vram=1GiB",
     "demo: batch 64, float32, eager as TensorFlow, adam\n"},
    {"plan demo --as tensorflow -s batch.size=64 -s device.vram=1GiB", "1.00 GiB p  taken"},
    {"plan cifar10_separable_cnn_tiny --as=tensorflow --listing", "/hold  probs:losses"},
    {"plan resnet50_keras_tiny --as tensorflow", "eager as TensorFlow"},
    {"plan t5_base_tiny --as pytorch -s optimizer.kind=adamw", "eager as PyTorch"}, // the preset says graph
    {"plan -- demo", "fits: "},
};

START_TEST(a_good_command_prints_plain_text_and_ends_with_0)
{
    outcome o = program_run(right[_i].words);
    assert_exit(&o, right[_i].words, 0);
    ck_assert_msg(strstr(o.out, right[_i].printed) != NULL, "headroom %s:\n%s", right[_i].words, o.out);
    ck_assert_msg(strchr(o.out, '\x1b') == NULL && strchr(o.out, '\r') == NULL, "headroom %s",
                  right[_i].words);
    ck_assert_msg(o.err[0] == '\0', "headroom %s: %s", right[_i].words, o.err);
    outcome_deinit(&o);
}
END_TEST

static const char *const json_commands[] = {
    "presets --json",
    "presets demo --json",
    "cards --json",
    "devices --json",
    "knobs --json",
    "knobs --schema",
    "terms --json",
    "terms in_use --json",
    "config show demo --json",
    "plan demo --json",
    "plan demo -s batch.size=512 --json",
};

START_TEST(json_is_one_document_and_nothing_else)
{
    outcome o = program_run(json_commands[_i]);
    json_decref(assert_json(&o, json_commands[_i]));
    outcome_deinit(&o);
}
END_TEST

START_TEST(a_full_disk_is_an_error_and_a_closed_pipe_is_not)
{
    // Short enough to fail at the end, long enough to fail before it.
    static const char *const commands[] = {"knobs --json", "knobs", "completion bash", "completion fish",
                                           "--version"};
    for (size_t k = 0; k < COUNT(commands); k++) {
        char command[512];
        (void)snprintf(command, sizeof command, "%s %s >/dev/full 2>%s/full", HEADROOM_PROGRAM, commands[k],
                       program_home());
        ck_assert_int_eq(WEXITSTATUS(system(command)), 5);
        (void)snprintf(command, sizeof command, "grep -q Success %s/full", program_home());
        ck_assert_int_ne(system(command), 0);
    }
    ck_assert_int_eq(system(HEADROOM_PROGRAM " knobs --json 2>&1 | head -n 1 | grep -q '^.$'"), 0);
}
END_TEST

START_TEST(without_a_terminal_the_workbench_is_a_short_help)
{
    static const char *const words[] = {"", "-s batch.size=3"};
    for (size_t k = 0; k < COUNT(words); k++) {
        outcome o = program_run(words[k]);
        assert_exit(&o, words[k], 2);
        ck_assert_ptr_nonnull(strstr(o.out, "headroom run PRESET"));
        outcome_deinit(&o);
    }
}
END_TEST

// A preset that headroom printed itself is one that it reads.
static void assert_reads_back(const char *words)
{
    char path[128], check[192];
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    snprintf(path, sizeof path, "%s/printed.yaml", program_home());
    FILE *file = fopen(path, "w");
    fputs(o.out, file);
    fclose(file);
    outcome_deinit(&o);
    snprintf(check, sizeof check, "config check %s", path);
    o = program_run(check);
    assert_exit(&o, check, 0);
    outcome_deinit(&o);
}

START_TEST(printed_presets_are_presets)
{
    assert_reads_back("config init");
    assert_reads_back("config show demo");
    assert_reads_back("config show resnet18_cifar --origin -s optimizer.kind=sgd");
}
END_TEST

START_TEST(completion_is_accepted_by_the_shells)
{
    static const char *const shells[] = {"bash", "zsh", "fish"};
    for (size_t k = 0; k < COUNT(shells); k++) {
        char command[256];
        snprintf(command, sizeof command,
                 "command -v %s >/dev/null || exit 0; %s completion %s | %s -n /dev/stdin", shells[k],
                 HEADROOM_PROGRAM, shells[k], shells[k]);
        ck_assert_msg(system(command) == 0, "%s", shells[k]);
    }
}
END_TEST

START_TEST(bash_completes_commands_options_knobs_and_presets)
{
    static const struct {
        const char *typed, *completed;
    } rows[] = {{"headroom pla", "plan"},
                {"headroom plan --li", "--listing"},
                {"headroom plan dem", "demo"},
                {"headroom plan demo -s batch.si", "batch.size="},
                {"headroom replay growth_b", "growth_boundary"},
                {"headroom config sh", "show"},
                {"headroom completion f", "fish"}};
    for (size_t k = 0; k < COUNT(rows); k++) {
        char command[1024];
        const char *last = strrchr(rows[k].typed, ' ') + 1;
        snprintf(
            command, sizeof command,
            "bash -c 'set -e; PATH=%.*s:$PATH; source <(headroom completion bash); compopt() { :; }; "
            "COMP_LINE=\"%s\"; COMP_POINT=${#COMP_LINE}; read -ra COMP_WORDS <<<\"$COMP_LINE\"; "
            "COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _headroom || true; printf \"%%s\\n\" \"${COMPREPLY[@]}\" | "
            "grep -qxF -e \"%s\"'",
            (int)(strrchr(HEADROOM_PROGRAM, '/') - HEADROOM_PROGRAM), HEADROOM_PROGRAM, rows[k].typed,
            rows[k].completed);
        ck_assert_msg(system(command) == 0, "%s (%s)", rows[k].typed, last);
    }
}
END_TEST

// ---- run ------------------------------------------------------------------------------------------------------

START_TEST(a_run_reports_on_stdout_and_goes_on_about_itself_on_stderr)
{
    static const char words[] = "run demo -s device.kind=reference -s batch.size=2 --steps 2";
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_ptr_nonnull(strstr(o.out, "training on generated data"));
    ck_assert_ptr_nonnull(strstr(o.out, "memory at the peak"));
    ck_assert_ptr_nonnull(strstr(o.err, "step 2 of 2  loss "));
    ck_assert_ptr_null(strchr(o.err, '\r'));
    ck_assert_ptr_null(strchr(o.err, '\x1b'));
    outcome_deinit(&o);
}
END_TEST

START_TEST(a_run_under_loss_scaling_says_the_scale_and_what_it_skipped)
{
    static const char words[] =
        "run demo -s device.kind=reference -s batch.size=2 -s precision.policy=mixed_float16 --steps 2";
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_ptr_nonnull(strstr(o.out, "  loss scale           32768, 0 steps skipped\n"));
    outcome_deinit(&o);
}
END_TEST

static const int gentle[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU};

START_TEST(a_signal_finishes_the_step_saves_and_reports)
{
    char words[256];
    snprintf(words, sizeof words,
             "run demo -s device.kind=reference -s batch.size=2 --steps 100000 --json -s "
             "train.save=%s/w.safetensors",
             program_home());
    outcome o = program_interrupt(words, gentle[_i]);
    assert_exit(&o, words, 128 + gentle[_i]);
    json_t *report = assert_json(&o, words);
    json_int_t steps = json_integer_value(json_object_get(json_object_get(report, "train"), "steps"));
    ck_assert_int_ge(steps, 1);
    ck_assert_int_lt(steps, 100000);
    ck_assert_ptr_nonnull(strstr(o.err, "headroom: interrupted after step "));
    ck_assert_ptr_nonnull(strstr(o.err, ", saved to "));
    ck_assert_ptr_nonnull(strstr(o.err, "  try: -s train.resume="));
    json_decref(report);
    outcome_deinit(&o);

    snprintf(words, sizeof words,
             "run demo -s device.kind=reference -s batch.size=2 --steps %d --json -s "
             "train.resume=%s/w.safetensors",
             (int)steps + 1, program_home());
    o = program_run(words);
    assert_exit(&o, words, 0);
    report = assert_json(&o, words);
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(report, "train"), "steps")),
                     steps + 1);
    json_decref(report);
    outcome_deinit(&o);
}
END_TEST

static void signal_twice(pid_t child, void *number)
{
    ck_assert_int_eq(kill(child, *(int *)number), 0);
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL); // so that they are two, within a step
    (void)kill(child, *(int *)number);
}

// `timeout` and a shell whose line was dropped: nobody is impatient.
START_TEST(a_signal_that_comes_twice_does_not_cost_the_save)
{
    static int twice[] = {SIGTERM, SIGHUP};
    char words[256], save[160];
    snprintf(save, sizeof save, "%s/twice.safetensors", program_home());
    snprintf(words, sizeof words,
             "run demo -s device.kind=reference -s batch.size=16 --steps 100000 -s train.save=%s", save);
    outcome o = program_meddle(words, signal_twice, &twice[_i]);
    assert_exit(&o, words, 128 + twice[_i]);
    ck_assert_msg(strstr(o.err, ", saved to ") != NULL, "%s", o.err);
    ck_assert_int_eq(access(save, F_OK), 0);
    outcome_deinit(&o);
}
END_TEST

#define SMALL "-s device.kind=reference -s batch.size=2"

// Who ends a recipe ends its run as a person would.
START_TEST(a_signal_ends_a_recipe_with_a_save)
{
    char words[256], save[160];
    snprintf(save, sizeof save, "%s/headroom-out/s.safetensors", program_home());
    snprintf(words, sizeof words, "%s/train.lua", program_home());
    FILE *f = fopen(words, "w");
    ck_assert_ptr_nonnull(f);
    fprintf(f, "hr.preset 'demo'\nhr.on('step', function() hr.note('step') end)\n"
               "hr.run{steps = 100000, ['device.kind'] = 'reference', ['batch.size'] = 2,\n"
               "       ['train.save'] = 's.safetensors'}\n");
    fclose(f);
    snprintf(words, sizeof words, "script %s/train.lua", program_home());
    ck_assert_int_eq(chdir(program_home()), 0);
    outcome o = program_interrupt(words, gentle[_i]);
    assert_exit(&o, words, 128 + gentle[_i]);
    ck_assert_msg(strstr(o.err, ", saved to headroom-out/s.safetensors.\n") != NULL, "%s", o.err);
    ck_assert_int_eq(access(save, F_OK), 0);
    outcome_deinit(&o);
}
END_TEST

// The ring of events and the save are larger than allowed: the run goes on without watchers, and says which file it was.
START_TEST(a_file_that_may_not_be_so_large_has_a_sentence)
{
    char words[256];
    const struct rlimit small = {64 << 10, 64 << 10};
    snprintf(words, sizeof words, "run demo " SMALL " --steps 2 -s train.save=%s/large.safetensors",
             program_home());
    ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", program_home(), 1), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    outcome o = program_run(words);
    assert_exit(&o, words, 5);
    ck_assert_msg(strstr(o.err, "large.safetensors: cannot be written: File too large") != NULL, "%s", o.err);
    ck_assert_ptr_nonnull(strstr(o.err, "headroom: ended after step 2, nothing saved: "));
    outcome_deinit(&o);
}
END_TEST

static void write_images(const char *name, size_t images)
{
    static const char image[3073];
    char path[192];
    snprintf(path, sizeof path, "%s/%s", program_home(), name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    for (size_t k = 0; k < images; k++) {
        ck_assert_uint_eq(fwrite(image, sizeof image, 1, f), 1);
    }
    fclose(f);
}

static void truncate_file(pid_t child, void *path)
{
    (void)child;
    ck_assert_int_eq(truncate(path, 3073), 0);
}

// The images go while it trains.
START_TEST(data_that_fail_after_good_steps_end_with_a_save_and_say_so)
{
    char words[300], path[192];
    const int saves = _i == 0;
    write_images("data_batch_1.bin", 200);
    write_images("test_batch.bin", 4);
    snprintf(words, sizeof words, "run demo " SMALL " --steps 100000 -s pipeline.path=%s -s train.save=%s%s",
             program_home(), saves ? program_home() : "", saves ? "/d.safetensors" : "");
    snprintf(path, sizeof path, "%s/data_batch_1.bin", program_home());
    outcome o = program_meddle(words, truncate_file, path);
    assert_exit(&o, words, 5);
    const char *first = strstr(o.err, "headroom: data failed: "),
               *last = strstr(o.err, "headroom: ended after step ");
    ck_assert_msg(first != NULL && last != NULL && first < last, "%s", o.err);
    ck_assert_ptr_nonnull(strstr(last, saves ? ", saved to " : ", nothing saved: train.save is not set.\n"));
    outcome_deinit(&o);
}
END_TEST

START_TEST(a_run_with_nothing_left_to_do_measures_nothing)
{
    char words[256];
    snprintf(words, sizeof words, "run demo " SMALL " --steps 2 -s train.save=%s/done.safetensors",
             program_home());
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    outcome_deinit(&o);

    snprintf(words, sizeof words, "run demo " SMALL " --steps 1 -s train.resume=%s/done.safetensors",
             program_home());
    o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_ptr_nonnull(
        strstr(o.out, "already at step 2: nothing to train; --steps counts from the beginning\n"));
    ck_assert_ptr_null(strstr(o.out, "memory"));
    outcome_deinit(&o);

    strcat(words, " --json");
    o = program_run(words);
    assert_exit(&o, words, 0);
    json_t *report = assert_json(&o, words);
    const json_t *memory = json_object_get(report, "memory");
    ck_assert(json_is_null(json_object_get(memory, "peak_in_use_bytes")));
    ck_assert(json_is_null(json_object_get(memory, "at_peak")));
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(report, "train"), "steps")), 2);
    json_decref(report);
    outcome_deinit(&o);
}
END_TEST

START_TEST(a_loss_that_is_no_number_is_said)
{
    static const char words[] = "run demo " SMALL " --steps 20 -s optimizer.learning_rate=1000";
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_msg(strstr(o.err, "step 20 of 20  loss nan  ") != NULL, "%s", o.err);
    ck_assert_ptr_nonnull(strstr(o.err, "headroom: the loss is no longer a number.\n"
                                        "  try: -s optimizer.learning_rate=100\n"));
    ck_assert_ptr_nonnull(strstr(o.out, "at first, nan at last\n  the loss is no longer a number\n"));
    outcome_deinit(&o);
}
END_TEST

// Its terminal has gone: what is read later is the file that stderr went to, and its last word is what was kept.
START_TEST(a_hang_up_ends_with_what_was_kept)
{
    char command[1024];
    const char *home = program_home();
    (void)snprintf(command, sizeof command,
                   "HOME=%s; export HOME; " HEADROOM_PROGRAM
                   " run demo -s device.kind=reference -s batch.size=2 --steps 100000 "
                   "-s train.save=%s/hup.safetensors >/dev/full 2>%s/hup & p=$!; "
                   "until grep -q step %s/hup; do sleep 0.05; done; kill -HUP $p; wait $p; test $? = 129 && "
                   "grep -q 'saved to' %s/hup && ! grep -q 'writing failed' %s/hup",
                   home, home, home, home, home, home);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(an_interruption_claims_no_save_that_was_not_written)
{
    char words[256];
    snprintf(
        words, sizeof words,
        "run demo -s device.kind=plan --plain --json --steps 100000000 -s train.save=%s/none.safetensors",
        program_home());
    outcome o = program_interrupt(words, SIGINT);
    assert_exit(&o, words, 130);
    ck_assert_msg(strstr(o.err, ", nothing saved: the plan device has no weights.") != NULL, "%s", o.err);
    outcome_deinit(&o);
}
END_TEST

START_TEST(the_same_save_is_said_once)
{
    char words[256];
    snprintf(words, sizeof words,
             "run demo " SMALL " --steps 2 -s train.save_every=1 -s train.save=%s/once.safetensors",
             program_home());
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_ptr_nonnull(strstr(o.err, "  step 1\n"));
    const char *last = strstr(o.err, "  step 2\n");
    ck_assert_msg(last != NULL && strstr(last + 1, "  step 2\n") == NULL, "%s", o.err);
    outcome_deinit(&o);
}
END_TEST

START_TEST(steps_of_the_plan_device_are_played_not_trained)
{
    static const char words[] = "run demo -s device.kind=plan --steps 2";
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_ptr_nonnull(strstr(o.out, "played on the plan device: no arithmetic, nothing trained"));
    ck_assert(strstr(o.out, "training") == NULL && strstr(o.out, "examples/s") == NULL);
    ck_assert(strstr(o.err, "examples/s") == NULL && strstr(o.err, "loss") == NULL);
    outcome_deinit(&o);
}
END_TEST

// The bytes of a row of the text report, in the unit it is printed in.
static double row_bytes(const char *table, const char *label)
{
    static const char units[] = "BKMGT";
    double bytes = 0;
    char unit = 'B';
    const char *row = strstr(table, label);
    if (row != NULL) {
        ck_assert_int_eq(sscanf(row + strlen(label), "%lf %c", &bytes, &unit), 2);
    }
    for (const char *u = strchr(units, unit); u != units; u--) {
        bytes *= 1024;
    }
    return bytes;
}

START_TEST(rows_of_an_oom_add_up)
{
    static const char *const labels[] = {"W weights ",     "G gradients ", "O optimizer ",
                                         "A activations ", "I input ",     "  waste "};
    static const char words[] = "plan demo -s batch.size=512";
    double sum = 0;
    outcome o = program_run(words);
    assert_exit(&o, words, 1);
    const char *table = strstr(o.out, "memory when it ran out");
    ck_assert(table != NULL && strstr(table, "  waste ") != NULL);
    for (size_t k = 0; k < COUNT(labels); k++) {
        sum += row_bytes(table, labels[k]);
    }
    ck_assert_double_eq_tol(sum, row_bytes(table, "  in use "), 64 * 1024); // of the printed digits
    outcome_deinit(&o);
}
END_TEST

START_TEST(the_limit_says_what_set_it)
{
    static const char words[] = "plan demo -s device.kind=plan -s device.card=rtx3070-8g -s device.vram=1GiB";
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_ptr_nonnull(strstr(o.out, " plan, rtx3070-8g, limit 1.00 GiB (device.vram)\n"));
    outcome_deinit(&o);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("commands");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, NULL, program_remove_home);
    tcase_add_loop_test(tests, bad_input_has_its_sentence_and_its_exit_code, 0, (int)COUNT(wrong));
    tcase_add_test(tests, every_problem_of_a_model_is_shown_in_one_go);
    tcase_add_test(tests, an_error_is_json_too_when_json_is_asked_for);
    tcase_add_test(tests, recipes_say_what_they_take);
    tcase_add_test(tests, a_knob_that_is_set_and_does_nothing_is_told);
    tcase_add_test(tests, every_problem_of_a_preset_is_shown_in_one_go);
    tcase_add_test(tests, a_preset_that_must_be_trusted_says_how);
    tcase_add_loop_test(tests, a_good_command_prints_plain_text_and_ends_with_0, 0, (int)COUNT(right));
    tcase_add_loop_test(tests, json_is_one_document_and_nothing_else, 0, (int)COUNT(json_commands));
    tcase_add_test(tests, a_full_disk_is_an_error_and_a_closed_pipe_is_not);
    tcase_add_test(tests, without_a_terminal_the_workbench_is_a_short_help);
    tcase_add_test(tests, printed_presets_are_presets);
    tcase_add_test(tests, completion_is_accepted_by_the_shells);
    tcase_add_test(tests, bash_completes_commands_options_knobs_and_presets);
    tcase_add_test(tests, a_run_reports_on_stdout_and_goes_on_about_itself_on_stderr);
    tcase_add_test(tests, a_run_under_loss_scaling_says_the_scale_and_what_it_skipped);
    tcase_add_test(tests, a_run_with_nothing_left_to_do_measures_nothing);
    tcase_add_test(tests, a_loss_that_is_no_number_is_said);
    tcase_add_test(tests, a_hang_up_ends_with_what_was_kept);
    tcase_add_test(tests, an_interruption_claims_no_save_that_was_not_written);
    tcase_add_test(tests, the_same_save_is_said_once);
    tcase_add_test(tests, steps_of_the_plan_device_are_played_not_trained);
    tcase_add_test(tests, rows_of_an_oom_add_up);
    tcase_add_test(tests, the_limit_says_what_set_it);
    tcase_add_loop_test(tests, a_signal_finishes_the_step_saves_and_reports, 0,
                        sizeof gentle / sizeof *gentle);
    tcase_add_test(tests, a_file_that_may_not_be_so_large_has_a_sentence);
    tcase_add_loop_test(tests, a_signal_that_comes_twice_does_not_cost_the_save, 0, 2);
    tcase_add_loop_test(tests, a_signal_ends_a_recipe_with_a_save, 0, 3);
    tcase_add_loop_test(tests, data_that_fail_after_good_steps_end_with_a_save_and_say_so, 0, 2);
    Suite *suite = suite_create("commands");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
