// SPDX-License-Identifier: Apache-2.0
// An accumulated step of the engine: several batches of the pipeline, one update, and an epoch of whole updates.
#include <math.h>

#define SMALL_ENGINE_LAYERS                                                                                  \
    "    - {kind: conv2d, filters: 6, kernel: 3, stride: 4, activation: relu}\n"                             \
    "    - {kind: flatten}\n"                                                                                \
    "    - {kind: dense, units: 10}\n"
#include "unit/small_engine.h"

enum { IMAGES = 27, PAIRS_MAX = 12 };

static char images[160];

static void open_all(void)
{
    open_preset();
    (void)write_images(IMAGES, 9, images);
}

typedef struct seen {
    uint64_t epochs;
    uint64_t samples; // of all steps
} seen;

static void look(void *context, const hr_event *event)
{
    seen *s = context;
    s->epochs += event->kind == HR_EVENT_EPOCH;
    s->samples += event->kind == HR_EVENT_STEP ? event->u.step.samples : 0;
}

static hr_report train(const char *const *pairs, uint64_t steps, seen *s)
{
    const char *all[PAIRS_MAX] = {images, "precision.policy=float64", "optimizer.kind=sgd",
                                  "optimizer.learning_rate=0.05"};
    for (size_t k = 4; *pairs != NULL; k++) {
        ck_assert_uint_lt(k, PAIRS_MAX - 1);
        all[k] = *pairs++;
    }
    hr_engine_options options = {.sink = look, .sink_context = s};
    hr_engine *e = create(all, &options);
    run_steps(e, steps);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    hr_report r = report_of(e);
    hr_engine_destroy(e);
    return r;
}

static const struct {
    const char *remainder, *prefetch;
    uint64_t updates_an_epoch;
} epochs[] = {{"batch.remainder=drop", "pipeline.prefetch=0", 2},
              {"batch.remainder=drop", "pipeline.prefetch=2", 2},
              {"batch.remainder=pad", "pipeline.prefetch=0", 3},
              {"batch.remainder=pad", "pipeline.prefetch=3", 3}};

// 27 images are two updates of 12 and three left over: over several epochs the rounds see what the large batch sees.
START_TEST(three_batches_of_four_train_as_one_of_twelve)
{
    const char *remainder = epochs[_i].remainder;
    const char *prefetch = epochs[_i].prefetch;
    const uint64_t steps = 3 * epochs[_i].updates_an_epoch + 1;
    seen s[2] = {{0}};
    hr_report large = train((const char *[]){"batch.size=12", remainder, prefetch, NULL}, steps, &s[0]);
    hr_report rounds = train(
        (const char *[]){"batch.size=4", "batch.accumulate=3", remainder, prefetch, NULL}, steps, &s[1]);
    ck_assert_uint_eq(s[0].epochs, 3);
    ck_assert_uint_eq(s[1].epochs, 3);
    ck_assert_uint_eq(s[1].samples, 12 * steps);
    ck_assert_uint_eq(rounds.train.steps, steps);
    ck_assert_uint_eq(rounds.train.updates, steps);
    ck_assert_double_eq_tol(rounds.train.loss_first, large.train.loss_first, 1e-12);
    ck_assert_double_eq_tol(rounds.train.loss_last, large.train.loss_last, 1e-9);
    ck_assert_double_ne(rounds.train.loss_last, rounds.train.loss_first);
    ck_assert_uint_eq(rounds.step.effective_batch, 12);
    ck_assert_uint_lt(rounds.memory.peak_requested_bytes, large.memory.peak_requested_bytes);
    hr_report_deinit(&large);
    hr_report_deinit(&rounds);
}
END_TEST

START_TEST(a_plan_of_it_is_the_run)
{
    static const char *const modes[] = {"execution.mode=eager", "execution.mode=graph"};
    for (int k = 0; k < 2; k++) {
        const char *const pairs[] = {"batch.accumulate=3", modes[k], NULL};
        hr_engine_options plan = {.plan_only = true};
        hr_engine *planned = create(pairs, &plan);
        hr_engine *ran = create(pairs, NULL);
        run_steps(planned, 5);
        run_steps(ran, 5);
        hr_report a = report_of(planned);
        hr_report b = report_of(ran);
        ck_assert_uint_eq(a.memory.peak_in_use_bytes, b.memory.peak_in_use_bytes);
        ck_assert_uint_eq(a.memory.peak_requested_bytes, b.memory.peak_requested_bytes);
        ck_assert_uint_eq(a.memory.heap_hash, b.memory.heap_hash);
        ck_assert_uint_eq(a.memory.at_peak.instruction, b.memory.at_peak.instruction);
        ck_assert_mem_eq(a.memory.at_peak.by_category, b.memory.at_peak.by_category,
                         sizeof a.memory.at_peak.by_category);
        ck_assert_uint_eq(a.h2d_bytes_per_step, b.h2d_bytes_per_step);
        hr_report_deinit(&a);
        hr_report_deinit(&b);
        hr_engine_destroy(planned);
        hr_engine_destroy(ran);
    }
}
END_TEST

START_TEST(every_round_of_a_leak_leaves_its_loss)
{
    const char *const pairs[] = {"batch.accumulate=3", "execution.retain=losses", NULL};
    hr_engine_options plan = {.plan_only = true};
    uint64_t peak[2];
    for (int k = 0; k < 2; k++) {
        hr_engine *e = create(pairs, &plan);
        run_steps(e, k == 0 ? 3 : 10);
        hr_report r = report_of(e);
        peak[k] = r.memory.peak_requested_bytes;
        hr_report_deinit(&r);
        hr_engine_destroy(e);
    }
    ck_assert_uint_eq(peak[1] - peak[0], 7 * 3 * sizeof(float));
}
END_TEST

START_TEST(a_resumed_run_goes_on_behind_its_last_update)
{
    char path[128];
    char save[160];
    char resume[160];
    (void)snprintf(save, sizeof save, "train.save=%s", file_in("half.safetensors", path));
    (void)snprintf(resume, sizeof resume, "train.resume=%s", path);
    const char *const rule = "batch.remainder=pad";
    seen s = {0};
    hr_report whole = train((const char *[]){"batch.size=4", "batch.accumulate=3", rule, NULL}, 8, &s);
    hr_report half = train((const char *[]){"batch.size=4", "batch.accumulate=3", rule, save, NULL}, 5, &s);
    hr_report rest = train(
        (const char *[]){"batch.size=4", "batch.accumulate=3", rule, resume, "train.steps=8", NULL}, 0, &s);
    ck_assert_uint_eq(rest.train.steps, 8);
    ck_assert_str_eq(rest.train.weights_sha256, whole.train.weights_sha256);
    hr_report_deinit(&whole);
    hr_report_deinit(&half);
    hr_report_deinit(&rest);
}
END_TEST

START_TEST(an_epoch_without_a_whole_update_is_refused)
{
    hr_engine *e = create((const char *[]){images, "batch.size=4", "batch.accumulate=7", NULL}, NULL);
    run_steps(e, 1);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_FAILED);
    const hr_err *err = hr_engine_error(e);
    ck_assert_msg(strstr(err->sentence, "needed 28 samples for 7 batches of 4, had 27") != NULL, "%s",
                  err->sentence);
    ck_assert_int_eq(turn(e, HR_KNOB_BATCH_REMAINDER, "pad"), HR_OK);
    run_steps(e, 1);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    hr_engine_destroy(e);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("accumulate");
    TCase *cases = tcase_create("accumulate");
    tcase_add_checked_fixture(cases, open_all, close_preset);
    tcase_add_loop_test(cases, three_batches_of_four_train_as_one_of_twelve, 0, 4);
    tcase_add_test(cases, a_plan_of_it_is_the_run);
    tcase_add_test(cases, every_round_of_a_leak_leaves_its_loss);
    tcase_add_test(cases, a_resumed_run_goes_on_behind_its_last_update);
    tcase_add_test(cases, an_epoch_without_a_whole_update_is_refused);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
