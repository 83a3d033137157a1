// SPDX-License-Identifier: Apache-2.0
// What the knobs of execution promise: places and lifetimes change, weights do not; a leak grows by what it keeps and
// is called one when memory runs out.
#include <inttypes.h>

#define SMALL_ENGINE_LAYERS                                                                                  \
    "    - {kind: conv2d, filters: 8, kernel: 3, stride: 4, activation: relu}\n"                             \
    "    - {kind: max_pool, size: 2}\n"                                                                      \
    "    - {kind: batch_norm, activation: relu}\n"                                                           \
    "    - {kind: flatten}\n"                                                                                \
    "    - {kind: dense, units: 10}\n"
#include "unit/small_engine.h"

static hr_report run(const char *const *pairs, uint64_t steps, bool plan_only)
{
    hr_engine_options options = {.plan_only = plan_only};
    hr_engine *e = create(pairs, &options);
    run_steps(e, steps);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    hr_report r = report_of(e);
    hr_engine_destroy(e);
    return r;
}

static void same_weights(const hr_report *a, const hr_report *b)
{
    ck_assert_uint_eq(strlen(a->train.weights_sha256), 64);
    ck_assert_str_eq(a->train.weights_sha256, b->train.weights_sha256);
}

START_TEST(in_place_saves_memory_and_changes_no_bit)
{
    static const char *const modes[] = {"execution.mode=eager", "execution.mode=graph"};
    for (int k = 0; k < 2; k++) {
        hr_report on = run((const char *[]){modes[k], "execution.inplace=on", NULL}, 3, false);
        hr_report off = run((const char *[]){modes[k], "execution.inplace=off", NULL}, 3, false);
        same_weights(&on, &off);
        ck_assert_uint_lt(on.memory.peak_requested_bytes, off.memory.peak_requested_bytes);
        hr_report_deinit(&on);
        hr_report_deinit(&off);
    }
}
END_TEST

static const char *const framework_cases[][2] = {
    {"execution.as=pytorch", "train.seed=1"},
    {"execution.as=pytorch", "batch.accumulate=2"},
    {"execution.as=pytorch", "optimizer.clip_norm=0.5"},
    {"execution.as=pytorch", "checkpoint.strategy=sqrt"},
    {"execution.as=tensorflow", "train.seed=1"},
    {"execution.as=tensorflow", "optimizer.kind=momentum"},
    {"execution.as=tensorflow", "execution.tape=persistent"},
};
enum { FRAMEWORK_CASES = sizeof framework_cases / sizeof *framework_cases };

// And what is planned is what is run.
START_TEST(rules_of_a_framework_hold_other_bytes_and_change_no_bit)
{
    const char *as = framework_cases[_i][0], *more = framework_cases[_i][1];
    hr_report ours = run((const char *[]){more, NULL}, 3, false),
              theirs = run((const char *[]){as, more, NULL}, 3, false);
    hr_report planned = run((const char *[]){as, more, NULL}, 3, true);
    same_weights(&ours, &theirs);
    ck_assert(ours.train.loss_last == theirs.train.loss_last);
    ck_assert_uint_ne(ours.memory.saved_for_backward_bytes, theirs.memory.saved_for_backward_bytes);
    ck_assert_uint_eq(theirs.memory.peak_requested_bytes, planned.memory.peak_requested_bytes);
    ck_assert_uint_eq(theirs.memory.peak_in_use_bytes, planned.memory.peak_in_use_bytes);
    hr_report_deinit(&ours);
    hr_report_deinit(&theirs);
    hr_report_deinit(&planned);
}
END_TEST

START_TEST(fusing_leaves_a_tensor_out)
{
    static const char tape[] = "execution.tape=none";
    static const char inplace[] = "execution.inplace=off";
    hr_report on =
        run((const char *[]){"device.kind=plan", "execution.fuse=on", inplace, tape, NULL}, 2, true);
    hr_report off =
        run((const char *[]){"device.kind=plan", "execution.fuse=off", inplace, tape, NULL}, 2, true);
    ck_assert_uint_lt(on.step.instructions, off.step.instructions);
    ck_assert_uint_lt(on.memory.peak_requested_bytes, off.memory.peak_requested_bytes);
    hr_report_deinit(&on);
    hr_report_deinit(&off);
}
END_TEST

START_TEST(without_a_tape_no_weight_moves)
{
    hr_report one = run((const char *[]){"execution.tape=none", NULL}, 1, false);
    hr_report five = run((const char *[]){"execution.tape=none", NULL}, 5, false);
    hr_report once = run((const char *[]){NULL}, 5, false);
    same_weights(&one, &five);
    ck_assert_str_ne(once.train.weights_sha256, five.train.weights_sha256);
    ck_assert_uint_eq(five.train.steps, 5);
    ck_assert_uint_eq(five.train.updates, 0);
    ck_assert_uint_eq(once.train.updates, 5);
    ck_assert(five.train.loss_last > 0 && five.train.loss_last == five.train.loss_last);
    ck_assert_uint_eq(five.memory.saved_for_backward_bytes, 0);
    ck_assert_uint_lt(five.memory.peak_requested_bytes, once.memory.peak_requested_bytes);
    hr_report_deinit(&one);
    hr_report_deinit(&five);
    hr_report_deinit(&once);
}
END_TEST

START_TEST(a_persistent_tape_changes_no_bit)
{
    hr_report once = run((const char *[]){"execution.tape=once", NULL}, 3, false);
    hr_report persistent = run((const char *[]){"execution.tape=persistent", NULL}, 3, false);
    same_weights(&once, &persistent);
    ck_assert_uint_ge(persistent.memory.peak_requested_bytes, once.memory.peak_requested_bytes);
    hr_report_deinit(&once);
    hr_report_deinit(&persistent);
}
END_TEST

static uint64_t listed_bytes(const hr_report *r)
{
    uint64_t sum = 0;
    for (size_t k = 0; k < r->memory.at_peak.tensor_count; k++) {
        sum += r->memory.at_peak.tensors[k].bytes;
    }
    return sum;
}

// What one step retains, in requested bytes: one loss, or logits of 8 samples over 10 classes.
static const struct {
    const char *pair;
    uint64_t bytes;
} leaks[] = {{"execution.retain=losses", 4}, {"execution.retain=predictions", 8 * 10 * 4}};

START_TEST(a_leak_grows_by_what_each_step_retains)
{
    const char *const pairs[] = {leaks[_i].pair, NULL};
    hr_report three = run(pairs, 3, false);
    hr_report ten = run(pairs, 10, false);
    hr_report planned = run(pairs, 10, true);
    hr_report clean = run((const char *[]){NULL}, 10, false);
    same_weights(&ten, &clean);
    ck_assert_uint_eq(ten.memory.peak_requested_bytes - three.memory.peak_requested_bytes,
                      7 * leaks[_i].bytes);
    ck_assert_uint_eq(ten.memory.at_peak.by_category[HR_CATEGORY_RETAINED] -
                          three.memory.at_peak.by_category[HR_CATEGORY_RETAINED],
                      7 * leaks[_i].bytes);
    ck_assert_uint_eq(planned.memory.peak_requested_bytes, ten.memory.peak_requested_bytes);
    ck_assert_uint_eq(planned.memory.peak_in_use_bytes, ten.memory.peak_in_use_bytes);
    ck_assert_uint_eq(listed_bytes(&ten), ten.memory.peak_requested_bytes);
    hr_report_deinit(&three);
    hr_report_deinit(&ten);
    hr_report_deinit(&planned);
    hr_report_deinit(&clean);
}
END_TEST

START_TEST(a_layer_made_in_every_step_leaks_weights_and_slots)
{
    const char *const pairs[] = {"execution.retain=variables", "device.kind=plan", NULL};
    hr_report three = run(pairs, 3, true);
    hr_report ten = run(pairs, 10, true);
    uint64_t parameters = ten.model.layers[ten.model.layer_count - 1].parameters;
    ck_assert_uint_eq(ten.memory.peak_requested_bytes - three.memory.peak_requested_bytes,
                      7 * parameters * 3 * sizeof(float)); // weight, m and v
    hr_report_deinit(&three);
    hr_report_deinit(&ten);
}
END_TEST

START_TEST(a_leak_is_called_one_when_memory_runs_out)
{
    static const bool plans[] = {false, true};
    hr_report clean = run((const char *[]){NULL}, 2, true);
    char vram[64];
    (void)snprintf(vram, sizeof vram, "device.vram=%" PRIu64 "B", clean.memory.peak_in_use_bytes + 65536);
    hr_report_deinit(&clean);
    for (int k = 0; k < 2; k++) {
        hr_engine_options options = {.plan_only = plans[k]};
        hr_engine *e = create((const char *[]){"execution.retain=predictions", vram, NULL}, &options);
        run_steps(e, 200);
        ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_OOM);
        hr_report r = report_of(e);
        ck_assert_int_eq(r.oom.cause, HR_OOM_LEAK);
        ck_assert_str_eq(r.oom.hint, "-s execution.retain=none");
        ck_assert_uint_gt(r.oom.by_category[HR_CATEGORY_RETAINED], 10 * 8 * 10 * 4);
        ck_assert_uint_gt(hr_engine_steps(e), 10);
        ck_assert_int_eq(turn(e, HR_KNOB_EXECUTION_RETAIN, "none"), HR_OK);
        run_steps(e, 2);
        ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
        hr_report_deinit(&r);
        hr_engine_destroy(e);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("execution");
    TCase *cases = tcase_create("execution");
    tcase_add_checked_fixture(cases, open_preset, close_preset);
    tcase_add_test(cases, in_place_saves_memory_and_changes_no_bit);
    tcase_add_loop_test(cases, rules_of_a_framework_hold_other_bytes_and_change_no_bit, 0, FRAMEWORK_CASES);
    tcase_add_test(cases, fusing_leaves_a_tensor_out);
    tcase_add_test(cases, without_a_tape_no_weight_moves);
    tcase_add_test(cases, a_persistent_tape_changes_no_bit);
    tcase_add_loop_test(cases, a_leak_grows_by_what_each_step_retains, 0, 2);
    tcase_add_test(cases, a_layer_made_in_every_step_leaks_weights_and_slots);
    tcase_add_test(cases, a_leak_is_called_one_when_memory_runs_out);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
