// SPDX-License-Identifier: Apache-2.0
// The whole program on other processors (tests/isa): what it says of them, that reports name what computes, and that it
// lives where AMX is announced and is not there.
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "isa/cpuid_faults.h"
#include "program.h"

enum { SETTING_MAX = 512, SKIPPED = 77 };

static const char bf16[] =
    "run mlp_tiny -s device.kind=cpu -s precision.policy=mixed_bfloat16 --steps 3 --json";

static const struct {
    const char *name, *isa, *remark;
} processors[] = {{"avx2", "avx2", NULL},
                  {"avx512_core", "avx512_core", NULL},
                  {"avx512_core_bf16", "avx512_core_bf16", NULL},
                  {"no_palette", "avx512_core_bf16", "leaf 0x1D"}};
enum { PROCESSORS = sizeof processors / sizeof *processors };

static const char *setting(int k, const char *more)
{
    static char text[SETTING_MAX];
    (void)snprintf(text, sizeof text, "LD_PRELOAD=%s/processor_%s.so\n%s", PROCESSOR_FOLDER,
                   processors[k].name, more);
    return text;
}

static json_t *json_on(int k, const char *more, const char *words)
{
    outcome o = program_run_with(setting(k, more), words);
    assert_exit(&o, words, 0);
    json_t *json = assert_json(&o, words);
    outcome_deinit(&o);
    return json;
}

static const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

// Of the evaluation with whole numbers.
static double loss_of(const json_t *exported)
{
    const json_t *loss =
        json_object_get(json_object_get(json_object_get(exported, "evaluation"), "deployed"), "loss");
    ck_assert(json_is_number(loss));
    return json_number_value(loss);
}

static int rank_of(const char *isa)
{
    static const char *const ranks[] = {
        "avx2", "avx2_vnni", "avx512_core", "avx512_core_vnni", "avx512_core_bf16", "avx512_core_amx"};
    for (int k = 0; k < (int)(sizeof ranks / sizeof *ranks); k++) {
        if (strcmp(isa, ranks[k]) == 0) {
            return k;
        }
    }
    return -1;
}

static int rank_here(void)
{
    outcome o = program_run("devices --json");
    json_t *devices = assert_json(&o, "devices --json");
    const int rank = rank_of(text_of(json_array_get(devices, 0), "isa"));
    json_decref(devices);
    outcome_deinit(&o);
    return rank;
}

// Of the other processor, or of this one where that has less.
START_TEST(a_run_is_of_the_instructions_that_are_there)
{
    json_t *report = json_on(_i, "", bf16);
    const char *isa = text_of(json_object_get(report, "device"), "isa");
    const int here = rank_here(), other = rank_of(processors[_i].isa);
    ck_assert_msg(rank_of(isa) == (here < other ? here : other), "%s: %s", processors[_i].name, isa);
    json_decref(report);
}
END_TEST

START_TEST(devices_and_doctor_say_what_was_decided_and_why)
{
    json_t *devices = json_on(_i, "", "devices --json");
    const char *remark = text_of(json_array_get(devices, 0), "isa_remark");
    ck_assert_msg((remark != NULL) == (processors[_i].remark != NULL), "%s: %s", processors[_i].name, remark);
    ck_assert(remark == NULL || strstr(remark, processors[_i].remark) != NULL);
    json_decref(devices);
    outcome o = program_run_with(setting(_i, ""), "doctor");
    assert_exit(&o, "doctor", 0);
    ck_assert((strstr(o.out, "kept from AMX") != NULL) == (processors[_i].remark != NULL));
    outcome_deinit(&o);
}
END_TEST

START_TEST(what_the_user_set_is_respected)
{
    json_t *report = json_on(PROCESSORS - 1, "ONEDNN_MAX_CPU_ISA=AVX2", bf16);
    ck_assert_str_eq(text_of(json_object_get(report, "device"), "isa"), "avx2");
    json_decref(report);
    json_t *devices = json_on(PROCESSORS - 1, "DNNL_MAX_CPU_ISA=AVX2", "devices --json");
    ck_assert_ptr_nonnull(strstr(text_of(json_array_get(devices, 0), "isa_remark"), "DNNL_MAX_CPU_ISA=AVX2"));
    json_decref(devices);
}
END_TEST

// The whole numbers of one save: sums are exact, and their scales and results take the same operations with every set.
START_TEST(whole_number_evaluations_have_the_same_bits)
{
    static const char *const modes[] = {"int8", "int8_weights", "int4_weights"};
    char words[2 * SETTING_MAX], save[SETTING_MAX];
    (void)snprintf(save, sizeof save, "%s/int8.safetensors", program_home());
    (void)snprintf(words, sizeof words, "run mlp_tiny -s device.kind=cpu --steps 3 -s train.save=%s", save);
    outcome o = program_run(words);
    assert_exit(&o, words, 0);
    outcome_deinit(&o);
    (void)snprintf(words, sizeof words, "export mlp_tiny -s device.kind=cpu --json --save %s --quantize %s",
                   save, modes[_i]);
    json_t *here = program_json(words);
    const double wanted = loss_of(here);
    ck_assert(wanted != 0);
    for (int k = 0; k < PROCESSORS; k++) {
        json_t *other = json_on(k, "", words);
        ck_assert_msg(loss_of(other) == wanted, "%s, %s", processors[k].name, modes[_i]);
        json_decref(other);
    }
    json_decref(here);
}
END_TEST

// Tiles where there is no palette, because the user says so: what the tests say of it.
START_TEST(a_test_that_dies_names_who_computed_with_what)
{
    char command[2 * SETTING_MAX], said[8192] = "";
    if (rank_here() < rank_of("avx512_core_amx")) {
        return; // this processor has none
    }
    (void)snprintf(command, sizeof command,
                   "LD_PRELOAD=%s/processor_no_palette.so ONEDNN_MAX_CPU_ISA=AVX512_CORE_AMX %s 2>&1",
                   PROCESSOR_FOLDER, HALF_TEST);
    FILE *test = popen(command, "r");
    ck_assert_ptr_nonnull(test);
    ck_assert_uint_gt(fread(said, 1, sizeof said - 1, test), 0);
    (void)pclose(test);
    ck_assert_msg(strstr(said, "SIGILL in onednn ") != NULL && strstr(said, "with avx512_core_amx") != NULL,
                  "%s", said);
}
END_TEST

int main(void)
{
    if (!cpuid_faults()) {
        puts("skipped: CPUID does not fault on this machine");
        return SKIPPED;
    }
    TCase *tests = tcase_create("processors");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, a_run_is_of_the_instructions_that_are_there, 0, PROCESSORS);
    tcase_add_loop_test(tests, devices_and_doctor_say_what_was_decided_and_why, 0, PROCESSORS);
    tcase_add_loop_test(tests, whole_number_evaluations_have_the_same_bits, 0, 3);
    tcase_add_test(tests, what_the_user_set_is_respected);
    tcase_add_test(tests, a_test_that_dies_names_who_computed_with_what);
    tcase_add_unchecked_fixture(tests, NULL, program_remove_home);
    Suite *suite = suite_create("isa");
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
