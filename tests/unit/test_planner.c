// SPDX-License-Identifier: Apache-2.0
// What-if: several threads plan at once and say what one thread says; a plan leaves nothing behind.
#include <check.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/engine.h"
#include "headroom/preset.h"
#include "headroom/units.h"

#include "base/host_mem.h"
#include "program/target.h"

enum { THREADS = 4, ROUNDS = 3 };

static const char *const turns[][3] = {
    {"batch.size=4"},
    {"batch.size=9", "execution.mode=graph"},
    {"execution.mode=graph", "checkpoint.strategy=sqrt"},
    {"execution.mode=graph", "allocator.kind=static"},
    {"optimizer.kind=adam8bit"},
    {"batch.accumulate=3", "offload.activations=on"},
    {"device.vram=1MiB"},
};
enum { TURNS = sizeof turns / sizeof *turns };

static const char *const presets[] = {"resnet18_cifar_tiny", "gpt2_124m_tiny"};
#if HEADROOM_HAVE_ONEDNN
static const char *const devices[] = {"plan", "reference", "cpu"};
#else
static const char *const devices[] = {"plan", "reference"};
#endif
enum { DEVICES = sizeof devices / sizeof *devices, CASES = 2 * DEVICES };

static hr_planner *open_planner(const char *name, hr_knobs *knobs)
{
    hr_preset *preset = NULL;
    hr_planner *planner = NULL;
    hr_err err = {0};
    ck_assert_msg(hr_preset_open(name, false, &preset, NULL, &err) == HR_OK, "%s", err.sentence);
    ck_assert_msg(hr_planner_open(preset, &planner, &err) == HR_OK, "%s", err.sentence);
    *knobs = *hr_preset_knobs(preset);
    ck_assert_int_eq(hr_knobs_set_pair(knobs, "device.card=", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(knobs, "device.vram=1GiB", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(knobs, "threads.count=1", NULL), HR_OK);
    hr_preset_close(preset); // a planner does not need it
    return planner;
}

typedef struct job {
    const hr_planner *planner;
    hr_knobs knobs;
    hr_whatif answers[TURNS];
} job;

static void plan_all(job *j)
{
    for (int t = 0; t < TURNS; t++) {
        hr_knobs turned = j->knobs;
        hr_err err = {0};
        for (int k = 0; k < 3 && turns[t][k] != NULL; k++) {
            ck_assert_int_eq(hr_knobs_set_pair(&turned, turns[t][k], NULL), HR_OK);
        }
        ck_assert_msg(hr_planner_plan(j->planner, &turned, &j->answers[t], &err) == HR_OK, "%s",
                      err.sentence);
    }
}

static void *plan_on_a_thread(void *context)
{
    for (int round = 0; round < ROUNDS; round++) {
        plan_all(context);
    }
    return NULL;
}

static bool same(const hr_whatif *a, const hr_whatif *b)
{
    return a->fits == b->fits && a->limit_bytes == b->limit_bytes && a->static_bytes == b->static_bytes &&
           a->saved_for_backward_bytes == b->saved_for_backward_bytes &&
           a->peak_in_use_bytes == b->peak_in_use_bytes && a->missing_bytes == b->missing_bytes;
}

START_TEST(threads_say_what_one_thread_says)
{
    static job jobs[THREADS + 1];
    pthread_t threads[THREADS];
    char pair[64];
    hr_knobs knobs;
    hr_planner *planner = open_planner(presets[_i % 2], &knobs);
    snprintf(pair, sizeof pair, "device.kind=%s", devices[_i / 2]);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, pair, NULL), HR_OK);
    for (int k = 0; k <= THREADS; k++) {
        jobs[k] = (job){.planner = planner, .knobs = knobs};
    }
    target_forget(); // the threads ask, too
    for (int k = 0; k < THREADS; k++) {
        ck_assert_int_eq(pthread_create(&threads[k], NULL, plan_on_a_thread, &jobs[k]), 0);
    }
    for (int k = 0; k < THREADS; k++) {
        pthread_join(threads[k], NULL);
    }
    plan_all(&jobs[THREADS]);
    for (int k = 0; k < THREADS; k++) {
        for (int t = 0; t < TURNS; t++) {
            ck_assert_msg(same(&jobs[k].answers[t], &jobs[THREADS].answers[t]), "thread %d, %s", k,
                          turns[t][0]);
        }
    }
    ck_assert(!jobs[0].answers[TURNS - 1].fits && jobs[0].answers[TURNS - 1].missing_bytes > 0);
    hr_planner_close(planner);
}
END_TEST

START_TEST(a_plan_leaves_nothing_behind)
{
    job j = {0};
    j.planner = open_planner(presets[0], &j.knobs);
    ck_assert_int_eq(hr_knobs_set_pair(&j.knobs, "device.kind=plan", NULL), HR_OK);
    plan_all(&j);
    const int64_t live = hr_host_mem_live();
    for (int round = 0; round < ROUNDS; round++) {
        plan_all(&j);
        ck_assert_int_eq(hr_host_mem_live(), live);
    }
    hr_planner_close((hr_planner *)(uintptr_t)j.planner);
}
END_TEST

static bool fits_in(const hr_planner *planner, const hr_knobs *knobs, uint64_t bytes, hr_whatif *out)
{
    char text[HR_BYTES_TEXT_MAX];
    hr_err err = {0};
    ck_assert_msg(
        hr_planner_turn(planner, knobs, HR_KNOB_DEVICE_VRAM, hr_bytes_exact(bytes, text), out, &err) == HR_OK,
        "%s", err.sentence);
    return out->fits;
}

// What a plan names as enough is enough, and not much more than that.
START_TEST(what_is_missing_is_what_is_missing)
{
    static const char *const allocators[][3] = {
        {"allocator.kind=bfc"},
        {"allocator.kind=bfc", "allocator.growth=on"},
        {"allocator.kind=async"},
        {"allocator.kind=direct"},
        {"allocator.kind=static", "execution.mode=graph"},
    };
    hr_knobs knobs;
    hr_planner *planner = open_planner(presets[_i % 2], &knobs);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "device.kind=plan", NULL), HR_OK);
    for (int k = 0; k < 3 && allocators[_i / 2][k] != NULL; k++) {
        ck_assert_int_eq(hr_knobs_set_pair(&knobs, allocators[_i / 2][k], NULL), HR_OK);
    }
    hr_whatif w, enough, less;
    ck_assert(fits_in(planner, &knobs, UINT64_C(1) << 44, &w));
    for (uint64_t percent = 90; percent > 25; percent -= 25) {
        ck_assert(!fits_in(planner, &knobs, w.peak_in_use_bytes / 100 * percent, &less));
        ck_assert_uint_eq(less.peak_in_use_bytes, less.limit_bytes + less.missing_bytes);
        ck_assert(fits_in(planner, &knobs, less.peak_in_use_bytes, &enough));
        ck_assert(!fits_in(planner, &knobs, less.peak_in_use_bytes / 100 * 98, &enough));
    }
    hr_planner_close(planner);
}
END_TEST

// ---- the largest that fits ------------------------------------------------------------------------------------

// A walk over all values judges it: the allocators, limits and ways are drawn.
START_TEST(the_largest_batch_is_that_of_a_walk)
{
    static const char *const kinds[] = {"bfc", "caching", "async", "direct"},
                             *const limits[] = {"1MiB", "3MiB", "17MiB", "48MiB"},
                             *const begins[] = {"batch.size=1", "batch.size=5", "batch.size=400"};
    enum { WALK = 160 };
    hr_knobs knobs;
    hr_planner *planner = open_planner(presets[_i % 2], &knobs);
    char pair[64];
    (void)snprintf(pair, sizeof pair, "allocator.kind=%s", kinds[_i / 2 % 4]);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "device.kind=plan", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, pair, NULL), HR_OK);
    ck_assert_int_eq(
        hr_knobs_set_pair(&knobs, _i % 3 == 0 ? "execution.mode=graph" : "batch.accumulate=2", NULL), HR_OK);
    (void)snprintf(pair, sizeof pair, "device.vram=%s", limits[_i % 4]);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, pair, NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, begins[_i % 3], NULL), HR_OK);
    hr_largest found;
    hr_err err = {0};
    ck_assert_msg(hr_planner_largest(planner, &knobs, HR_KNOB_BATCH_SIZE, &found, &err) == HR_OK, "%s",
                  err.sentence);
    ck_assert_uint_le(found.plans, 24);
    ck_assert(found.plan.fits == (found.value > 0) && !found.is_last);
    uint64_t last = 0; // before the first that does not fit behind one that does
    bool is_one = false;
    for (uint64_t batch = 1; batch <= WALK; batch++) {
        hr_whatif plan;
        (void)snprintf(pair, sizeof pair, "%" PRIu64, batch);
        ck_assert_int_eq(hr_planner_turn(planner, &knobs, HR_KNOB_BATCH_SIZE, pair, &plan, NULL), HR_OK);
        is_one |= !plan.fits && last == found.value && last == batch - 1;
        last = plan.fits ? batch : last;
    }
    ck_assert_msg(is_one || found.value >= WALK, "%" PRIu64, found.value);
    hr_planner_close(planner);
}
END_TEST

START_TEST(without_a_limit_there_is_no_largest)
{
    hr_knobs knobs;
    hr_largest found;
    hr_planner *planner = open_planner(presets[0], &knobs);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "device.kind=plan", NULL), HR_OK);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "device.vram=", NULL), HR_OK);
    ck_assert_int_eq(hr_planner_largest(planner, &knobs, HR_KNOB_BATCH_SIZE, &found, NULL), HR_OK);
    ck_assert(found.is_last && found.plan.fits);
    ck_assert_uint_eq(found.plans, 1);
    ck_assert_int_eq(hr_knobs_set_pair(&knobs, "device.vram=1KiB", NULL), HR_OK);
    ck_assert_int_eq(hr_planner_largest(planner, &knobs, HR_KNOB_BATCH_SIZE, &found, NULL), HR_OK);
    ck_assert(found.value == 0 && !found.plan.fits);
    hr_planner_close(planner);
}
END_TEST

int main(void)
{
    char home[] = "/tmp/headroom-planner-XXXXXX";
    if (mkdtemp(home) == NULL) {
        return EXIT_FAILURE;
    }
    setenv("XDG_CACHE_HOME", home, 1);
    hr_preset_search_beside(".");
    Suite *suite = suite_create("planner");
    TCase *tests = tcase_create("planner");
    tcase_add_loop_test(tests, threads_say_what_one_thread_says, 0, CASES);
    tcase_add_test(tests, a_plan_leaves_nothing_behind);
    tcase_add_loop_test(tests, what_is_missing_is_what_is_missing, 0, HEADROOM_SANITIZED ? 3 : 10);
    tcase_add_loop_test(tests, the_largest_batch_is_that_of_a_walk, 0, HEADROOM_SANITIZED ? 4 : 24);
    tcase_add_test(tests, without_a_limit_there_is_no_largest);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", home);
    (void)!system(command);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
