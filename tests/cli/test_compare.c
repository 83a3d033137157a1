// SPDX-License-Identifier: Apache-2.0
// Promises of `headroom compare`: its numbers are those of the plans and reports themselves, what a stranger hands in is
// refused with the place, and it ends with 0 whatever it finds.
#include <check.h>
#include <math.h>
#include <pty.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "headroom/terms.h"

#include "program.h"

enum { WORDS_MAX = 512, PATH_TEXT_MAX = 160, CUTS = 24 };

static json_t *json_of(const char *words, int exit_code)
{
    outcome o = program_run(words);
    assert_exit(&o, words, exit_code);
    json_t *document = assert_json(&o, words);
    outcome_deinit(&o);
    return document;
}

// "memory.peak_in_use_bytes"
static json_t *at(json_t *document, const char *path)
{
    char key[64];
    while (*path != '\0') {
        size_t length = strcspn(path, ".");
        snprintf(key, sizeof key, "%.*s", (int)length, path);
        document = json_object_get(document, key);
        path += length + (path[length] == '.');
    }
    return document;
}

// Where each measure stands in a report, written down once more.
static const struct {
    const char *name, *path;
} measures[] = {
    {"peak_in_use_bytes", "memory.peak_in_use_bytes"},
    {"limit_bytes", "memory.limit_bytes"},
    {"peak_pool_bytes", "memory.peak_pool_bytes"},
    {"peak_requested_bytes", "memory.peak_requested_bytes"},
    {"waste_bytes", "memory.waste_bytes"},
    {"largest_free_bytes", "memory.largest_free_bytes"},
    {"fragmentation", "memory.fragmentation"},
    {"static_bytes", "memory.static_bytes"},
    {"saved_for_backward_bytes", "memory.saved_for_backward_bytes"},
    {"h2d_bytes_per_step", "transfer.h2d_bytes_per_step"},
    {"stripped_bytes", "deploy.stripped_bytes"},
    {"deployed_bytes", "deploy.deployed_bytes"},
    {"step_seconds", "step.seconds"},
    {"instructions", "step.instructions"},
    {"flops", "step.flops"},
};

static json_t *measure(json_t *compared, const char *name)
{
    size_t k;
    json_t *row;
    json_array_foreach(json_object_get(compared, "measures"), k, row)
    {
        if (strcmp(json_string_value(json_object_get(row, "name")), name) == 0) {
            return row;
        }
    }
    return NULL;
}

static void check_number(json_t *row, const char *side, json_t *expected, const char *name)
{
    json_t *value = row == NULL ? NULL : json_object_get(row, side);
    if (json_is_null(expected)) {
        ck_assert_msg(value == NULL || json_is_null(value), "%s of %s is known", name, side);
    } else {
        ck_assert_msg(value != NULL && json_number_value(value) == json_number_value(expected), "%s of %s",
                      name, side);
    }
}

static void check_against(json_t *compared, json_t *a, json_t *b)
{
    for (size_t k = 0; k < sizeof measures / sizeof *measures; k++) {
        json_t *row = measure(compared, measures[k].name), *one = at(a, measures[k].path),
               *other = at(b, measures[k].path);
        check_number(row, "a", one, measures[k].name);
        check_number(row, "b", other, measures[k].name);
        if (json_is_number(one) && json_is_number(other)) {
            double delta = json_number_value(other) - json_number_value(one);
            ck_assert(fabs(json_number_value(json_object_get(row, "delta")) - delta) <= 1e-12 * fabs(delta));
        }
    }
}

START_TEST(two_plans_are_compared_with_the_numbers_of_their_reports)
{
    static const char *const others[] = {"execution.mode=graph", "batch.size=32", "optimizer.kind=sgd"};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        char words[WORDS_MAX];
        snprintf(words, sizeof words,
                 "compare demo demo,%s --json -s device.kind=plan -s device.card=rtx3060-12g", others[k]);
        json_t *compared = json_of(words, 0);
        json_t *a = json_of("plan demo --json -s device.kind=plan -s device.card=rtx3060-12g", 0);
        snprintf(words, sizeof words, "plan demo --json -s device.kind=plan -s device.card=rtx3060-12g -s %s",
                 others[k]);
        json_t *b = json_of(words, 0);
        check_against(compared, a, b);
        const json_t *knob = json_array_get(json_object_get(compared, "knobs"), 0);
        const char *key = json_string_value(json_object_get(knob, "name"));
        ck_assert_uint_eq(json_array_size(json_object_get(compared, "knobs")), 1);
        ck_assert_int_eq(strncmp(others[k], key, strlen(key)), 0);
        ck_assert_str_eq(json_string_value(json_object_get(knob, "b")), strchr(others[k], '=') + 1);
        json_decref(compared);
        json_decref(a);
        json_decref(b);
    }
}
END_TEST

// Of 80 columns, and with the figures of docs: what pruning adds to a training, and what is left of the model.
START_TEST(what_is_compressed_is_told_of_in_both_phases)
{
    static const struct {
        const char *other;
        bool strips, deploys;         // is another row
        const char *verdict, *phases; // NULL: none
    } cases[] = {
        {"compress.quantize=int8", false, true, "b deploys 1.98 MiB less (-74.7%).",
         "Where the model is used it is 687.2 KiB (a 2.65 MiB)."},
        {"compress.prune=constant:0.5", false, false, "b needs 2.65 MiB more at the peak",
         "Where the model is used it is 2.65 MiB, as a is."},
        {"compress.low_rank=32", true, true, " less (-", "While it trains b holds "},
        {"batch.size=64", false, false, " less at the peak (-", NULL},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char words[WORDS_MAX];
        snprintf(words, sizeof words, "compare demo demo,%s -s device.vram=1GiB", cases[k].other);
        outcome o = program_run(words);
        assert_exit(&o, words, 0);
        ck_assert_msg((strstr(o.out, "\nstripped_bytes ") != NULL) == cases[k].strips, "%s", o.out);
        ck_assert_msg((strstr(o.out, "\ndeployed_bytes ") != NULL) == cases[k].deploys, "%s", o.out);
        ck_assert_msg(strstr(o.out, cases[k].verdict) != NULL, "%s", o.out);
        ck_assert_msg((strstr(o.out, "deploys ") != NULL) == cases[k].deploys, "%s", o.out);
        char *one_line = strstr(o.out, "While it trains");
        ck_assert_msg((one_line != NULL) == (cases[k].phases != NULL), "%s", o.out);
        for (char *at = one_line; at != NULL && *at != '\0'; at++) {
            *at = *at == '\n' ? ' ' : *at;
        }
        ck_assert_msg(one_line == NULL || strstr(one_line, cases[k].phases) != NULL, "%s", o.out);
        outcome_deinit(&o);
    }
}
END_TEST

static size_t columns_of(const char *line, size_t bytes)
{
    size_t columns = 0;
    for (size_t k = 0; k < bytes; k++) {
        columns += ((unsigned char)line[k] & 0xC0) != 0x80;
    }
    return columns;
}

static void assert_narrow(const char *text, const char *words)
{
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) {
        const size_t bytes = strcspn(line, "\n");
        const size_t columns = columns_of(line, bytes);
        ck_assert_msg(columns <= 80, "%s: %zu columns: %.*s", words, columns, (int)bytes, line);
    }
}

// Reports too: the SHA-256 of weights, and workspaces of layers with long names.
START_TEST(no_line_is_longer_than_80_columns)
{
    static const char *const all[] = {
        "compare demo demo,batch.size=256",
        "compare demo demo,compress.prune=polynomial:0.5:0.8:0:1000 -s device.vram=1GiB",
        "compare gpt2_124m resnet50 -s device.kind=plan -s device.card=unlimited",
        "run mlp_tiny --steps 2",
        "plan resnet50 -s device.vram=unlimited",
        "plan gpt2_124m -s device.vram=unlimited -s compress.prune=constant:0.5",
    };
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        outcome o = program_run(all[k]);
        assert_narrow(o.out, all[k]);
        outcome_deinit(&o);
    }
}
END_TEST

// What an error says in a terminal that is `columns` wide.
static void said_in_a_terminal(unsigned short columns, char *text, size_t size)
{
    struct winsize width = {.ws_row = 24, .ws_col = columns};
    int terminal = -1;
    size_t length = 0;
    const pid_t pid = forkpty(&terminal, NULL, NULL, &width);
    if (pid == 0) {
        char program[] = HEADROOM_PROGRAM, command[] = "plan", preset[] = "demo", option[] = "-s",
             pair[] = "batch.sizes=12", *argv[] = {program, command, preset, option, pair, NULL};
        execv(program, argv);
        _exit(127);
    }
    ck_assert_int_gt(pid, 0);
    for (ssize_t got; length + 1 < size && (got = read(terminal, text + length, size - length - 1)) > 0;) {
        length += (size_t)got;
    }
    text[length] = '\0';
    waitpid(pid, NULL, 0);
    close(terminal);
}

START_TEST(an_error_is_broken_at_words_and_its_try_is_not)
{
    static const char hint[] = "  try:";
    char whole[2048] = "", text[2048], joined[2048];
    outcome o = program_run("plan demo -s batch.sizes=12");
    snprintf(whole, sizeof whole, "%s", o.err); // no terminal: two lines
    outcome_deinit(&o);
    for (unsigned short columns = 20; columns < 200; columns = (unsigned short)(columns + 7)) {
        said_in_a_terminal(columns, text, sizeof text);
        size_t length = 0;
        for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) {
            const size_t bytes = strcspn(line, "\r\n");
            const bool is_hint = strncmp(line, hint, sizeof hint - 1) == 0;
            const bool goes_on = !is_hint && line > text;
            ck_assert_msg(is_hint || columns_of(line, bytes) <= columns, "%u: %s", columns, text);
            length += (size_t)snprintf(joined + length, sizeof joined - length, "%s%.*s",
                                       line == text ? ""
                                       : goes_on    ? " "
                                                    : "\n",
                                       (int)bytes - 2 * goes_on, line + 2 * goes_on);
        }
        snprintf(joined + length, sizeof joined - length, "\n");
        ck_assert_str_eq(joined, whole);
    }
}
END_TEST

static void keep(const char *words, const char *path, int exit_code)
{
    outcome o = program_run(words);
    assert_exit(&o, words, exit_code);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(o.out, file);
    ck_assert_int_eq(fclose(file), 0);
    outcome_deinit(&o);
}

START_TEST(a_report_stands_for_its_plan_and_an_out_of_memory_is_no_failure)
{
    char fits[PATH_TEXT_MAX], fails[PATH_TEXT_MAX], words[WORDS_MAX];
    snprintf(fits, sizeof fits, "%s/fits.json", program_home());
    snprintf(fails, sizeof fails, "%s/fails.json", program_home());
    keep("plan demo --json", fits, 0);
    keep("plan demo -s batch.size=256 --json", fails, 1);
    snprintf(words, sizeof words, "compare %s demo,batch.size=64 --json", fits);
    json_t *compared = json_of(words, 0), *a = json_of("plan demo --json", 0);
    json_t *b = json_of("plan demo --json -s batch.size=64", 0);
    check_against(compared, a, b);
    ck_assert_uint_eq(json_array_size(json_object_get(compared, "knobs")), 0); // a report has none
    json_decref(compared);
    json_decref(a);
    json_decref(b);
    snprintf(words, sizeof words, "compare %s %s", fits, fails);
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_ptr_nonnull(strstr(o.out, "b runs out of memory by capacity, a fits."));
    outcome_deinit(&o);
    unlink(fits);
    unlink(fails);
}
END_TEST

// Not every .json is a report: those of Keras and Hugging Face are networks, whatever they are called.
START_TEST(a_network_in_json_is_planned)
{
    static const char *const files[] = {"tests/data/keras/words.json", "tests/data/hf/distilbert_sst2.json"};
    char words[WORDS_MAX];
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        (void)snprintf(words, sizeof words, "compare %s %s,batch.size=3 --json", files[k], files[k]);
        json_t *compared = json_of(words, 0);
        (void)snprintf(words, sizeof words, "plan %s --json", files[k]);
        json_t *a = json_of(words, 0);
        (void)snprintf(words, sizeof words, "plan %s --json -s batch.size=3", files[k]);
        json_t *b = json_of(words, 0);
        check_against(compared, a, b);
        ck_assert_uint_eq(json_array_size(json_object_get(compared, "knobs")), 1);
        json_decref(compared);
        json_decref(a);
        json_decref(b);
    }
}
END_TEST

static void write_text(const char *path, const char *text, size_t length)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, length, file), length);
    ck_assert_int_eq(fclose(file), 0);
}

// As plan takes it: what ends in nothing known and begins as no trace is a preset.
START_TEST(a_preset_needs_no_ending)
{
    char folder[] = "/tmp/headroom-compare-XXXXXX", words[WORDS_MAX], path[64];
    static const char preset[] = "extends: mlp_tiny\n";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/mine", folder);
    write_text(path, preset, sizeof preset - 1);
    (void)snprintf(words, sizeof words, "compare %s %s,batch.size=3 --json", path, path);
    json_decref(json_of(words, 0));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(a_trace_is_replayed_on_the_allocator_that_stands_behind_it)
{
    char path[PATH_TEXT_MAX], words[WORDS_MAX];
    snprintf(path, sizeof path, "%s/t.csv", program_home());
    snprintf(words, sizeof words, "run demo --steps 2 --trace %s", path);
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    outcome_deinit(&o);
    snprintf(words, sizeof words, "compare %s %s,allocator.kind=caching --json", path, path);
    json_t *compared = json_of(words, 0);
    snprintf(words, sizeof words, "replay %s --allocator bfc,caching --json", path);
    json_t *replayed = json_of(words, 0);
    const json_t *allocators = json_object_get(replayed, "allocators");
    for (size_t side = 0; side < 2; side++) {
        json_t *memory = json_object_get(json_array_get(allocators, side), "memory");
        json_t *row = measure(compared, "peak_in_use_bytes");
        check_number(row, side == 0 ? "a" : "b", json_object_get(memory, "peak_in_use_bytes"),
                     "peak_in_use_bytes");
    }
    json_decref(compared);
    json_decref(replayed);
    unlink(path);
}
END_TEST

START_TEST(a_comma_within_a_value_is_part_of_it)
{
    json_t *compared = json_of(
        "compare demo "
        "demo,execution.mode=graph,checkpoint.strategy=list:separable_conv2d,max_pooling2d,batch.size=64 "
        "--json",
        0);
    const json_t *knobs = json_object_get(compared, "knobs");
    size_t k;
    json_t *knob;
    bool found = false;
    ck_assert_uint_eq(json_array_size(knobs), 3);
    json_array_foreach(knobs, k, knob)
    {
        found = found || strcmp(json_string_value(json_object_get(knob, "b")),
                                "list:separable_conv2d,max_pooling2d") == 0;
    }
    ck_assert(found);
    json_decref(compared);
}
END_TEST

// ---- what a stranger hands in ---------------------------------------------------------------------------------

static void refuse(const char *words, int exit_code, const char *says)
{
    outcome o = program_run(words);
    assert_exit(&o, words, exit_code);
    ck_assert_msg(strstr(o.err, says) != NULL, "%s: %s", words, o.err);
    ck_assert_msg(strstr(o.err, "\n  try: ") != NULL, "%s: %s", words, o.err);
    ck_assert_str_eq(o.out, "");
    outcome_deinit(&o);
}

START_TEST(what_cannot_be_compared_is_refused_with_a_way_out)
{
    refuse("compare", 2, "needs two things");
    refuse("compare demo", 2, "had demo");
    refuse("compare demo demo demo", 2, "at most 2 arguments");
    refuse("compare demo nothing", 2, "no preset is called 'nothing'");
    refuse("compare demo demo,batch.sise=2", 2, "did you mean 'batch.size'");
    refuse("compare demo nothing.json", 5, "nothing.json: cannot be opened: No such file or directory");
    refuse("compare nothing.csv demo", 5, "nothing.csv");
    refuse("compare ,a=b demo", 2, "needs a PRESET");
}
END_TEST

START_TEST(a_report_that_is_cut_or_changed_is_refused)
{
    char path[PATH_TEXT_MAX], words[WORDS_MAX];
    static const char *const changed[] = {
        "[]",
        "{}",
        "{\"schema\": \"headroom.report/2\"}",
        "{\"schema\": 1}",
        "{\"schema\": \"headroom.report/1\", \"model_type\": \"x\"}", // what wrote it goes before what is in it
        "{\"schema\": \"headroom.report/1\", \"architectures\": [\"LlamaForCausalLM\"]}",
        "{\"schema\": \"headroom.report/1\", \"preset\": \"x\", \"device\": {\"kind\": \"cpu\"}, \"oom\": 3}",
        "{\"schema\": \"headroom.report/1\", \"preset\": \"x\", \"device\": {\"kind\": \"cpu\"}, \"oom\": "
        "null, "
        "\"memory\": {\"peak_in_use_bytes\": -1}}",
        "{\"schema\": \"headroom.report/1\", \"preset\": \"x\", \"device\": {\"kind\": \"cpu\"}, \"oom\": "
        "null, "
        "\"memory\": {\"peak_in_use_bytes\": \"much\"}}"};
    outcome o = program_run("plan demo --json");
    size_t length = strlen(o.out);
    snprintf(path, sizeof path, "%s/cut.json", program_home());
    snprintf(words, sizeof words, "compare %s demo", path);
    for (size_t k = 0; k < CUTS; k++) {
        write_text(path, o.out, length * k / CUTS);
        refuse(words, 5, "cut.json");
    }
    for (size_t k = 0; k < sizeof changed / sizeof *changed; k++) {
        write_text(path, changed[k], strlen(changed[k]));
        refuse(words, 5, "cut.json");
    }
    outcome_deinit(&o);
    unlink(path);
}
END_TEST

static void check_terms(const json_t *value)
{
    const char *key;
    json_t *member;
    size_t k;
    if (json_is_array(value)) {
        json_array_foreach(value, k, member)
        {
            check_terms(member);
        }
        return;
    }
    json_object_foreach((json_t *)(size_t)value, key, member)
    {
        ck_assert_msg(hr_term_find(key) != NULL, "no term %s", key);
        check_terms(member);
    }
}

// Whatever stands in a file, or is the name of one, a terminal is not moved by it.
START_TEST(what_a_stranger_writes_does_not_reach_the_terminal_as_a_command)
{
    char path[PATH_TEXT_MAX], words[WORDS_MAX];
    json_t *report = json_of("plan demo --json", 0), *oom = json_object();
    json_object_set_new(report, "preset", json_string("a\033]52;c;ZQ==\a\xc2\x9b\r\n31mb"));
    json_object_set_new(oom, "cause", json_string("c\033[2Jd"));
    json_object_set_new(report, "oom", oom);
    snprintf(path, sizeof path, "%s/evil.json", program_home());
    ck_assert_int_eq(json_dump_file(report, path, 0), 0);
    json_decref(report);
    snprintf(words, sizeof words, "compare %s demo", path);
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_ptr_nonnull(strstr(o.out, "report of a?]52;c;ZQ==?????31mb"));
    ck_assert_ptr_nonnull(strstr(o.out, "c?[2Jd"));
    ck_assert_ptr_null(strpbrk(o.out, "\033\a\r"));
    outcome_deinit(&o);
    o = program_run("compare a\033[31mb.json demo");
    ck_assert_ptr_nonnull(strstr(o.err, "a?[31mb.json"));
    outcome_deinit(&o);
}
END_TEST

START_TEST(every_field_is_a_term)
{
    json_t *compared = json_of("compare demo demo,batch.size=64 --json", 0);
    check_terms(compared);
    json_decref(compared);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("compare");
    const TTest *const tests[] = {two_plans_are_compared_with_the_numbers_of_their_reports,
                                  what_is_compressed_is_told_of_in_both_phases,
                                  no_line_is_longer_than_80_columns,
                                  an_error_is_broken_at_words_and_its_try_is_not,
                                  a_network_in_json_is_planned,
                                  a_preset_needs_no_ending,
                                  a_report_stands_for_its_plan_and_an_out_of_memory_is_no_failure,
                                  a_trace_is_replayed_on_the_allocator_that_stands_behind_it,
                                  a_comma_within_a_value_is_part_of_it,
                                  what_cannot_be_compared_is_refused_with_a_way_out,
                                  a_report_that_is_cut_or_changed_is_refused,
                                  what_a_stranger_writes_does_not_reach_the_terminal_as_a_command,
                                  every_field_is_a_term};
    for (size_t k = 0; k < sizeof tests / sizeof *tests; k++) {
        tcase_add_test(tc, tests[k]);
    }
    Suite *suite = suite_create("compare");
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    program_remove_home();
    return failed != 0;
}
