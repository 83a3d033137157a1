// SPDX-License-Identifier: Apache-2.0
// Promises of `headroom plan` of a file of weights: of one that names its network the plan of a step; of another what training
// its weights takes at least, which is what a plan of the same network holds beside activations.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

static const char known[] = "tests/data/weights/llama_q4_0.gguf";

static json_t *json_of(const char *words)
{
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    json_t *document = assert_json(&o, words);
    outcome_deinit(&o);
    return document;
}

// The known file under an architecture that there is not, in the program's home.
static void write_unknown(char path[128])
{
    static char data[65536];
    FILE *from = fopen(known, "r");
    ck_assert_ptr_nonnull(from);
    const size_t bytes = fread(data, 1, sizeof data, from);
    ck_assert_int_eq(fclose(from), 0);
    size_t changed = 0;
    for (size_t k = 0; k + 5 <= bytes; k++) {
        if (memcmp(data + k, "llama", 5) == 0) {
            memcpy(data + k, "lxama", 5);
            changed++;
        }
    }
    ck_assert_uint_gt(changed, 5);
    (void)snprintf(path, 128, "%s/unknown.gguf", program_home());
    FILE *to = fopen(path, "w");
    ck_assert_ptr_nonnull(to);
    ck_assert_uint_eq(fwrite(data, 1, bytes, to), bytes);
    ck_assert_int_eq(fclose(to), 0);
}

START_TEST(the_least_is_what_a_plan_holds_beside_activations)
{
    static const char *const kinds[] = {"sgd", "momentum", "adamw"};
    char path[128], words[256];
    write_unknown(path);
    (void)snprintf(words, sizeof words, "plan %s --json", path);
    json_t *weights = json_of(words);
    ck_assert_str_eq(json_string_value(json_object_get(weights, "architecture")), "lxama");
    ck_assert_int_eq(json_integer_value(json_object_get(weights, "parameters")), 22688);
    for (size_t k = 0; k < 3; k++) {
        (void)snprintf(words, sizeof words, "plan %s -s precision.policy=float32 -s optimizer.kind=%s --json",
                       known, kinds[k]);
        json_t *plan = json_of(words);
        const json_t *held = json_object_get(json_object_get(plan, "memory"), "static_bytes");
        ck_assert(json_is_integer(held));
        ck_assert_int_eq(
            json_integer_value(json_object_get(json_object_get(weights, "least_bytes"), kinds[k])),
            json_integer_value(held));
        json_decref(plan);
    }
    json_decref(weights);
}
END_TEST

static const struct {
    const char *words;
    int exit_code;
    const char *out, *err;
} said[] = {
    {"plan tests/data/weights/mixed.safetensors", 0, "It names no network, so there is no plan of a step.",
     ""},
    {"plan tests/data/weights/mixed.safetensors", 0, "safetensors, 6 tensors, 2,145 parameters", ""},
    {"plan tests/data/weights/unknown_q4_0.gguf", 0, "Its architecture 'deepseek2' is none that is read", ""},
    {"plan tests/data/weights/mixed.safetensors -s batch.size=2", 2, "",
     "names no network, and every option but --json"},
    {"plan tests/data/weights/missing.gguf", 5, "", "missing.gguf"},
    {"plan tests/data/weights/missing.safetensors", 5, "", "missing.safetensors"},
    {"config show tests/data/weights/mixed.safetensors", 2, "", "needed a config.json beside it"},
    {"config show tests/data/weights/unknown_q4_0.gguf", 2, "",
     "general.architecture says 'deepseek2', which is none"},
    {"config show tests/data/weights/experts_q8_0.gguf", 0, "kind: mixture_of_experts, experts: 4, top_k: 2",
     ""},
    {"plan tests/data/weights/make.py/a.gguf", 5, "", "a.gguf"},
};

START_TEST(what_is_said)
{
    outcome o = program_run(said[_i].words);
    assert_exit(&o, said[_i].words, said[_i].exit_code);
    ck_assert_msg(strstr(o.out, said[_i].out) != NULL, "%s: %s", said[_i].words, o.out);
    ck_assert_msg(strstr(o.err, said[_i].err) != NULL, "%s: %s", said[_i].words, o.err);
    outcome_deinit(&o);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("weights_command");
    TCase *t = tcase_create("weights_command");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, the_least_is_what_a_plan_holds_beside_activations);
    tcase_add_loop_test(t, what_is_said, 0, sizeof said / sizeof *said);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    program_remove_home();
    return failed != 0;
}
