// SPDX-License-Identifier: Apache-2.0
// Training with every optimizer: the plan is the run, a save carries every slot, a schedule is a function of the
// update's number, and an average is what evaluation sees.
#include <check.h>
#include <math.h>
#include <stdlib.h>

// With a tensor of more than 4096 elements, and an epoch of four steps.
#define SMALL_ENGINE_LAYERS                                                                                  \
    "    - {kind: conv2d, filters: 4, kernel: 3, stride: 6, activation: relu}\n"                             \
    "    - {kind: flatten}\n"                                                                                \
    "    - {kind: dense, units: 48, activation: relu}\n"                                                     \
    "    - {kind: dense, units: 10}\n"
#include "train/schedule.h"
#include "unit/small_engine.h"

// What a save must carry: nothing, one slot or more, bytes, factors, averages; and a schedule that carries nothing.
static const char *const trainings[][3] = {
    {"optimizer.kind=adam"},
    {"optimizer.kind=sgd", "optimizer.schedule=cosine", "optimizer.schedule_updates=7"},
    {"optimizer.kind=momentum", "optimizer.warmup=6"},
    {"optimizer.kind=rmsprop", "optimizer.ema=0.5"},
    {"optimizer.kind=adamw", "optimizer.clip_norm=0.1"},
    {"optimizer.kind=adafactor"},
    {"optimizer.kind=adafactor_keras"},
    {"optimizer.kind=lion", "optimizer.learning_rate=0.0001"},
    {"optimizer.kind=adam8bit"},
};
enum { TRAININGS = sizeof trainings / sizeof *trainings, ALL_STEPS = 6 };

static void note_evaluation(void *context, const hr_event *event)
{
    if (event->kind == HR_EVENT_EVAL) {
        *(double *)context = event->u.step.loss;
    }
}

static double evaluated_loss; // of the last evaluation

static hr_engine *trained(const char *const training[3], const char *pair, bool plan_only, uint64_t steps)
{
    char until[40];
    const char *pairs[6] = {pair, until};
    (void)snprintf(until, sizeof until, "train.steps=%llu", (unsigned long long)steps);
    for (int k = 0; k < 3; k++) {
        pairs[k + 2] = training[k];
    }
    hr_engine *e =
        create(pairs, &(hr_engine_options){
                          .plan_only = plan_only, .sink = note_evaluation, .sink_context = &evaluated_loss});
    run_steps(e, 0);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    return e;
}

static void weights_after(const char *const training[3], const char *pair, uint64_t steps,
                          char sha[HR_SHA256_TEXT_MAX])
{
    hr_engine *e = trained(training, pair, false, steps);
    weights_of(e, sha);
    hr_engine_destroy(e);
}

// Saves after one step or four, resumes in another engine, and compares with a run that was never interrupted.
START_TEST(a_save_carries_every_slot)
{
    const char *const *training = trainings[_i % TRAININGS];
    const uint64_t before = _i < TRAININGS ? 1 : 4;
    char path[128], save[160], resume[160], whole[HR_SHA256_TEXT_MAX], resumed[HR_SHA256_TEXT_MAX];
    (void)snprintf(save, sizeof save, "train.save=%s", file_in("a.safetensors", path));
    (void)snprintf(resume, sizeof resume, "train.resume=%s", path);
    weights_after(training, "train.save=", ALL_STEPS, whole);
    weights_after(training, save, before, resumed);
    weights_after(training, resume, ALL_STEPS, resumed);
    ck_assert_str_eq(whole, resumed);
}
END_TEST

START_TEST(the_plan_of_every_optimizer_is_its_run)
{
    hr_engine *plan = trained(trainings[_i], "execution.mode=eager", true, 2);
    hr_engine *run = trained(trainings[_i], "execution.mode=eager", false, 2);
    hr_report planned = report_of(plan), measured = report_of(run);
    ck_assert_uint_eq(planned.memory.peak_in_use_bytes, measured.memory.peak_in_use_bytes);
    ck_assert_uint_eq(planned.memory.static_bytes, measured.memory.static_bytes);
    ck_assert_uint_eq(planned.memory.heap_hash, measured.memory.heap_hash);
    ck_assert(isfinite(measured.train.loss_last));
    hr_report_deinit(&planned);
    hr_report_deinit(&measured);
    hr_engine_destroy(plan);
    hr_engine_destroy(run);
}
END_TEST

// Eager, graph, with and without regions: one training.
START_TEST(every_optimizer_has_one_result)
{
    char eager[HR_SHA256_TEXT_MAX], graph[HR_SHA256_TEXT_MAX];
    weights_after(trainings[_i], "execution.mode=eager", 3, eager);
    weights_after(trainings[_i], "execution.mode=graph", 3, graph);
    ck_assert_str_eq(eager, graph);
}
END_TEST

// ---- schedules ------------------------------------------------------------------------------------------------

static double rate(const char *const *pairs, uint64_t update)
{
    hr_knobs knobs;
    hr_err err = {0};
    hr_knobs_init(&knobs);
    for (; *pairs != NULL; pairs++) {
        ck_assert_msg(hr_knobs_set_pair(&knobs, *pairs, &err) == HR_OK, "%s", err.sentence);
    }
    return schedule_learning_rate(&knobs, update);
}

#define RATE(update, ...) rate((const char *[]){"optimizer.learning_rate=2", __VA_ARGS__, NULL}, update)

START_TEST(a_schedule_is_a_function_of_the_update)
{
    ck_assert_double_eq(RATE(1, "optimizer.schedule=none"), 2.0);
    ck_assert_double_eq(RATE(3, "optimizer.warmup=4"), 1.5);
    ck_assert_double_eq(RATE(4, "optimizer.warmup=4"), 2.0);
    ck_assert_double_eq(RATE(1000, "optimizer.warmup=4"), 2.0);
    ck_assert_double_eq(RATE(1, "optimizer.schedule=linear", "optimizer.schedule_updates=10"), 2.0);
    ck_assert_double_eq_tol(RATE(6, "optimizer.schedule=linear", "optimizer.schedule_updates=10"), 1.0,
                            1e-15);
    ck_assert_double_eq(RATE(11, "optimizer.schedule=linear", "optimizer.schedule_updates=10"), 0.0);
    ck_assert_double_eq_tol(RATE(50, "optimizer.schedule=linear", "optimizer.schedule_updates=10",
                                 "optimizer.schedule_factor=0.25"),
                            0.5, 1e-15);
    ck_assert_double_eq(RATE(1, "optimizer.schedule=cosine", "train.steps=10"), 2.0);
    ck_assert_double_eq_tol(RATE(6, "optimizer.schedule=cosine", "train.steps=10"), 1.0, 1e-15);
    ck_assert_double_eq_tol(RATE(9, "optimizer.schedule=cosine", "train.steps=12", "optimizer.warmup=4"), 1.0,
                            1e-15);
    ck_assert_double_eq_tol(RATE(11, "optimizer.schedule=step", "optimizer.schedule_updates=5"), 0.02, 1e-15);
    ck_assert_double_eq_tol(RATE(10, "optimizer.schedule=step", "optimizer.schedule_updates=5"), 0.2, 1e-15);
}
END_TEST

// ---- averages -------------------------------------------------------------------------------------------------

// An average that keeps nothing is the weights themselves; one that keeps nearly all has hardly left the first ones.
START_TEST(evaluation_sees_the_average)
{
    static const char *const ema[] = {"optimizer.ema=none", "optimizer.ema=0", "optimizer.ema=0.99"};
    char images[160];
    double loss[3];
    (void)write_images(32, 16, images);
    for (int k = 0; k < 3; k++) {
        const char *const training[3] = {"optimizer.kind=momentum", ema[k]};
        evaluated_loss = (double)NAN;
        hr_engine_destroy(trained(training, images, false, 5)); // the fourth step ends the epoch
        loss[k] = evaluated_loss;
        ck_assert(isfinite(loss[k]));
    }
    ck_assert_double_eq(loss[0], loss[1]);
    ck_assert_double_ne(loss[0], loss[2]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine_optimizers");
    TCase *cases = tcase_create("engine_optimizers");
    tcase_add_checked_fixture(cases, open_preset, close_preset);
    tcase_add_loop_test(cases, a_save_carries_every_slot, 0, 2 * TRAININGS);
    tcase_add_loop_test(cases, the_plan_of_every_optimizer_is_its_run, 0, TRAININGS);
    tcase_add_loop_test(cases, every_optimizer_has_one_result, 0, TRAININGS);
    tcase_add_test(cases, a_schedule_is_a_function_of_the_update);
    tcase_add_test(cases, evaluation_sees_the_average);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
