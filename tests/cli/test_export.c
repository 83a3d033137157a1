// SPDX-License-Identifier: Apache-2.0
// Promises of `headroom export`: bytes of what is deployed, a file that evaluates as the report says, weights that were not touched
// bit for bit, and one sentence for what cannot be.
#include <check.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headroom/terms.h"

#include "program.h"

enum { WORDS_MAX = 1024 };

static const char trains[] = "run demo -s batch.size=32";
static const char exports[] = "export demo -s batch.size=32 --json --save";

static json_t *json_of(const char *format, ...) __attribute__((format(printf, 1, 2)));

static json_t *json_of(const char *format, ...)
{
    char words[WORDS_MAX];
    va_list list;
    va_start(list, format);
    vsnprintf(words, sizeof words, format, list);
    va_end(list);
    return program_json(words);
}

static void refused(const char *sentence, int exit_code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void refused(const char *sentence, int exit_code, const char *format, ...)
{
    char words[WORDS_MAX];
    va_list list;
    va_start(list, format);
    vsnprintf(words, sizeof words, format, list);
    va_end(list);
    outcome o = program_run(words);
    assert_exit(&o, words, exit_code);
    ck_assert_msg(strstr(o.err, sentence) != NULL, "%s: needed '%s', had '%s'", words, sentence, o.err);
    outcome_deinit(&o);
}

// The save that all tests are about, made once.
static const char *trained(void)
{
    static char path[256];
    char words[WORDS_MAX];
    struct stat facts;
    snprintf(path, sizeof path, "%s/w.safetensors", program_home());
    if (stat(path, &facts) != 0) {
        snprintf(words, sizeof words, "%s --steps 40 -s train.save=%s", trains, path);
        outcome o = program_run(words);
        assert_exit(&o, words, 0);
        outcome_deinit(&o);
    }
    return path;
}

static void train_once(void)
{
    (void)trained();
}

static const char *file_of(const char *leaf)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s.safetensors", program_home(), leaf);
    return path;
}

static json_int_t size_of(const json_t *d, const char *what, const char *key)
{
    return json_integer_value(json_object_get(json_object_get(json_object_get(d, "sizes"), what), key));
}

static double evaluated(const json_t *d, const char *what, const char *key)
{
    const json_t *v = json_object_get(json_object_get(json_object_get(d, "evaluation"), what), key);
    ck_assert_msg(json_is_number(v), "%s %s", what, key);
    return json_number_value(v);
}

START_TEST(stripped_is_the_model_alone_and_evaluates_alike)
{
    struct stat facts;
    json_t *d = json_of("%s %s --strip -o %s", exports, trained(), file_of("s"));
    ck_assert_int_eq(size_of(d, "stripped", "ram_bytes"), 2781972);
    ck_assert_int_eq(size_of(d, "save", "ram_bytes"), 3 * 2781972); // Adam
    ck_assert_int_eq(size_of(d, "deployed", "file_bytes"), size_of(d, "stripped", "file_bytes"));
    ck_assert_int_eq(stat(file_of("s"), &facts), 0);
    ck_assert_int_eq(facts.st_size, size_of(d, "deployed", "file_bytes"));
    ck_assert_int_lt(size_of(d, "stripped", "gzip_bytes"), size_of(d, "stripped", "file_bytes"));
    json_t *again = json_of("%s %s", exports, file_of("s"));
    ck_assert(evaluated(d, "trained", "loss") == evaluated(again, "trained", "loss"));
    ck_assert(evaluated(d, "trained", "accuracy") == evaluated(again, "trained", "accuracy"));
    json_decref(again);
    json_decref(d);
}
END_TEST

START_TEST(training_goes_on_from_a_stripped_save_and_says_so)
{
    char words[WORDS_MAX];
    json_decref(json_of("%s %s -o %s", exports, trained(), file_of("on")));
    snprintf(words, sizeof words, "%s -s train.resume=%s -s train.steps=42", trains, file_of("on"));
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_ptr_nonnull(strstr(o.err, "a stripped save: the optimizer's slots begin anew"));
    outcome_deinit(&o);
}
END_TEST

static const struct {
    const char *mode;
    json_int_t ram_bytes;
    double most_error;
} modes[] = {{"int8", 703676, 0.01},
             {"int8_weights", 703676, 0.01},
             // 85 groups of 64 units and one of 10 have a scale and a zero point each.
             {"int4_weights", 10816 * 32 + 64 * 5 + 5 * (85 * 64 + 10) + 4 * 74 + 10220, 0.1}};

START_TEST(whole_numbers_take_what_the_formula_says)
{
    json_t *d = json_of("%s %s --quantize %s -o %s", exports, trained(), modes[_i].mode, file_of("q"));
    ck_assert_int_eq(size_of(d, "deployed", "ram_bytes"), modes[_i].ram_bytes);
    ck_assert_int_eq(size_of(d, "stripped", "ram_bytes"), 2781972);
    ck_assert_str_eq(json_string_value(json_object_get(d, "quantize")), modes[_i].mode);
    size_t k, quantised = 0;
    json_t *t;
    json_array_foreach(json_object_get(d, "tensors"), k, t)
    {
        const json_t *error = json_object_get(t, "max_error");
        const bool taken = strncmp(json_string_value(json_object_get(t, "dtype")), "int", 3) == 0;
        ck_assert(taken == json_is_number(error));
        ck_assert(!taken ||
                  (json_number_value(error) > 0 && json_number_value(error) < modes[_i].most_error));
        quantised += taken;
    }
    ck_assert_uint_eq(quantised, 2);
    json_decref(d);
}
END_TEST

static json_int_t planned(const json_t *report, const char *key)
{
    return json_integer_value(json_object_get(json_object_get(report, "deploy"), key));
}

START_TEST(a_plan_says_the_same)
{
    json_t *r = json_of("plan demo -s compress.quantize=%s --json", modes[_i].mode);
    ck_assert_int_eq(planned(r, "stripped_bytes"), 2781972);
    ck_assert_int_eq(planned(r, "deployed_bytes"), modes[_i].ram_bytes);
    json_decref(r);
}
END_TEST

START_TEST(the_text_of_a_plan_has_it_where_something_is_compressed)
{
    static const struct {
        const char *words, *row; // NULL: none
    } cases[] = {
        {"plan demo", NULL},
        {"plan demo -s compress.lora_alpha=8 -s compress.prune_structure=2:4", NULL},
        {"plan demo -s compress.quantize=int4_weights",
         "\n  deployed                375.2 KiB p  weights and state, quantised to int4\n"},
        {"plan demo -s compress.prune=constant:0.5",
         "\n  deployed                 2.65 MiB p  weights and state alone\n"},
        {"plan demo -s compress.lora=4", "\n  deployed                 2.82 MiB p"},
        {"plan demo -s compress.low_rank=32", "\n  deployed                 1.34 MiB p"},
        {"plan demo -s compress.distill=self -s batch.size=8", "\n  deployed                 2.65 MiB p"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        outcome o = program_run(cases[k].words);
        assert_exit(&o, cases[k].words, 0);
        ck_assert_msg(cases[k].row == NULL ? strstr(o.out, "deployed") == NULL
                                           : strstr(o.out, cases[k].row) != NULL,
                      "%s: %s", cases[k].words, o.out);
        outcome_deinit(&o);
    }
}
END_TEST

START_TEST(a_plan_of_a_run_that_trains_for_it_says_what_it_holds)
{
    json_t *r = json_of("plan demo -s batch.size=32 -s compress.quantize=qat --json");
    ck_assert_int_eq(planned(r, "stripped_bytes"), 2781972);
    ck_assert_int_eq(planned(r, "deployed_bytes"), 2781972);
    json_decref(r);
}
END_TEST

// The save's, that is, its own.
static void check_sum_of_bytes(const json_t *d, json_int_t bytes)
{
    json_int_t sum = 0;
    size_t k;
    json_t *t;
    json_array_foreach(json_object_get(d, "tensors"), k, t)
    {
        sum += json_integer_value(json_object_get(t, "bytes"));
    }
    ck_assert_int_eq(sum, bytes);
}

START_TEST(a_quantised_file_evaluates_as_the_report_says)
{
    json_t *d = json_of("%s %s --quantize %s -o %s", exports, trained(), modes[_i].mode, file_of("e"));
    json_t *again = json_of("%s %s", exports, file_of("e"));
    ck_assert(fabs(evaluated(d, "deployed", "loss") - evaluated(again, "deployed", "loss")) < 1e-6);
    ck_assert(fabs(evaluated(d, "deployed", "accuracy") - evaluated(d, "trained", "accuracy")) <= 0.01);
    ck_assert(
        json_is_null(json_object_get(json_object_get(json_object_get(again, "sizes"), "save"), "ram_bytes")));
    ck_assert_int_eq(size_of(again, "deployed", "ram_bytes"), modes[_i].ram_bytes);
    check_sum_of_bytes(d, 2781972);
    check_sum_of_bytes(again, modes[_i].ram_bytes);
    json_decref(again);
    json_decref(d);
}
END_TEST

START_TEST(a_quantised_file_does_not_train)
{
    json_decref(json_of("%s %s --quantize int8 -o %s", exports, trained(), file_of("n")));
    refused("n.safetensors has int8 weights, which evaluate and do not train", 5,
            "%s -s train.resume=%s -s train.steps=50", trains, file_of("n"));
    refused("has int8 weights already", 5, "%s %s --quantize int4_weights", exports, file_of("n"));
}
END_TEST

// The steps of the save that was resumed are kept in it.
START_TEST(a_training_that_is_refused_has_one_error)
{
    static const char *const refusals[] = {
        "", " -s device.vram=1MiB", " -s compress.prune=constant:0.5 -s compress.prune_structure=block:2x2"};
    char words[WORDS_MAX];
    json_decref(json_of("%s %s --quantize int8 -o %s", exports, trained(), file_of("n")));
    for (size_t k = 0; k < 2 * sizeof refusals / sizeof *refusals; k++) {
        const char *resumed = k < 2 ? file_of("n") : trained();
        int length = snprintf(words, sizeof words, "%s -s train.steps=90 -s train.resume=%s%s", trains,
                              resumed, refusals[k / 2]);
        if (k % 2 == 1) {
            snprintf(words + length, sizeof words - (size_t)length, " -s train.save=%s", file_of("unsaved"));
        }
        outcome o = program_run(words);
        ck_assert_int_ne(o.exit_code, 0);
        const char *first = strstr(o.err, "headroom: ");
        ck_assert_msg(first != NULL && strstr(first + 1, "headroom: ") == NULL, "%s: %s", words, o.err);
        outcome_deinit(&o);
    }
}
END_TEST

START_TEST(a_recipe_that_is_refused_has_one_error)
{
    char words[WORDS_MAX];
    snprintf(words, sizeof words, "%s/refused.lua", program_home());
    FILE *f = fopen(words, "w");
    ck_assert_ptr_nonnull(f);
    fputs("hr.preset('demo')\nhr.knobs.batch.size = 32\nhr.knobs.train.resume = 'w.safetensors'\n"
          "hr.knobs.device.vram = '1MiB'\nhr.run{steps = 90}\n",
          f);
    ck_assert_int_eq(fclose(f), 0);
    ck_assert_int_eq(chdir(program_home()), 0);
    outcome o = program_run("script refused.lua");
    ck_assert_msg(o.exit_code != 0 && strstr(o.err, "refused.lua:5: capacity") != NULL, "%s", o.err);
    ck_assert_msg(strstr(o.err, "nothing saved") == NULL, "%s", o.err);
    outcome_deinit(&o);
}
END_TEST

static void make_folder_of_presets(void)
{
    char path[300];
    snprintf(path, sizeof path, "%s/sub", program_home());
    ck_assert_int_eq(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/base.yaml", program_home());
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs("extends: demo\nbatch: {size: 32}\n", f);
    ck_assert_int_eq(fclose(f), 0);
}

// Beside what it extends, and in a folder below it.
START_TEST(the_command_that_export_says_works)
{
    static const char *const places[] = {"narrow", "sub/narrow"};
    char words[WORDS_MAX];
    make_folder_of_presets();
    snprintf(words, sizeof words,
             "%s --steps 2 -s compress.prune=constant:0.5:0:-1:1 -s compress.prune_structure=filter -s "
             "train.save=%s",
             trains, file_of("masked"));
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    outcome_deinit(&o);
    for (int k = 0; k < 2; k++) {
        snprintf(words, sizeof words, "export %s/base.yaml --save %s/masked.safetensors -o %s",
                 program_home(), program_home(), file_of(places[k]));
        o = program_run(words);
        assert_exit(&o, words, 0);
        char *said = strstr(o.out, "\n  headroom export ");
        ck_assert_msg(said != NULL, "%s", o.out);
        said += strlen("\n  headroom ");
        said[strcspn(said, "\n")] = '\0';
        ck_assert_int_eq(strstr(said, " --trust ") != NULL, k == 1);
        outcome again = program_run(said);
        assert_exit(&again, said, 0);
        outcome_deinit(&again);
        outcome_deinit(&o);
    }
}
END_TEST

START_TEST(what_cannot_be_is_said_in_a_sentence)
{
    refused("needs a preset and --save FILE", 2, "export demo");
    refused("did you mean 'int8'?", 2, "export demo --save x --quantize int9");
    refused("did you mean 'int4_weights'?", 2, "export demo --save x --quantize int4");
    refused("needs int8, int8_weights, int4_weights or none", 2, "export demo --save x --quantize int4");
    refused("nothing.safetensors", 5, "%s %s", exports, file_of("nothing"));
    refused("needed a save of headroom", 5, "%s presets/demo.yaml", exports);
    refused("does not fit model", 5, "export mlp_tiny --save %s", trained());
    refused("has no weights to deploy", 4, "export demo -s device.kind=plan --save %s", trained());
}
END_TEST

START_TEST(a_folder_is_no_file_to_write)
{
    refused("-o /tmp/NAME.safetensors", 5, "%s %s -o /tmp", exports, trained());
    refused("/tmp/not-there/ is a folder: needed a file", 5, "%s %s -o /tmp/not-there/", exports, trained());
}
END_TEST

// What a training's evaluations are is not what export does.
START_TEST(the_knob_of_evaluations_is_not_passed_over)
{
    refused("compress.quantize=int8 is how a training evaluates", 2, "%s %s -s compress.quantize=int8",
            exports, trained());
    refused("--quantize int8, or --quantize none", 2, "%s %s -s compress.quantize=int8", exports, trained());
    json_t *d = json_of("%s %s -s compress.quantize=int8 --quantize none", exports, trained());
    ck_assert_str_eq(json_string_value(json_object_get(d, "quantize")), "none");
    json_decref(d);
    json_decref(json_of("%s %s -s compress.quantize=qat", exports, trained()));
}
END_TEST

// Found in what export prints, no line of which is wider than a page.
static void printed(const char *words, const char *const *needed)
{
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    for (; *needed != NULL; needed++) {
        ck_assert_msg(strstr(o.out, *needed) != NULL, "%s: no '%s' in %s", words, *needed, o.out);
    }
    for (char *line = strtok(o.out, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        ck_assert_msg(strlen(line) <= 80, "%s", line);
    }
    outcome_deinit(&o);
}

START_TEST(adapters_are_merged_or_written_alone)
{
    static const char of[] = "mlp_tiny -s compress.lora=2 -s compress.lora_base=nf4";
    char words[WORDS_MAX];
    snprintf(words, sizeof words, "run %s --steps 3 -s train.save=%s", of, file_of("adapted"));
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    outcome_deinit(&o);
    snprintf(words, sizeof words, "export %s --save %s --merge --quantize int8", of, file_of("adapted"));
    printed(words, (const char *[]){"its adapters merged, deployed with int8 weights", "\n  stripped ",
                                    "\n  merged ", "\n  int8 ", "What was held as nf4 is real again", NULL});
    snprintf(words, sizeof words, "export %s --save %s --adapters", of, file_of("adapted"));
    printed(words, (const char *[]){"its adapters alone", "\n  adapters ", "base_sha256", NULL});
    json_t *alone = json_of("export %s --json --save %s --adapters", of, file_of("adapted"));
    ck_assert(evaluated(alone, "trained", "loss") > 0);
    ck_assert(json_is_null(
        json_object_get(json_object_get(json_object_get(alone, "evaluation"), "deployed"), "loss")));
    json_decref(alone);
    snprintf(words, sizeof words, "%s/whole.safetensors", program_home());
    json_t *d = json_of("export %s --json --save %s --merge -o %s", of, file_of("adapted"), words);
    json_t *again = json_of("export mlp_tiny --json --save %s", words);
    ck_assert(json_is_true(json_object_get(d, "merged")) && json_is_false(json_object_get(d, "adapters")));
    ck_assert_str_eq(json_string_value(json_object_get(d, "base")), "nf4");
    ck_assert(json_is_null(json_object_get(again, "base")));
    ck_assert_int_eq(size_of(d, "with_adapters", "ram_bytes"), size_of(again, "save", "ram_bytes"));
    ck_assert(fabs(evaluated(d, "trained", "loss") / evaluated(again, "trained", "loss") - 1) < 1e-5);
    json_decref(d);
    json_decref(again);
}
END_TEST

START_TEST(factors_of_what_was_trained_are_named_so)
{
    char words[WORDS_MAX];
    snprintf(words, sizeof words, "export demo -s batch.size=32 -s compress.low_rank=8 --save %s", trained());
    printed(words, (const char *[]){"deployed as factors of what was trained", "\n  as factors  ",
                                    "The save has whole weights", NULL});
    json_t *d = json_of("%s %s -s compress.low_rank=8", exports, trained());
    ck_assert(json_is_true(json_object_get(d, "decomposed")));
    json_decref(d);
}
END_TEST

START_TEST(a_file_of_another_kind_stays_unless_it_is_forced)
{
    char text[64] = "";
    FILE *f = fopen(file_of("mine"), "w");
    ck_assert_ptr_nonnull(f);
    fputs("a letter", f);
    ck_assert_int_eq(fclose(f), 0);
    refused("needed a save of headroom or no file", 5, "%s %s -o %s", exports, trained(), file_of("mine"));
    f = fopen(file_of("mine"), "r");
    ck_assert_ptr_nonnull(fgets(text, sizeof text, f));
    fclose(f);
    ck_assert_str_eq(text, "a letter");
    json_decref(json_of("%s %s --force -o %s", exports, trained(), file_of("mine")));
    json_decref(json_of("%s %s", exports, file_of("mine")));
}
END_TEST

START_TEST(neither_its_own_input_nor_a_training_is_lost)
{
    char words[WORDS_MAX];
    json_t *d = json_of("%s %s", exports, trained());
    const json_int_t bytes = size_of(d, "save", "file_bytes");
    json_decref(d);
    struct stat facts;
    for (int k = 0; k < 2; k++) {
        refused("is what --save names", 5, "%s %s -o %s%s", exports, trained(), trained(),
                k > 0 ? " --force" : "");
    }
    snprintf(words, sizeof words, "%s/link.safetensors", program_home());
    ck_assert_int_eq(symlink(trained(), words), 0);
    refused("-o ANOTHER.safetensors", 5, "%s %s --force -o %s", exports, trained(), words);
    ck_assert_int_eq(stat(trained(), &facts), 0);
    ck_assert_int_eq(facts.st_size, bytes); // with Adam's slots
    snprintf(words, sizeof words, "%s --steps 1 -s train.save=%s", trains, file_of("other"));
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    outcome_deinit(&o);
    refused("had what training goes on from", 5, "%s %s -o %s", exports, trained(), file_of("other"));
    for (int k = 0; k < 2; k++) { // what is ours to make is made again
        json_decref(json_of("%s %s %s -o %s", exports, trained(), k > 0 ? "--quantize int8" : "--force",
                            file_of("other")));
    }
}
END_TEST

START_TEST(a_distilled_student_is_deployed_alone)
{
    static const char student[] = "mlp_tiny -s compress.distill=self -s compress.distill_alpha=0.3";
    char words[WORDS_MAX];
    snprintf(words, sizeof words, "run %s --steps 2 -s train.save=%s", student, file_of("student"));
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    outcome_deinit(&o);
    snprintf(words, sizeof words, "%s/alone.safetensors", program_home());
    json_t *taught = json_of("export %s --json --save %s -o %s", student, file_of("student"), words);
    json_t *alone = json_of("export mlp_tiny --json --save %s", words);
    ck_assert_uint_gt(json_array_size(json_object_get(taught, "tensors")), 0);
    ck_assert(json_equal(json_object_get(taught, "tensors"), json_object_get(alone, "tensors")));
    ck_assert_int_eq(size_of(taught, "deployed", "file_bytes"), size_of(alone, "save", "file_bytes"));
    ck_assert(evaluated(taught, "trained", "loss") == evaluated(alone, "trained", "loss"));
    json_decref(taught);
    json_decref(alone);
}
END_TEST

START_TEST(another_seed_is_no_hindrance)
{
    json_t *own = json_of("%s %s", exports, trained());
    json_t *other = json_of("%s %s -s train.seed=99", exports, trained());
    ck_assert(json_equal(json_object_get(own, "sizes"), json_object_get(other, "sizes")));
    ck_assert(evaluated(own, "trained", "loss") == evaluated(other, "trained", "loss"));
    json_decref(own);
    json_decref(other);
}
END_TEST

START_TEST(ranges_of_activations_are_said_to_stay_behind)
{
    char words[WORDS_MAX];
    snprintf(words, sizeof words, "run mlp_tiny --steps 2 -s compress.quantize=qat -s train.save=%s",
             file_of("aware"));
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    outcome_deinit(&o);
    snprintf(words, sizeof words, "export mlp_tiny --quantize int8 --save %s", file_of("aware"));
    o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_ptr_nonnull(strstr(o.out, "(compress.quantize=qat) are not deployed"));
    outcome_deinit(&o);
    snprintf(words, sizeof words, "export demo -s batch.size=32 --save %s", trained());
    o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_ptr_null(strstr(o.out, "qat"));
    outcome_deinit(&o);
}
END_TEST

static void check_terms(const json_t *value)
{
    const char *key;
    json_t *member;
    size_t k;
    json_object_foreach((json_t *)(uintptr_t)value, key, member)
    {
        ck_assert_msg(hr_term_find(key) != NULL, "no term %s", key);
        check_terms(member);
    }
    json_array_foreach(value, k, member)
    {
        check_terms(member);
    }
}

START_TEST(every_field_is_a_term)
{
    json_t *d = json_of("%s %s", exports, trained());
    ck_assert_str_eq(json_string_value(json_object_get(d, "schema")), "headroom.export/1");
    check_terms(d);
    json_decref(d);
}
END_TEST

START_TEST(the_text_is_no_wider_than_a_page)
{
    char words[WORDS_MAX];
    snprintf(words, sizeof words, "export demo -s batch.size=32 --save %s --quantize int8 --ranks",
             trained());
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    ck_assert_ptr_nonnull(strstr(o.out, "703,676"));
    for (char *line = strtok(o.out, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        ck_assert_msg(strlen(line) <= 80, "%s", line);
    }
    outcome_deinit(&o);
}
END_TEST

// Rows, sums and results of whole numbers take the same operations with every set of instructions that oneDNN may be kept to.
START_TEST(int8_has_the_same_bits_with_fewer_instructions)
{
    static const char *const caps[] = {"SSE41", "AVX", "AVX2"};
    char words[WORDS_MAX], setting[WORDS_MAX];
    snprintf(words, sizeof words, "run mlp_tiny --steps 3 -s device.kind=cpu -s train.save=%s",
             file_of("isa"));
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    outcome_deinit(&o);
    snprintf(words, sizeof words, "export mlp_tiny -s device.kind=cpu --quantize int8 --json --save %s",
             file_of("isa"));
    json_t *d = program_json(words);
    for (size_t k = 0; k < sizeof caps / sizeof *caps; k++) {
        snprintf(setting, sizeof setting, "ONEDNN_MAX_CPU_ISA=%s", caps[k]);
        o = program_run_with(setting, words);
        assert_exit(&o, words, 0);
        json_t *kept = assert_json(&o, words);
        ck_assert_msg(evaluated(kept, "deployed", "loss") == evaluated(d, "deployed", "loss"), "%s", caps[k]);
        json_decref(kept);
        outcome_deinit(&o);
    }
    json_decref(d);
}
END_TEST

int main(void)
{
    program_use(HEADROOM_FEW); // each export evaluates, twice where it makes whole numbers
    Suite *suite = suite_create("export");
    TCase *all = tcase_create("deployed");
    tcase_add_unchecked_fixture(all, train_once, NULL);
    tcase_add_test(all, stripped_is_the_model_alone_and_evaluates_alike);
    tcase_add_test(all, training_goes_on_from_a_stripped_save_and_says_so);
    tcase_add_loop_test(all, whole_numbers_take_what_the_formula_says, 0, 3);
    tcase_add_loop_test(all, a_plan_says_the_same, 0, 3);
    tcase_add_test(all, the_text_of_a_plan_has_it_where_something_is_compressed);
    tcase_add_test(all, a_plan_of_a_run_that_trains_for_it_says_what_it_holds);
    tcase_add_loop_test(all, a_quantised_file_evaluates_as_the_report_says, 0, 3);
    tcase_add_test(all, int8_has_the_same_bits_with_fewer_instructions);
    tcase_add_test(all, a_quantised_file_does_not_train);
    tcase_add_test(all, the_command_that_export_says_works);
    tcase_add_test(all, a_training_that_is_refused_has_one_error);
    tcase_add_test(all, a_recipe_that_is_refused_has_one_error);
    tcase_add_test(all, what_cannot_be_is_said_in_a_sentence);
    tcase_add_test(all, a_folder_is_no_file_to_write);
    tcase_add_test(all, the_knob_of_evaluations_is_not_passed_over);
    tcase_add_test(all, adapters_are_merged_or_written_alone);
    tcase_add_test(all, factors_of_what_was_trained_are_named_so);
    tcase_add_test(all, a_file_of_another_kind_stays_unless_it_is_forced);
    tcase_add_test(all, neither_its_own_input_nor_a_training_is_lost);
    tcase_add_test(all, a_distilled_student_is_deployed_alone);
    tcase_add_test(all, another_seed_is_no_hindrance);
    tcase_add_test(all, ranges_of_activations_are_said_to_stay_behind);
    tcase_add_test(all, every_field_is_a_term);
    tcase_add_test(all, the_text_is_no_wider_than_a_page);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    program_remove_home();
    return failed != 0;
}
