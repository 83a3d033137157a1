// SPDX-License-Identifier: Apache-2.0
// Accumulated gradients of whole models through the engine: b samples N times are b·N samples once, to 1e-6 of every
// tensor's largest gradient in float32. One step of plain descent with a large rate makes the weights themselves tell:
// they move by rate × gradient, beside which their own size and rounding vanish.
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "headroom/engine.h"

#include "train/engine_impl.h"

#define RATE 1000.0

static double value_of(const stored_tensor *t, uint64_t k)
{
    return t->dtype == HR_F64 ? ((const double *)t->data)[k] : (double)((const float *)t->data)[k];
}

// The weights after `steps` steps over the samples in file order. The caller deinits the store.
static store train(const char *model, const char *const *pairs, uint64_t steps)
{
    static const char *const common[] = {"pipeline.shuffle=0", "threads.count=1", "optimizer.kind=sgd",
                                         "optimizer.learning_rate=1000"};
    char path[128];
    store weights = {0};
    hr_err err = {0};
    hr_preset *preset = NULL;
    hr_engine *e = NULL;
    bool idle = false;
    (void)snprintf(path, sizeof path, "presets/models/%s.yaml", model);
    ck_assert_msg(hr_preset_open(path, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    hr_knobs knobs = *hr_preset_knobs(preset);
    for (size_t k = 0; k < sizeof common / sizeof common[0]; k++) {
        ck_assert_msg(hr_knobs_set_pair(&knobs, common[k], &err) == HR_OK, "%s", err.sentence);
    }
    for (; *pairs != NULL; pairs++) {
        ck_assert_msg(hr_knobs_set_pair(&knobs, *pairs, &err) == HR_OK, "%s", err.sentence);
    }
    if (steps == 0) { // a step that changes nothing, to have the weights in memory
        ck_assert_int_eq(hr_knobs_set_pair(&knobs, "optimizer.learning_rate=0", &err), HR_OK);
    }
    const hr_command run = {
        .version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = steps == 0 ? 1 : steps};
    ck_assert_msg(hr_engine_create(preset, &knobs, NULL, &e, &err) == HR_OK, "%s", err.sentence);
    ck_assert_int_eq(hr_engine_command(e, &run, NULL), HR_OK);
    while (!idle) {
        hr_engine_advance(e, &idle);
    }
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    ck_assert_msg(store_take(&weights, e->build, &err) == HR_OK, "%s", err.sentence);
    hr_engine_destroy(e);
    hr_preset_close(preset);
    return weights;
}

typedef struct comparison {
    double apart;   // largest |a - b| / RATE
    double largest; // |b - start| / RATE: of the gradient
} comparison;

static comparison compare(const stored_tensor *start, const store *a, const store *b)
{
    const stored_tensor *x = store_find(a, start->name), *y = store_find(b, start->name);
    comparison c = {0};
    uint64_t count = 0;
    ck_assert(x != NULL && y != NULL && shape_elements(&start->shape, &count));
    for (uint64_t k = 0; k < count; k++) {
        c.apart = fmax(c.apart, fabs(value_of(x, k) - value_of(y, k)) / RATE);
        c.largest = fmax(c.largest, fabs(value_of(y, k) - value_of(start, k)) / RATE);
    }
    return c;
}

static bool ends_with(const char *name, const char *suffix)
{
    const size_t length = strlen(name), tail = strlen(suffix);
    return length >= tail && strcmp(name + length - tail, suffix) == 0;
}

// What a key's bias adds to a row of scores, softmax takes out again: its gradient is rounding alone, and the size it is
// judged by is that of the bias beside it.
static double size_of(const stored_tensor *start, const store *all, const store *a, const store *b)
{
    char name[128];
    if (!ends_with(start->name, "/key_bias")) {
        return compare(start, a, b).largest;
    }
    (void)snprintf(name, sizeof name, "%.*s/value_bias", (int)(strchr(start->name, '/') - start->name),
                   start->name);
    const stored_tensor *beside = store_find(all, name);
    ck_assert_ptr_nonnull(beside);
    return compare(beside, a, b).largest;
}

static void require_equal(const char *model, const char *const *device, const char *const *parts,
                          double tolerance)
{
    const char *const whole[] = {device[0], device[1], "batch.size=8", NULL};
    const char *const rounds[] = {device[0], device[1], parts[0], parts[1], NULL};
    store start = train(model, whole, 0), large = train(model, whole, 1), small = train(model, rounds, 1);
    uint32_t compared = 0;
    for (uint32_t k = 0; k < start.tensors.count; k++) {
        const stored_tensor *t = &start.tensors.data[k];
        if (t->category != HR_CATEGORY_WEIGHTS) {
            continue;
        }
        const comparison c = compare(t, &small, &large);
        const double size = size_of(t, &start, &small, &large);
        ck_assert_msg(size > 0, "%s: %s has no gradient", model, t->name);
        ck_assert_msg(c.apart <= tolerance * size, "%s, %s %s: %s is %.2g of its maximum apart", model,
                      parts[0], parts[1], t->name, c.apart / size);
        compared++;
    }
    ck_assert_uint_ge(compared, 6);
    store_deinit(&start);
    store_deinit(&large);
    store_deinit(&small);
}

static const char *const models[] = {"mlp_tiny", "gpt2_124m_tiny"};
static const char *const splits[][2] = {{"batch.size=4", "batch.accumulate=2"},
                                        {"batch.size=2", "batch.accumulate=4"},
                                        {"batch.size=1", "batch.accumulate=8"}};
enum { MODELS = 2, SPLITS = 3 };

START_TEST(in_float32_rounds_are_the_large_batch_to_one_millionth)
{
    const char *const device[] = {"device.kind=cpu", "precision.policy=float32"};
    require_equal(models[_i / SPLITS], device, splits[_i % SPLITS], 1e-6);
}
END_TEST

START_TEST(in_float64_rounds_are_the_large_batch)
{
    const char *const device[] = {"device.kind=reference", "precision.policy=float64"};
    require_equal(models[_i / SPLITS], device, splits[_i % SPLITS], 1e-13);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cpu_accumulate");
    TCase *all = tcase_create("rounds");
    tcase_set_timeout(all, 120);
    tcase_add_loop_test(all, in_float32_rounds_are_the_large_batch_to_one_millionth, 0, MODELS * SPLITS);
    tcase_add_loop_test(all, in_float64_rounds_are_the_large_batch, 0, MODELS * SPLITS);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
