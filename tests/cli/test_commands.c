// SPDX-License-Identifier: Apache-2.0
// Promises of the command line: plain text into pipes, one JSON document behind --json, and completion scripts that a
// shell accepts.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "program.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

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
    {"plan demo -s device.kind=plan -s device.card=rtx3070-8g -s device.vram=64MiB",
     "estimated from the card's datasheet\n"},
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

START_TEST(help_fits_80_columns)
{
    static const char *const commands[] = {"-h", "script -h", "lesson -h", "explain -h"};
    outcome o = program_run(commands[_i]);
    assert_exit(&o, commands[_i], 0);
    for (char *rest = NULL, *line = strtok_r(o.out, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        ck_assert_msg(strlen(line) <= 80, "%s: %s", commands[_i], line);
    }
    outcome_deinit(&o);
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

int main(void)
{
    TCase *tests = tcase_create("commands");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, NULL, program_remove_home);
    tcase_add_loop_test(tests, a_good_command_prints_plain_text_and_ends_with_0, 0, (int)COUNT(right));
    tcase_add_loop_test(tests, json_is_one_document_and_nothing_else, 0, (int)COUNT(json_commands));
    tcase_add_test(tests, a_full_disk_is_an_error_and_a_closed_pipe_is_not);
    tcase_add_test(tests, without_a_terminal_the_workbench_is_a_short_help);
    tcase_add_test(tests, printed_presets_are_presets);
    tcase_add_loop_test(tests, help_fits_80_columns, 0, 4);
    tcase_add_test(tests, completion_is_accepted_by_the_shells);
    tcase_add_test(tests, bash_completes_commands_options_knobs_and_presets);
    Suite *suite = suite_create("commands");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
