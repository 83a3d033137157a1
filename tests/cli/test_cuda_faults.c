// SPDX-License-Identifier: Apache-2.0
// What a person reads, and the exit code, where the card is missing, too old, full, filled up by another process or lost
// on the way: the program over the emulated card. A training lives in a process of its own, so nothing is skipped here.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

enum { SETTING_MAX = 1024 };

#define RUN "run mlp_tiny -s device.kind=cuda -s device.card= -s device.vram=2GiB --steps 6 "

// A pool that grows and gives back: 18 MiB at its peak, 12 MiB between two steps.
#define RUN_DEMO                                                                                             \
    "run demo -s device.kind=cuda -s device.card= -s device.vram=2GiB -s workspace.limit=0B "                \
    "-s batch.size=16 -s allocator.kind=async -s allocator.release_threshold=0B --steps 5 "

#define RUN_CONV "run resnet18_cifar_tiny -s device.kind=cuda -s device.card= -s device.vram=2GiB --steps 6 "

typedef struct fault {
    const char *settings; // beside the emulated card
    const char *words;
    int exit_code;
    const char *sentence, *hint; // in stderr
} fault;

#define FILLED "CARD_VRAM=8G\nCARD_OTHERS=0,7924M@40"

static const fault faults[] = {
    {"CARD_DEVICES=0", RUN, 4, "needed an NVIDIA card, the driver sees none", "nvidia-smi -L"},
    {"CARD_DRIVER=12040", RUN, 4, "needed a driver for CUDA 13, the one that is installed is for CUDA 12.4",
     "install a newer driver"},
    {"CARD_VRAM=8G\nCARD_OTHERS=8G", RUN, 4, "the card has none: other processes hold it", "nvidia-smi"},
    {"CARD_VRAM=8G\nCARD_OTHERS=7935M", RUN_DEMO, 4, "the card has none: other processes hold it",
     "nvidia-smi"},
    {"CARD_VRAM=8G\nCARD_OTHERS=7920M", RUN_DEMO, 4, "14.00 MiB free: other processes hold 7.73 GiB",
     "-s device.vram=14MiB"},
    {FILLED, RUN_DEMO, 1, "the limit would allow it, and the card has no more to give", "nvidia-smi"},
    {"CARD_LOSE_AT=20", RUN, 4, "device lost failed: ", "train.resume=FILE"},
    {"CARD_FAIL=cuLaunchKernel:20:719", RUN, 4, "CUDA_ERROR_LAUNCH_FAILED", "train.resume=FILE"},
    {"CARD_FAIL=cuLaunchKernel:20:1", RUN, 4, "CUDA_ERROR_INVALID_VALUE", "headroom devices"},
    {"CARD_FAIL=cublasLtMatmul:9:13", RUN, 4,
     "device failed: a product of cuBLASLt: CUBLAS_STATUS_EXECUTION_FAILED", "headroom devices"},
    {"CARD_FAIL=cublasLtMatmul:9:13,cuCtxSynchronize:1:700", RUN, 4,
     "device lost failed: a product of cuBLASLt: CUBLAS_STATUS_EXECUTION_FAILED", "train.resume=FILE"},
    {"CARD_FAIL=cudnnBackendExecute:9:5000", RUN_CONV, 4,
     "device failed: a cuDNN graph: CUDNN_STATUS_EXECUTION_FAILED", "headroom devices"},
    {"CARD_FAIL=cudnnBackendExecute:9:5000,cuCtxSynchronize:1:719", RUN_CONV, 4,
     "device lost failed: a cuDNN graph: CUDNN_STATUS_EXECUTION_FAILED", "train.resume=FILE"},
    {"CARD_FAIL=cudnnBackendFinalize:1:1008", RUN_CONV, 4, "dependency failed: ", "LD_DEBUG=libs"},
};
enum { FAULTS = sizeof faults / sizeof *faults };

static outcome run_with(const char *settings, const char *words)
{
    char all[SETTING_MAX];
    (void)snprintf(all, sizeof all, "LD_LIBRARY_PATH=" CARD_FOLDER "\nASAN_OPTIONS=detect_leaks=0\n%s",
                   settings);
    return program_run_with(all, words);
}

START_TEST(every_fault_has_its_sentence_and_its_exit_code)
{
    const fault *f = &faults[_i];
    outcome o = run_with(f->settings, f->words);
    ck_assert_msg(o.exit_code == f->exit_code, "%s: exit code %d, expected %d\n%s%s", f->settings,
                  o.exit_code, f->exit_code, o.out, o.err);
    ck_assert_msg(strstr(o.err, f->sentence) != NULL && strstr(o.err, f->hint) != NULL, "%s: %s", f->settings,
                  o.err);
    ck_assert_ptr_nonnull(strstr(o.err, "\n  try: "));
    outcome_deinit(&o);
}
END_TEST

// Who filled the card stands in the report, with what would fit now.
START_TEST(a_card_that_others_fill_is_told_as_such)
{
    outcome o = run_with(FILLED, RUN_DEMO "--json");
    assert_exit(&o, RUN_DEMO, 1);
    json_t *report = assert_json(&o, "run --json"), *oom = json_object_get(report, "oom");
    ck_assert_str_eq(json_string_value(json_object_get(oom, "cause")), "outside");
    ck_assert_int_gt(json_integer_value(json_object_get(json_object_get(report, "driver"), "others_bytes")),
                     INT64_C(7) << 30);
    json_decref(report);
    outcome_deinit(&o);
}
END_TEST

// Without any card plans work, and the program says so where it says that there is none.
START_TEST(plans_need_no_card)
{
    outcome o = run_with("CARD_DEVICES=0", "devices");
    assert_exit(&o, "devices", 0);
    ck_assert_ptr_nonnull(strstr(o.out, "needed an NVIDIA card"));
    ck_assert_ptr_nonnull(strstr(o.out, "headroom plan PRESET -s device.kind=cuda -s device.card=h200-141g"));
    outcome_deinit(&o);
    o = run_with("CARD_DEVICES=0",
                 "plan mlp_tiny -s device.kind=cuda -s device.vram=none -s device.card=h200-141g --json");
    assert_exit(&o, "plan", 0);
    outcome_deinit(&o);
}
END_TEST

// What the demo is to show, on a card's arithmetic too: it fits its 64 MiB, and twice the batch does not.
START_TEST(the_demo_fits_on_a_card_and_twice_its_batch_does_not)
{
    static const char *const words[] = {
        "plan demo -s device.kind=cuda -s device.card=h200-141g",
        "plan demo -s device.kind=cuda -s device.card=h200-141g -s batch.size=256"};
    for (int k = 0; k < 2; k++) {
        outcome o = run_with("CARD_DEVICES=0", words[k]);
        assert_exit(&o, words[k], k);
        outcome_deinit(&o);
    }
}
END_TEST

// Without growth bfc takes its whole limit at once: on a card that others hold a part of it is refused before it starts, and
// with the limit that is offered the run is its plan.
START_TEST(a_partly_filled_card_is_refused_or_the_run_is_the_plan)
{
    enum { WORDS = 256 };
    static const char
        others[] = "CARD_VRAM=8G\nCARD_OTHERS=7G",
        knobs[] = "mlp_tiny -s device.kind=cuda -s device.card= -s allocator.growth=off --steps 2 --json";
    char words[WORDS], vram[32];
    unsigned long long mib = 0;
    (void)snprintf(words, sizeof words, "run %s -s device.vram=2GiB", knobs);
    outcome o = run_with(others, words);
    assert_exit(&o, words, 4);
    ck_assert_msg(strstr(o.err, "takes 2.00 GiB of the card") != NULL &&
                      strstr(o.err, "other processes hold 7.00 GiB") != NULL,
                  "%s", o.err);
    const char *offered = strstr(o.err, "-s device.vram=");
    ck_assert_msg(offered != NULL && sscanf(offered, "-s device.vram=%lluMiB", &mib) == 1, "%s", o.err);
    ck_assert_uint_eq(mib % 2, 0);
    (void)snprintf(vram, sizeof vram, "%lluMiB", mib);
    outcome_deinit(&o);
    json_t *reports[2];
    static const char *const commands[] = {"run", "plan"};
    for (int k = 0; k < 2; k++) {
        (void)snprintf(words, sizeof words, "%s %s -s device.vram=%s", commands[k], knobs, vram);
        o = run_with(others, words);
        assert_exit(&o, words, 0);
        reports[k] = assert_json(&o, words);
        outcome_deinit(&o);
    }
    json_t *memory = json_object_get(reports[0], "memory");
    ck_assert(json_equal(memory, json_object_get(reports[1], "memory")));
    ck_assert_int_eq(json_integer_value(json_object_get(memory, "peak_pool_bytes")), (json_int_t)mib << 20);
    json_decref(reports[0]);
    json_decref(reports[1]);
}
END_TEST

// A plan that names no card is for the one that is here.
START_TEST(a_plan_is_for_the_card_that_is_here)
{
    static const char *const words[] = {
        "plan cifar10_separable_cnn_tiny -s device.kind=cuda -s device.card= -s device.vram=1GiB --json",
        "run cifar10_separable_cnn_tiny -s device.kind=cuda -s device.card= -s device.vram=1GiB --steps 2 "
        "--json"};
    json_t *reports[2];
    for (int k = 0; k < 2; k++) {
        outcome o = run_with("CARD_MULTIPROCESSORS=7", words[k]);
        assert_exit(&o, words[k], 0);
        reports[k] = assert_json(&o, words[k]);
        outcome_deinit(&o);
    }
    ck_assert(json_equal(json_object_get(reports[0], "memory"), json_object_get(reports[1], "memory")));
    ck_assert(json_equal(json_object_get(json_object_get(reports[0], "step"), "instructions"),
                         json_object_get(json_object_get(reports[1], "step"), "instructions")));
    json_decref(reports[0]);
    json_decref(reports[1]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda faults");
    TCase *tests = tcase_create("the program");
    tcase_set_timeout(tests, 120);
    tcase_add_unchecked_fixture(tests, NULL, program_remove_home);
    tcase_add_loop_test(tests, every_fault_has_its_sentence_and_its_exit_code, 0, FAULTS);
    tcase_add_test(tests, a_card_that_others_fill_is_told_as_such);
    tcase_add_test(tests, plans_need_no_card);
    tcase_add_test(tests, the_demo_fits_on_a_card_and_twice_its_batch_does_not);
    tcase_add_test(tests, a_partly_filled_card_is_refused_or_the_run_is_the_plan);
    tcase_add_test(tests, a_plan_is_for_the_card_that_is_here);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
