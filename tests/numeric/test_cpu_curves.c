// SPDX-License-Identifier: Apache-2.0
// Training through the engine against PyTorch's (make_curves.py says how): the same losses from the same start, and from
// starts of one's own 200 steps of them within the band that five PyTorch seeds leave.
#include <check.h>
#include <math.h>
#include <stdio.h>

#include "headroom/engine.h"

#include "numeric/fixture.h"

enum { STEPS_MAX = 200, STARTS = 20, CURVES = 3, PAIRS_MAX = 8 };

// Without optimisation, or watched by a sanitizer, two blocks of ten steps are what there is time for.
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { FEW_BLOCKS = 2 };
#else
enum { FEW_BLOCKS = 0 };
#endif

typedef struct losses {
    double value[STEPS_MAX];
    int count;
} losses;

static void take(void *context, const hr_event *event)
{
    losses *l = context;
    if (event->kind == HR_EVENT_STEP) {
        ck_assert_int_lt(l->count, STEPS_MAX);
        l->value[l->count++] = event->u.step.loss;
    }
}

// Trains `model` on the samples in file order, `pairs` and the seed on top of what its file says.
static losses train(const char *model, int seed, int steps, const char *const *pairs)
{
    char path[128];
    char seed_pair[32];
    losses out = {.count = 0};
    hr_err err = {0};
    hr_preset *preset = NULL;
    hr_engine *e = NULL;
    bool idle = false;
    (void)snprintf(path, sizeof path, "presets/models/%s.yaml", model);
    (void)snprintf(seed_pair, sizeof seed_pair, "train.seed=%d", seed);
    ck_assert_msg(hr_preset_open(path, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    hr_knobs knobs = *hr_preset_knobs(preset);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "pipeline.shuffle=0", &err), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, seed_pair, &err), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "threads.count=1", &err), HR_OK);
    for (; *pairs != NULL; pairs++) {
        ck_assert_msg(hr_knobs_set_pair(&knobs, *pairs, &err) == HR_OK, "%s", err.sentence);
    }
    const hr_engine_options options = {.sink = take, .sink_context = &out};
    const hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = (uint64_t)steps};
    ck_assert_msg(hr_engine_create(preset, &knobs, &options, &e, &err) == HR_OK, "%s", err.sentence);
    ck_assert_int_eq(hr_engine_command(e, &run, NULL), HR_OK);
    while (!idle) {
        hr_engine_advance(e, &idle);
    }
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    ck_assert_int_eq(out.count, steps);
    hr_engine_destroy(e);
    hr_preset_close(preset);
    return out;
}

typedef struct subject {
    json_t *file;
    const json_t *curve;
    const char *model;
    int steps, block, runs; // of the whole file
} subject;

static int integer_of(const json_t *object, const char *key)
{
    ck_assert_msg(json_is_integer(json_object_get(object, key)), "no number called %s", key);
    return (int)json_integer_value(json_object_get(object, key));
}

static subject subject_open(int index)
{
    subject s = {.file = fixture_open("curves.json")};
    s.curve = json_array_get(json_object_get(s.file, "curves"), (size_t)index);
    s.model = json_string_value(json_object_get(s.curve, "model"));
    s.steps = integer_of(s.file, "steps");
    s.block = integer_of(s.file, "block");
    s.runs = integer_of(s.file, "our_runs");
    ck_assert(s.model != NULL && s.steps == STEPS_MAX);
    return s;
}

static double number_at(const json_t *object, const char *key, size_t index)
{
    const json_t *number = json_array_get(json_object_get(object, key), index);
    ck_assert_msg(json_is_number(number), "%s has no number %u", key, (unsigned)index);
    return json_number_value(number);
}

// ---- from the same start --------------------------------------------------------------------------------------

// Dropout included, rounding is all that may differ, and float64 leaves little of it even where an update multiplies it,
// as in the model whose float32 parts. As long as PyTorch's float64 agrees with itself: float64_steps.
// PyTorch was given float32 images, made wide.
START_TEST(in_float64_every_loss_is_pytorchs)
{
    const char *const pairs[] = {"device.kind=reference", "precision.policy=float64",
                                 "pipeline.transfer=float32", NULL};
    subject s = subject_open(_i);
    const json_t *start = json_object_get(s.curve, "same_start");
    const int told = integer_of(start, "float64_steps");
    const int steps = FEW_BLOCKS > 0 ? STARTS / 4 : told;
    ck_assert(told > STARTS / 2 && told <= STARTS);
    const double tolerance = integer_of(start, "float32_steps") < STARTS ? 1e-6 : 1e-9;
    const losses ours = train(s.model, integer_of(start, "seed"), steps, pairs);
    for (int k = 0; k < steps; k++) {
        const double theirs = number_at(start, "float64", (size_t)k);
        const double distance = fabs(ours.value[k] / theirs - 1);
        ck_assert_msg(distance <= tolerance, "%s, step %d: %.12g is %.2g from PyTorch's %.12g", s.model,
                      k + 1, ours.value[k], distance, theirs);
    }
    json_decref(s.file);
}
END_TEST

// As long as PyTorch's float32 agrees with its own float64, ours agrees with it: float32_steps.
START_TEST(in_float32_every_loss_is_pytorchs)
{
    subject s = subject_open(_i);
    const json_t *start = json_object_get(s.curve, "same_start");
    const int steps = integer_of(start, "float32_steps");
    ck_assert(steps >= 2 && steps <= STARTS);
    const losses ours = train(s.model, integer_of(start, "seed"), steps, (const char *[]){NULL});
    for (int k = 0; k < steps; k++) {
        const double theirs = number_at(start, "float32", (size_t)k);
        const double distance = fabs(ours.value[k] / theirs - 1);
        ck_assert_msg(distance <= 1e-3, "%s, step %d: %.9g is %.2g from PyTorch's %.9g", s.model, k + 1,
                      ours.value[k], distance, theirs);
    }
    json_decref(s.file);
}
END_TEST

// ---- from starts of one's own ---------------------------------------------------------------------------------

typedef struct means {
    double value[STEPS_MAX];
    int count; // of blocks
} means;

// The mean of `runs` runs, block by block.
static means train_in_blocks(const subject *s, int runs, int steps, const char *const *pairs)
{
    means out = {.count = steps / s->block};
    for (int seed = 1; seed <= runs; seed++) {
        const losses ours = train(s->model, seed, steps, pairs);
        for (int k = 0; k < out.count * s->block; k++) {
            out.value[k / s->block] += ours.value[k] / s->block / runs;
        }
    }
    return out;
}

static bool is_within(const subject *s, const means *ours, int block)
{
    const json_t *pair = json_array_get(json_object_get(s->curve, "band"), (size_t)block);
    const double low = json_number_value(json_array_get(pair, 0));
    const double high = json_number_value(json_array_get(pair, 1));
    ck_assert(low < high);
    return ours->value[block] >= low && ours->value[block] <= high;
}

START_TEST(losses_lie_within_the_spread_of_five_pytorch_seeds)
{
    subject s = subject_open(_i);
    const int steps = FEW_BLOCKS > 0 ? FEW_BLOCKS * s.block : s.steps;
    const means ours = train_in_blocks(&s, s.runs, steps, (const char *[]){NULL});
    ck_assert_int_eq(ours.count, FEW_BLOCKS > 0 ? FEW_BLOCKS : 20);
    for (int block = 0; block < ours.count; block++) {
        ck_assert_msg(is_within(&s, &ours, block), "%s, steps %d to %d: the mean loss %g lies outside",
                      s.model, block * s.block + 1, (block + 1) * s.block, ours.value[block]);
    }
    json_decref(s.file);
}
END_TEST

// What the band can tell apart: training that is a little other than PyTorch's.
static const struct {
    int curve;
    const char *pair;
} others[] = {
    {0, "optimizer.learning_rate=0"},   {1, "optimizer.learning_rate=5e-4"}, {1, "optimizer.kind=sgd"},
    {2, "optimizer.learning_rate=0.7"}, {2, "optimizer.learning_rate=1.4"},
};

START_TEST(another_training_leaves_the_band)
{
    subject s = subject_open(others[_i].curve);
    const means ours = train_in_blocks(&s, 1, s.steps, (const char *[]){others[_i].pair, NULL});
    int outside = 0;
    for (int block = 0; block < ours.count; block++) {
        outside += !is_within(&s, &ours, block);
    }
    ck_assert_msg(outside > 0, "%s with %s stays within", s.model, others[_i].pair);
    json_decref(s.file);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cpu_curves");
    TCase *all = tcase_create("PyTorch's training");
    tcase_set_timeout(all, 240);
    tcase_add_loop_test(all, in_float64_every_loss_is_pytorchs, 0, CURVES);
    tcase_add_loop_test(all, in_float32_every_loss_is_pytorchs, 0, CURVES);
    if (!HEADROOM_SANITIZED)
        tcase_add_loop_test(all, losses_lie_within_the_spread_of_five_pytorch_seeds, 0, CURVES);
    if (FEW_BLOCKS == 0) {
        tcase_add_loop_test(all, another_training_leaves_the_band, 0,
                            (int)(sizeof others / sizeof others[0]));
    }
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
