// SPDX-License-Identifier: Apache-2.0
// Training with every variable in two bytes, on the cpu device: losses fall where the type can hold the updates, stay
// finite with every optimizer, and weights and slots take half of float32's bytes.
#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "headroom/engine.h"
#include "headroom/preset.h"

enum { STEPS = HEADROOM_SANITIZED ? 10 : 20, PAIR_MAX = 64 };

static const char *const models[] = {"mlp_tiny", "gpt2_124m_tiny"};

static const struct {
    const char *kind, *rate;
    bool falls; // in bfloat16
} optimizers[] = {
    {"sgd", "0.1", true},        {"momentum", "0.02", true},    {"adam", "0.001", true},
    {"adamw", "0.001", true},    {"rmsprop", "0.001", true},    {"lion", "0.0003", true},
    {"adam8bit", "0.001", true}, {"adafactor", "0.001", false}, {"adafactor_keras", "0.001", false},
};
enum { OPTIMIZERS = sizeof optimizers / sizeof *optimizers };

typedef struct finding {
    double first, last;
    uint64_t weights_bytes, slots_bytes;
} finding;

static void turn(hr_knobs *knobs, const char *key, const char *value)
{
    hr_err err = {0};
    char pair[PAIR_MAX];
    (void)snprintf(pair, sizeof pair, "%s=%s", key, value);
    ck_assert_msg(hr_knobs_set_pair(knobs, pair, &err) == HR_OK, "%s", err.sentence);
}

static finding train(const hr_preset *preset, int optimizer, const char *policy, uint64_t steps)
{
    hr_knobs knobs = *hr_preset_knobs(preset);
    hr_err err = {0};
    hr_engine *engine = NULL;
    hr_report report = {0};
    turn(&knobs, "device.kind", "cpu");
    turn(&knobs, "threads.count", "1");
    turn(&knobs, "precision.policy", policy);
    turn(&knobs, "optimizer.kind", optimizers[optimizer].kind);
    turn(&knobs, "optimizer.learning_rate", optimizers[optimizer].rate);
    ck_assert_msg(hr_engine_create(preset, &knobs, &(hr_engine_options){0}, &engine, &err) == HR_OK, "%s",
                  err.sentence);
    hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = steps};
    ck_assert_int_eq(hr_engine_command(engine, &run, &err), HR_OK);
    for (bool idle = false; !idle;) {
        hr_engine_advance(engine, &idle);
    }
    ck_assert_msg(hr_engine_steps(engine) == steps, "%s, %s: %s", policy, optimizers[optimizer].kind,
                  hr_engine_error(engine)->sentence);
    ck_assert_int_eq(hr_engine_report(engine, &report, &err), HR_OK);
    const finding f = {.first = report.train.loss_first,
                       .last = report.train.loss_last,
                       .weights_bytes = report.memory.at_peak.by_category[HR_CATEGORY_WEIGHTS],
                       .slots_bytes = report.memory.at_peak.by_category[HR_CATEGORY_OPTIMIZER]};
    hr_report_deinit(&report);
    hr_engine_destroy(engine);
    return f;
}

static hr_preset *open_model(const char *name)
{
    hr_preset *preset = NULL;
    hr_err err = {0};
    ck_assert_msg(hr_preset_open(name, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    return preset;
}

START_TEST(losses_of_two_byte_variables_fall_and_stay_finite)
{
    hr_preset *preset = open_model(models[_i]);
    for (int k = 0; k < OPTIMIZERS; k++) {
        const finding brain = train(preset, k, "bfloat16", STEPS), half = train(preset, k, "float16", STEPS);
        ck_assert_msg(isfinite(brain.last) && isfinite(half.last), "%s, %s: %g and %g", models[_i],
                      optimizers[k].kind, brain.last, half.last);
        ck_assert_msg(!optimizers[k].falls || brain.last < brain.first, "%s, %s: %g became %g", models[_i],
                      optimizers[k].kind, brain.first, brain.last);
    }
    hr_preset_close(preset);
}
END_TEST

START_TEST(slots_of_two_byte_variables_take_two_bytes)
{
    static const struct {
        int optimizer;
        uint64_t slots;
    } holds[] = {{0, 0}, {1, 1}, {2, 2}};
    hr_preset *preset = open_model(models[_i]);
    for (size_t k = 0; k < sizeof holds / sizeof *holds; k++) {
        const finding single = train(preset, holds[k].optimizer, "float32", 1),
                      brain = train(preset, holds[k].optimizer, "bfloat16", 1);
        ck_assert_uint_eq(2 * brain.weights_bytes, single.weights_bytes);
        ck_assert_uint_eq(brain.slots_bytes, holds[k].slots * brain.weights_bytes);
        ck_assert_uint_eq(single.slots_bytes, holds[k].slots * single.weights_bytes);
    }
    hr_preset_close(preset);
}
END_TEST

int main(void)
{
    hr_preset_search_beside(".");
    Suite *suite = suite_create("half_policies");
    TCase *tests = tcase_create("two-byte variables");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, losses_of_two_byte_variables_fall_and_stay_finite, 0, 2);
    tcase_add_loop_test(tests, slots_of_two_byte_variables_take_two_bytes, 0, 2);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
