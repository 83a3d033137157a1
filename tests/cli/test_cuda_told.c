// SPDX-License-Identifier: Apache-2.0
// Nothing is silent on a card: what was planned and could not be made ready, what could not be captured and what cuDNN must
// not be asked happens on the emulated card, and the report says so. The arithmetic goes on all the same.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

enum { SETTING_MAX = 1024, WORDS_MAX = 512 };

#define CARD     " -s device.kind=cuda -s device.card= -s device.vram=1GiB "
#define CAPTURED " -s execution.mode=graph -s allocator.kind=static -s execution.cuda_graph=on --steps 8 "

static outcome run_with(const char *settings, const char *words)
{
    char all[SETTING_MAX];
    (void)snprintf(all, sizeof all, "LD_LIBRARY_PATH=" CARD_FOLDER "\nASAN_OPTIONS=detect_leaks=0\n%s",
                   settings);
    return program_run_with(all, words);
}

static json_t *report_of(const char *settings, const char *words)
{
    outcome o = run_with(settings, words);
    ck_assert_msg(o.exit_code == 0, "%s: exit code %d\n%s%s", settings, o.exit_code, o.out, o.err);
    json_t *report = assert_json(&o, words);
    outcome_deinit(&o);
    return report;
}

static json_t *step_of(json_t *report, const char *key)
{
    json_t *value = json_object_get(json_object_get(report, "step"), key);
    ck_assert_msg(value != NULL, "step.%s", key);
    return value;
}

static const char *text_of(json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));
    return text == NULL ? "" : text;
}

static double loss_of(json_t *report, const char *which)
{
    return json_number_value(json_object_get(json_object_get(report, "train"), which));
}

// The same step where our own kernels were planned from the start: forward has its bits; gradients of weights may be summed
// up in other parts, where the plan left more workspace.
static void expect_own_arithmetic(json_t *report, const char *words)
{
    json_t *own = report_of("CARD_REFUSE_PLANS=1\nXDG_CACHE_HOME=/dev/null", words);
    ck_assert_double_eq(loss_of(report, "loss_first"), loss_of(own, "loss_first"));
    ck_assert_double_eq_tol(loss_of(report, "loss_last"), loss_of(own, "loss_last"), 1e-4);
    json_decref(own);
}

// ---- who computes -----------------------------------------------------------------------------------------------

static const struct {
    const char *settings, *words, *first, *own;
} refused[] = {
    {"CARD_REFUSE_PLANS=load", "run resnet18_cifar_tiny -s batch.size=1" CARD "--steps 2 --json",
     "conv1/conv2d", "own direct"},
    {"CARD_REFUSE_PLANS=load",
     "run gpt2_124m_tiny -s batch.size=1 -s precision.policy=mixed_bfloat16" CARD "--steps 2 --json",
     "h0_attn/attention", "own tiles"},
    {"CARD_REFUSE_PLANS=handle",
     "run gpt2_124m_tiny -s batch.size=1 -s precision.policy=mixed_bfloat16" CARD "--steps 2 --json",
     "h0_attn/attention", "own tiles"},
};

// Every plan of cuDNN is refused when it is loaded, for its handle alone, too; also where weights were to come in the library's order: our own kernels
// compute instead, and each row says for whom and why.
START_TEST(what_a_card_refuses_is_told_and_computed)
{
    json_t *report = report_of(refused[_i].settings, refused[_i].words),
           *sound = report_of("CARD_SEED=1", refused[_i].words);
    ck_assert_uint_eq(json_array_size(step_of(sound, "prepared")), 0);
    ck_assert_int_eq(json_integer_value(step_of(sound, "unplanned")), 0);
    json_t *rows = step_of(report, "prepared"), *row = json_array_get(rows, 0);
    ck_assert_uint_ge(json_array_size(rows), 1);
    ck_assert_str_eq(text_of(row, "first"), refused[_i].first);
    ck_assert_msg(strncmp(text_of(row, "planned"), "cudnn eng", 9) == 0, "%s", text_of(row, "planned"));
    ck_assert_str_eq(text_of(row, "implementation"), refused[_i].own);
    ck_assert_msg(strstr(text_of(row, "reason"), "no plan for this card") != NULL, "%s",
                  text_of(row, "reason"));
    int64_t told = 0, cudnn = 0;
    size_t k = 0;
    json_t *each = NULL;
    json_array_foreach(rows, k, each)
    {
        told += json_integer_value(json_object_get(each, "instructions"));
    }
    json_array_foreach(step_of(sound, "implementations"), k, each)
    {
        cudnn += strcmp(text_of(each, "name"), "cudnn") == 0
                     ? json_integer_value(json_object_get(each, "instructions"))
                     : 0;
    }
    ck_assert_int_gt(cudnn, 0);
    ck_assert_int_eq(told, cudnn);
    ck_assert_int_eq(json_integer_value(step_of(report, "unplanned")), cudnn);
    json_array_foreach(step_of(report, "implementations"), k, each)
    {
        ck_assert_str_ne(text_of(each, "name"), "cudnn");
    }
    expect_own_arithmetic(report, refused[_i].words);
    json_decref(report);
    json_decref(sound);
}
END_TEST

START_TEST(people_read_it_too)
{
    outcome o = run_with("CARD_REFUSE_PLANS=load", "run cifar10_separable_cnn_tiny" CARD "--steps 1");
    assert_exit(&o, "run", 0);
    ck_assert_msg(strstr(o.out, "not as planned") != NULL && strstr(o.out, "own direct computes") != NULL,
                  "%s", o.out);
    outcome_deinit(&o);
}
END_TEST

START_TEST(batches_that_are_not_pinned_are_told)
{
    static const char *const words[] = {"run mlp_tiny" CARD "--steps 1",
                                        "run mlp_tiny" CARD "--steps 1 --plain"};
    outcome o = run_with("CARD_FAIL=cuMemHostAlloc:1:2", words[_i]);
    assert_exit(&o, "run", 0);
    ck_assert_msg(strstr(o.out, "atches are in ordinary memory") != NULL, "%s", o.out);
    outcome_deinit(&o);
}
END_TEST

// ---- capture ----------------------------------------------------------------------------------------------------

static const struct {
    const char *settings, *refusal;
} captures[] = {
    {"CARD_FAIL=cuStreamBeginCapture_v2:1:801", "CUDA_ERROR_NOT_SUPPORTED"},
    {"CARD_FAIL=cuStreamEndCapture:1:801", "capturing a step: CUDA_ERROR_NOT_SUPPORTED"},
    {"CARD_FAIL=cuGraphInstantiateWithFlags:1:2", "making a captured step ready: CUDA_ERROR_OUT_OF_MEMORY"},
};

START_TEST(a_capture_that_fails_says_why)
{
    static const char words[] = "run mlp_tiny" CARD CAPTURED "--json";
    json_t *report = report_of(captures[_i].settings, words), *capture = step_of(report, "capture");
    ck_assert_int_eq(json_integer_value(json_object_get(capture, "replays")), 0);
    ck_assert_msg(strstr(text_of(capture, "refusal"), captures[_i].refusal) != NULL, "%s",
                  text_of(capture, "refusal"));
    json_decref(report);
}
END_TEST

// A leak moves what comes behind it; a step of three has nothing to say yet.
START_TEST(a_step_whose_addresses_move_is_said_not_to_be_captured)
{
    static const char leaks[] =
        "run mlp_tiny" CARD "-s execution.cuda_graph=on -s execution.retain=predictions --steps ";
    char words[sizeof leaks + 16];
    for (int steps = 1; steps <= 8; steps += 7) {
        (void)snprintf(words, sizeof words, "%s%d --json", leaks, steps);
        json_t *report = report_of("CARD_SEED=1", words), *capture = step_of(report, "capture");
        ck_assert_int_eq(json_integer_value(json_object_get(capture, "replays")), 0);
        if (steps == 1) {
            ck_assert(json_is_null(json_object_get(capture, "refusal")));
        } else {
            ck_assert_msg(strstr(text_of(capture, "refusal"), " has other addresses in every step") != NULL,
                          "%s", text_of(capture, "refusal"));
        }
        json_decref(report);
    }
}
END_TEST

// The fourth step is the first that is captured; with and without, losses and weights have the same bits.
START_TEST(replays_are_counted_and_change_no_bit)
{
    json_t *on = report_of("CARD_SEED=1", "run mlp_tiny" CARD CAPTURED "--json"),
           *off = report_of("CARD_SEED=1", "run mlp_tiny" CARD CAPTURED "-s execution.cuda_graph=off --json"),
           *capture = step_of(on, "capture");
    ck_assert_int_eq(json_integer_value(json_object_get(capture, "replays")), 5);
    ck_assert(json_is_null(json_object_get(capture, "refusal")));
    ck_assert(json_is_null(step_of(off, "capture")));
    ck_assert_double_eq(loss_of(on, "loss_last"), loss_of(off, "loss_last"));
    ck_assert_str_eq(text_of(json_object_get(on, "train"), "weights_sha256"),
                     text_of(json_object_get(off, "train"), "weights_sha256"));
    json_decref(on);
    json_decref(off);
}
END_TEST

// ---- addresses --------------------------------------------------------------------------------------------------

// A driver that has not as many addresses is asked for half of them, and the device says so.
START_TEST(fewer_addresses_will_do)
{
    static const char words[] = "run mlp_tiny" CARD "--steps 1 --json";
    json_t *report = report_of("CARD_FAIL=cuMemAddressReserve:1:2", words);
    const char *isa = text_of(json_object_get(report, "device"), "isa");
    ck_assert_msg(strstr(isa, ", addresses 8x") != NULL, "%s", isa);
    json_decref(report);
}
END_TEST

// ---- known faults -----------------------------------------------------------------------------------------------

START_TEST(a_known_fault_of_cudnn_is_gone_around_and_told)
{
    json_t *report = report_of("CARD_CUDNN=91001", refused[1].words),
           *row = json_array_get(step_of(report, "fallbacks"), 0);
    ck_assert_str_eq(text_of(row, "kind"), "attentions");
    ck_assert_int_eq(json_integer_value(json_object_get(row, "known_fault")), 4);
    ck_assert_int_eq(json_integer_value(json_object_get(row, "of")), 4);
    json_decref(report);
}
END_TEST

// ---- one mask for both passes -----------------------------------------------------------------------------------

static int64_t computed_by_cudnn(json_t *report)
{
    int64_t count = 0;
    size_t k = 0;
    json_t *each = NULL;
    json_array_foreach(step_of(report, "implementations"), k, each)
    {
        count += strcmp(text_of(each, "name"), "cudnn") == 0
                     ? json_integer_value(json_object_get(each, "instructions"))
                     : 0;
    }
    return count;
}

// cuDNN draws another mask than our own kernels: where it has not both passes it has none. BERT with 32 keys, which cuDNN
// before 9.15.1 must not be asked the gradient of.
#define ONE "-s batch.size=1 "
static const struct {
    const char *settings, *knobs;
    int64_t cudnn, unplanned;
    const char *cause; // of all four in the fallbacks; NULL: none
} masks[] = {
    {"CARD_SEED=1", ONE, 4, 0, NULL},
    {"CARD_SEED=1", "-s batch.size=2 -s workspace.limit=0B ", 0, 0, "beyond_limit"},
    {"CARD_CUDNN=91500", ONE, 0, 0, "known_fault"},
    {"CARD_REFUSE_PLANS=gradients", ONE, 0, 4, NULL},
    {"CARD_REFUSE_PLANS=gradients", ONE "-s execution.mode=graph -s checkpoint.strategy=every:1 ", 0, 6,
     NULL},
};

START_TEST(both_passes_of_attention_drop_the_same_weights)
{
    char words[WORDS_MAX];
    (void)snprintf(words, sizeof words,
                   "run bert_base_tiny -s precision.policy=mixed_bfloat16" CARD "%s--steps 2 --json",
                   masks[_i].knobs);
    json_t *report = report_of(masks[_i].settings, words);
    ck_assert_int_eq(computed_by_cudnn(report), masks[_i].cudnn);
    ck_assert_int_eq(json_integer_value(step_of(report, "unplanned")), masks[_i].unplanned);
    json_t *first = json_array_get(step_of(report, "prepared"), 0);
    ck_assert_msg(masks[_i].unplanned == 0 ||
                      strstr(text_of(first, "reason"), "mask of the other pass") != NULL,
                  "%s", text_of(first, "reason"));
    if (masks[_i].cause != NULL) {
        json_t *fallback = json_array_get(step_of(report, "fallbacks"), 0);
        ck_assert_int_eq(json_integer_value(json_object_get(fallback, masks[_i].cause)), 4);
    }
    if (masks[_i].cudnn == 0) {
        expect_own_arithmetic(report, words);
    }
    json_decref(report);
}
END_TEST

// ---- a card that nobody knows -----------------------------------------------------------------------------------

// What it says of itself is kept where a plan without it finds it, once, and what a user wrote there stays.
START_TEST(an_unknown_card_is_kept_for_plans_without_it)
{
    static const char words[] = "plan mlp_tiny -s device.kind=cuda -s device.card=emulated-card --json";
    outcome o = run_with("CARD_DEVICES=0", words);
    assert_exit(&o, words, 2);
    outcome_deinit(&o);
    for (int k = 0; k < 2; k++) {
        o = run_with("CARD_SEED=1", "devices");
        assert_exit(&o, "devices", 0);
        ck_assert_msg((strstr(o.out, "device.card=emulated-card") != NULL) == (k == 0), "%s", o.out);
        outcome_deinit(&o);
    }
    json_t *report = report_of("CARD_DEVICES=0", words);
    ck_assert_msg(strstr(text_of(json_object_get(report, "device"), "isa"), "sm_90 Emulated Card") != NULL,
                  "%s", text_of(json_object_get(report, "device"), "isa"));
    json_decref(report);
}
END_TEST

// ---- as PyTorch -------------------------------------------------------------------------------------------------

#define AS_PYTORCH "resnet18_cifar_tiny -s batch.size=1 --as pytorch" CARD

// What is offered, as an option.
static const char *offered(const outcome *o, char *room, size_t size)
{
    const char *attempt = strstr(o->err, "  try: ");
    ck_assert_msg(attempt != NULL, "%s", o->err);
    (void)snprintf(room, size, "%.*s", (int)strcspn(attempt + 7, "\n"), attempt + 7);
    return room;
}

START_TEST(a_limit_that_pytorchs_engines_do_not_obey_is_refused_with_one_that_works)
{
    static const char least[] = "plan " AS_PYTORCH "-s batch.size=4 -s workspace.limit=0B";
    char words[2 * WORDS_MAX], option[WORDS_MAX];
    outcome o = run_with("", least);
    assert_exit(&o, least, 4);
    ck_assert_ptr_nonnull(strstr(o.err, "a convolution of PyTorch's needs 128.0 KiB of cuDNN's workspace at "
                                        "least, workspace.limit is 0 B"));
    ck_assert_int_eq(strncmp(offered(&o, option, sizeof option), "-s workspace.limit=", 19), 0);
    (void)snprintf(words, sizeof words, "%s %s", least, option);
    outcome_deinit(&o);
    o = run_with("", words);
    assert_exit(&o, words, 0);
    outcome_deinit(&o);
}
END_TEST

// The first engine that is named there wants 4 TiB.
START_TEST(an_engine_that_wants_more_than_the_card_has_is_passed_over)
{
    static const char words[] = "plan " AS_PYTORCH "-s precision.policy=mixed_bfloat16";
    outcome o = run_with("", words);
    assert_exit(&o, words, 0);
    outcome_deinit(&o);
}
END_TEST

// Weights and their gradients are copied into the library's order within the workspace that PyTorch has.
START_TEST(a_run_as_pytorch_with_copies_in_its_workspaces_is_its_plan)
{
    outcome o = run_with("", "plan " AS_PYTORCH "--listing");
    ck_assert_ptr_nonnull(strstr(o.out, "@layer1_0_conv1/conv2d:workspace+"));
    ck_assert_ptr_nonnull(strstr(o.out, "@layer4_1_conv2/conv2d_bwd_weights:workspace"));
    ck_assert_ptr_null(strstr(o.out, "B  layer1_0_conv1/weights:library")); // no request of its own
    outcome_deinit(&o);
    json_t *planned = report_of("", "plan " AS_PYTORCH "--json"),
           *ran = report_of("", "run " AS_PYTORCH "--steps 2 --json"),
           *own = report_of("", "run resnet18_cifar_tiny -s batch.size=1 -s execution.fuse=off" CARD
                                "--steps 2 --json");
    const char *const peak = "peak_in_use_bytes";
    ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(planned, "memory"), peak)),
                     json_integer_value(json_object_get(json_object_get(ran, "memory"), peak)));
    ck_assert_int_eq(json_integer_value(step_of(ran, "unplanned")), 0);
    ck_assert_double_eq(loss_of(ran, "loss_first"), loss_of(own, "loss_first"));
    ck_assert_double_eq_tol(loss_of(ran, "loss_last"), loss_of(own, "loss_last"), 1e-4);
    json_decref(planned);
    json_decref(ran);
    json_decref(own);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda_told");
    TCase *c = tcase_create("told");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, what_a_card_refuses_is_told_and_computed, 0,
                        (int)(sizeof refused / sizeof *refused));
    tcase_add_test(c, people_read_it_too);
    tcase_add_loop_test(c, batches_that_are_not_pinned_are_told, 0, 2);
    tcase_add_loop_test(c, a_capture_that_fails_says_why, 0,
                        HEADROOM_SANITIZED ? 3 : (int)(sizeof captures / sizeof *captures));
    tcase_add_test(c, a_step_whose_addresses_move_is_said_not_to_be_captured);
    tcase_add_test(c, replays_are_counted_and_change_no_bit);
    tcase_add_test(c, fewer_addresses_will_do);
    tcase_add_test(c, a_known_fault_of_cudnn_is_gone_around_and_told);
    tcase_add_loop_test(c, both_passes_of_attention_drop_the_same_weights, 0,
                        HEADROOM_SANITIZED ? 2 : (int)(sizeof masks / sizeof *masks));
    tcase_add_test(c, a_limit_that_pytorchs_engines_do_not_obey_is_refused_with_one_that_works);
    tcase_add_test(c, an_engine_that_wants_more_than_the_card_has_is_passed_over);
    tcase_add_test(c, a_run_as_pytorch_with_copies_in_its_workspaces_is_its_plan);
    tcase_add_test(c, an_unknown_card_is_kept_for_plans_without_it);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
