// SPDX-License-Identifier: Apache-2.0
// Steps on a card with everything that rides on other instructions, and without: a transformer has the same losses, as near
// as the type allows, and the same bytes kept for backward, a residual network the same bits; every run is the same.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/engine.h"
#include "headroom/preset.h"

#include "card/reach.h"

enum { STEPS = 2, PRUNED_STEPS = 11, ALL_DONE = 77, WORDS_MAX = 4 };

static card_reach card;

static const struct {
    const char *words[WORDS_MAX];
    double apart; // of losses
} ways[] = {{{"precision.policy=float32"}, 1e-6},
            {{"precision.policy=mixed_bfloat16"}, 1e-3},
            {{"precision.policy=float32", "optimizer.fused_backward=on"}, 1e-6},
            {{"precision.policy=mixed_bfloat16", "batch.accumulate=2"}, 1e-3},
            {{"precision.policy=float32", "checkpoint.strategy=every:1"}, 1e-6},
            {{"precision.policy=float32", "batch.accumulate=2"}, 1e-6},
            {{"precision.policy=float32", "execution.inplace=off", "allocator.kind=static"}, 1e-6}};
enum { WAYS = sizeof ways / sizeof *ways };

static void turn(hr_knobs *knobs, const char *pair)
{
    hr_err err = {0};
    ck_assert_msg(hr_knobs_set_pair(knobs, pair, &err) == HR_OK, "%s", err.sentence);
}

static hr_report train_with(const char *model, const char *const words[WORDS_MAX], const char *fuse,
                            uint64_t steps)
{
    static const char *const base[] = {"device.kind=cuda",           "device.card=", "device.vram=256MiB",
                                       "execution.mode=graph",       "batch.size=2", "optimizer.kind=adam",
                                       "execution.deterministic=on", "train.seed=5"};
    hr_err err = {0};
    hr_preset *preset = NULL;
    hr_engine *engine = NULL;
    hr_report report = {0};
    ck_assert_msg(hr_preset_open(model, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    hr_knobs knobs = *hr_preset_knobs(preset);
    for (size_t k = 0; k < sizeof base / sizeof *base; k++) {
        turn(&knobs, base[k]);
    }
    for (size_t k = 0; k < WORDS_MAX && words[k] != NULL; k++) {
        turn(&knobs, words[k]);
    }
    turn(&knobs, fuse);
    ck_assert_msg(hr_engine_create(preset, &knobs, &(hr_engine_options){0}, &engine, &err) == HR_OK, "%s",
                  err.sentence);
    hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = steps};
    ck_assert_int_eq(hr_engine_command(engine, &run, &err), HR_OK);
    for (bool idle = false; !idle;) {
        hr_engine_advance(engine, &idle);
    }
    ck_assert_msg(hr_engine_steps(engine) == steps, "%s", hr_engine_error(engine)->sentence);
    ck_assert_int_eq(hr_engine_report(engine, &report, &err), HR_OK);
    hr_engine_destroy(engine);
    hr_preset_close(preset);
    return report;
}

static hr_report train(const char *model, int way, const char *fuse)
{
    return train_with(model, ways[way].words, fuse, STEPS);
}

START_TEST(what_rides_on_products_changes_no_loss)
{
    const char *const model =
        _i % 2 == 0 ? "presets/models/gpt2_124m_tiny.yaml" : "tests/data/models/cross_attention.yaml";
    hr_report apart = train(model, _i / 2, "execution.fuse=off"),
              fused = train(model, _i / 2, "execution.fuse=on");
    ck_assert_double_le(fabs(fused.train.loss_first - apart.train.loss_first),
                        ways[_i / 2].apart * apart.train.loss_first);
    ck_assert_double_le(fabs(fused.train.loss_last - apart.train.loss_last),
                        ways[_i / 2].apart * apart.train.loss_last);
    ck_assert_uint_eq(fused.memory.saved_for_backward_bytes, apart.memory.saved_for_backward_bytes);
    hr_report_deinit(&apart);
    hr_report_deinit(&fused);
}
END_TEST

// In float32, where products add as sums do.
static const struct {
    const char *model;
    int way;
} exact[] = {{"presets/models/resnet18_cifar_tiny.yaml", 0}, {"presets/models/resnet50_tiny.yaml", 0},
             {"presets/models/resnet50_tiny.yaml", 4},       {"tests/data/models/same_pool.yaml", 0},
             {"tests/data/models/same_pool.yaml", 2},        {"tests/data/models/same_pool.yaml", 4},
             {"tests/data/models/same_pool.yaml", 5},        {"tests/data/models/same_pool.yaml", 6}};
enum { EXACT = sizeof exact / sizeof *exact };

// Of convolutions nothing but sums, cuts, gates, and what is normalised and pooled on the way: the same bits.
START_TEST(what_normalisations_take_with_them_changes_no_bit)
{
    const char *const model = exact[_i].model;
    const int way = exact[_i].way;
    hr_report apart = train(model, way, "execution.fuse=off"), fused = train(model, way, "execution.fuse=on");
    ck_assert_str_eq(fused.train.weights_sha256, apart.train.weights_sha256);
    hr_report_deinit(&apart);
    hr_report_deinit(&fused);
}
END_TEST

static const char *const updates[][WORDS_MAX] = {
    {"optimizer.kind=sgd"},
    {"optimizer.kind=momentum"},
    {"optimizer.kind=rmsprop"},
    {"optimizer.kind=adam"},
    {"optimizer.kind=adamw"},
    {"optimizer.kind=lion"},
    {"optimizer.kind=adam", "optimizer.fused_backward=on"},
    {"optimizer.kind=adam", "optimizer.ema=0.9"},
    {"optimizer.kind=adam", "offload.optimizer=on"},
    {"optimizer.kind=adam", "allocator.kind=static", "execution.cuda_graph=on"},
};
enum { UPDATES = sizeof updates / sizeof *updates };

// Of float32: in two-byte types other fusions round less. Masks are made on three updates, grow, and lie still on those between.
START_TEST(masks_that_updates_apply_change_no_bit)
{
    static const char model[] = "presets/models/mlp_tiny.yaml";
    const char *words[WORDS_MAX] = {"compress.prune=polynomial:0.2:0.8:1:9:4"};
    for (size_t k = 1; k < WORDS_MAX; k++) {
        words[k] = updates[_i][k - 1];
    }
    hr_report apart = train_with(model, words, "execution.fuse=off", PRUNED_STEPS),
              fused = train_with(model, words, "execution.fuse=on", PRUNED_STEPS);
    words[0] = "compress.prune=none";
    hr_report whole = train_with(model, words, "execution.fuse=on", PRUNED_STEPS);
    ck_assert_str_eq(fused.train.weights_sha256, apart.train.weights_sha256);
    ck_assert_str_ne(fused.train.weights_sha256, whole.train.weights_sha256);
    hr_report_deinit(&apart);
    hr_report_deinit(&fused);
    hr_report_deinit(&whole);
}
END_TEST

START_TEST(every_run_is_the_same)
{
    const char *const model = "presets/models/gpt2_124m_tiny.yaml";
    hr_report one = train(model, _i, "execution.fuse=on"), other = train(model, _i, "execution.fuse=on");
    ck_assert_str_eq(one.train.weights_sha256, other.train.weights_sha256);
    hr_report_deinit(&one);
    hr_report_deinit(&other);
}
END_TEST

int main(void)
{
    if (!card_is_emulated(&card)) {
        (void)fprintf(stderr, "skipped: libcuda.so.1 is not the emulated card\n");
        return ALL_DONE;
    }
    Suite *suite = suite_create("cuda fusions");
    TCase *tests = tcase_create("a transformer's step");
    suite_add_tcase(suite, tests);
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, what_rides_on_products_changes_no_loss, 0,
                        (HEADROOM_SANITIZED ? 1 : 2) * WAYS);
    tcase_add_loop_test(tests, what_normalisations_take_with_them_changes_no_bit, 0, EXACT);
    tcase_add_loop_test(tests, masks_that_updates_apply_change_no_bit, 0, UPDATES);
    tcase_add_loop_test(tests, every_run_is_the_same, 0, 2);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
