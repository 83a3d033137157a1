// SPDX-License-Identifier: Apache-2.0
// One whole training step of ResNet-18 on the cpu device in float32. Judged by PyTorch's float64 step: for every
// gradient, our distance to it is at most twice that of PyTorch's own float32 step over the same NHWC images (median
// of five seeds); logits and loss are within 1e-5.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numeric/fixture.h"
#include "numeric/op_harness.h"
#include "numeric/step_harness.h"

// Another file that includes this one may say which device is tested.
#ifndef TEST_DEVICE
#define TEST_DEVICE "cpu"
#endif

enum { SEEDS = 5 };

static const double output_tolerance = 1e-5;
static const double allowed_ratio = 2.0;

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct runs {
    json_t *fixture[SEEDS];
    step_result ours[SEEDS];
} runs;

static void run_all(runs *r)
{
    const char *const knobs[] = {"device.kind=" TEST_DEVICE, "execution.mode=graph", "threads.count=1", NULL};
    char name[64];
    for (int seed = 0; seed < SEEDS; seed++) {
        (void)snprintf(name, sizeof name, "resnet18_cifar_%d.json", seed + 1);
        r->fixture[seed] = fixture_open(name);
        r->ours[seed] = step_run(r->fixture[seed], test_device(TEST_DEVICE), knobs);
    }
}

static void release_all(runs *r)
{
    for (int seed = 0; seed < SEEDS; seed++) {
        json_decref(r->fixture[seed]);
        step_result_deinit(&r->ours[seed]);
    }
}

static double our_distance(const runs *r, int seed, const char *name)
{
    const json_t *stored = json_object_get(json_object_get(r->fixture[seed], "tensors"), name);
    const step_value *v = step_find(&r->ours[seed], name);
    ck_assert_msg(stored != NULL && v != NULL, "seed %d has no tensor %s", seed + 1, name);
    return fixture_entries_distance(stored, v->values, v->count);
}

static double their_distance(const runs *r, int seed, const char *name)
{
    const json_t *stored = json_object_get(json_object_get(r->fixture[seed], "tensors"), name);
    return json_real_value(json_object_get(json_object_get(stored, "float32_distance"), "channels_last"));
}

static bool is_gradient(const char *name)
{
    const char *suffix = strrchr(name, ':');
    return suffix != NULL && strcmp(suffix, ":grad") == 0;
}

static double median_ratio(const runs *r, const char *name)
{
    double ratio[SEEDS];
    for (int seed = 0; seed < SEEDS; seed++) {
        ratio[seed] = our_distance(r, seed, name) / their_distance(r, seed, name);
    }
    qsort(ratio, SEEDS, sizeof ratio[0], ascending);
    return ratio[SEEDS / 2];
}

START_TEST(float32_is_as_near_as_pytorchs)
{
    runs r;
    run_all(&r);
    for (int seed = 0; seed < SEEDS; seed++) {
        ck_assert_double_le(our_distance(&r, seed, "logits"), output_tolerance);
        ck_assert_double_le(our_distance(&r, seed, "loss"), output_tolerance);
    }
    const char *name;
    json_t *stored;
    json_object_foreach(json_object_get(r.fixture[0], "tensors"), name, stored)
    {
        const double ratio = is_gradient(name) ? median_ratio(&r, name) : 0.0;
        ck_assert_msg(ratio <= allowed_ratio, "%s is %.2f times as far as PyTorch's", name, ratio);
    }
    release_all(&r);
}
END_TEST

static const char *const small_models[] = {"separable_cnn.json", "mlp.json"};

START_TEST(small_models_give_pytorchs_logits_and_loss)
{
    const char *const knobs[] = {"device.kind=" TEST_DEVICE, "execution.mode=eager", "threads.count=2", NULL};
    json_t *fixture = fixture_open(small_models[_i]);
    const json_t *tensors = json_object_get(fixture, "tensors");
    step_result ours = step_run(fixture, test_device(TEST_DEVICE), knobs);
    const step_value *logits = step_find(&ours, "logits"), *loss = step_find(&ours, "loss");
    ck_assert(logits != NULL && loss != NULL);
    ck_assert_double_le(fixture_distance(json_object_get(tensors, "logits"), logits->values, logits->count),
                        output_tolerance);
    ck_assert_double_le(fixture_distance(json_object_get(tensors, "loss"), loss->values, loss->count),
                        output_tolerance);
    step_result_deinit(&ours);
    json_decref(fixture);
}
END_TEST

int main(void)
{
    if (!test_device_is_there(test_device(TEST_DEVICE))) {
        return TEST_SKIPPED;
    }
    Suite *suite = suite_create("cpu_step");
    TCase *all = tcase_create("PyTorch in float32");
    tcase_set_timeout(all, 120);
    tcase_add_test(all, float32_is_as_near_as_pytorchs);
    suite_add_tcase(suite, all);
    TCase *small = tcase_create("small models");
    tcase_set_timeout(small, 120);
    tcase_add_loop_test(small, small_models_give_pytorchs_logits_and_loss, 0,
                        (int)(sizeof small_models / sizeof small_models[0]));
    suite_add_tcase(suite, small);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
