// SPDX-License-Identifier: Apache-2.0
// pipeline.device_prefetch: batches are held ahead on the device, their bytes are counted, and training is the same bit for
// bit: over epochs and their last batches, rounds, evaluations, rebuilds, saves and steps that broke off.
#include "headroom/preset.h"

#include "base/host_mem.h"
#include "unit/small_engine.h"

enum { IMAGES = 27, HELD_OUT = 9, PAIRS_MAX = 12, STEPS = 11, DEPTHS = 3, LOG = 32 };

static const char *const depths[DEPTHS] = {"pipeline.device_prefetch=0", "pipeline.device_prefetch=1",
                                           "pipeline.device_prefetch=3"};

static char images[160];

static void open_all(void)
{
    open_preset();
    (void)write_images(IMAGES, HELD_OUT, images);
}

// What the stream told of a training.
typedef struct told {
    uint64_t epochs, evaluations;
    double losses[LOG], eval_losses[LOG];
    uint64_t samples[LOG];
    uint64_t steps;
} told;

static void listen(void *context, const hr_event *event)
{
    told *t = context;
    t->epochs += event->kind == HR_EVENT_EPOCH;
    if (event->kind == HR_EVENT_STEP) {
        ck_assert_uint_lt(t->steps, LOG);
        t->losses[t->steps] = event->u.step.loss;
        t->samples[t->steps++] = event->u.step.samples;
    } else if (event->kind == HR_EVENT_EVAL) {
        ck_assert_uint_lt(t->evaluations, LOG);
        t->eval_losses[t->evaluations++] = event->u.step.loss;
    }
}

static hr_engine *open_engine(const char *depth, const char *const *pairs, told *t)
{
    const char *all[PAIRS_MAX] = {images, "threads.count=1", depth};
    const hr_engine_options options = {.sink = listen, .sink_context = t};
    for (size_t k = 3; *pairs != NULL; k++) {
        ck_assert_uint_lt(k, PAIRS_MAX - 1);
        all[k] = *pairs++;
    }
    return create(all, t != NULL ? &options : NULL);
}

static void run_well(hr_engine *e, uint64_t steps)
{
    run_steps(e, steps);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
}

// ---- the same training ------------------------------------------------------------------------------------------

static const char *const ways[][5] = {
    {"device.kind=reference", "batch.remainder=keep"},
    {"device.kind=cpu", "batch.remainder=keep", "pipeline.prefetch=0"},
    {"device.kind=cpu", "batch.remainder=drop", "execution.mode=graph"},
    {"device.kind=cpu", "batch.remainder=pad", "precision.policy=bfloat16"},
    {"device.kind=cpu", "batch.remainder=pad", "batch.accumulate=2"},
    {"device.kind=reference", "batch.remainder=drop", "batch.accumulate=3", "precision.policy=float64"},
    {"device.kind=cpu", "batch.size=27"}, // an epoch is one batch
    {"device.kind=cpu", "batch.remainder=keep", "execution.tape=none", "allocator.kind=static",
     "execution.mode=graph"},
};
enum { WAYS = sizeof ways / sizeof *ways };

START_TEST(weights_and_losses_are_the_same_bit_for_bit)
{
    told t[DEPTHS] = {{0}};
    char sha[DEPTHS][HR_SHA256_TEXT_MAX];
    const char *pairs[6] = {NULL};
    memcpy(pairs, ways[_i], sizeof ways[_i]);
    for (int k = 0; k < DEPTHS; k++) {
        hr_engine *e = open_engine(depths[k], pairs, &t[k]);
        run_well(e, STEPS);
        weights_of(e, sha[k]);
        hr_engine_destroy(e);
        ck_assert_str_eq(sha[k], sha[0]);
        ck_assert_mem_eq(&t[k], &t[0], sizeof t[0]);
    }
    ck_assert_uint_eq(t[0].steps, STEPS);
    ck_assert_uint_gt(t[0].epochs, 1);
    ck_assert_uint_eq(t[0].epochs, t[0].evaluations);
}
END_TEST

// ---- its bytes --------------------------------------------------------------------------------------------------

static const char *const kinds[] = {"device.kind=plan", "device.kind=reference", "device.kind=cpu"};

START_TEST(every_batch_held_ahead_takes_its_bytes)
{
    const uint64_t batch_bytes = 8 * (32 * 32 * 3 * sizeof(float) + sizeof(int32_t));
    for (size_t n = 0; n < sizeof kinds / sizeof *kinds; n++) {
        for (int planned = 0; planned < 2; planned++) {
            for (uint64_t k = 0; k <= 3; k++) {
                char depth[48];
                (void)snprintf(depth, sizeof depth, "pipeline.device_prefetch=%llu", (unsigned long long)k);
                const hr_engine_options options = {.plan_only = planned == 1};
                hr_engine *e = create((const char *[]){kinds[n], depth, NULL}, &options);
                run_well(e, 3);
                hr_report r = report_of(e);
                ck_assert_uint_eq(r.memory.at_peak.by_category[HR_CATEGORY_INPUT], (k + 1) * batch_bytes);
                ck_assert_uint_eq(r.h2d_bytes_per_step, batch_bytes);
                hr_report_deinit(&r);
                hr_engine_destroy(e);
            }
        }
    }
}
END_TEST

START_TEST(the_plan_is_the_run)
{
    static const char *const modes[] = {"execution.mode=eager", "execution.mode=graph"};
    for (int k = 0; k < 2; k++) {
        const char *const pairs[] = {depths[2], modes[k], "batch.accumulate=3", "device.kind=cpu", NULL};
        const hr_engine_options plan = {.plan_only = true};
        hr_engine *planned = create(pairs, &plan), *ran = create(pairs, NULL);
        run_well(planned, 5);
        run_well(ran, 5);
        hr_report a = report_of(planned), b = report_of(ran);
        ck_assert_uint_eq(a.memory.peak_in_use_bytes, b.memory.peak_in_use_bytes);
        ck_assert_uint_eq(a.memory.peak_requested_bytes, b.memory.peak_requested_bytes);
        ck_assert_uint_eq(a.memory.heap_hash, b.memory.heap_hash);
        ck_assert_uint_eq(a.memory.at_peak.instruction, b.memory.at_peak.instruction);
        hr_report_deinit(&a);
        hr_report_deinit(&b);
        hr_engine_destroy(planned);
        hr_engine_destroy(ran);
    }
}
END_TEST

static hr_report plan_on_a_card(const char *depth)
{
    hr_engine *e = create((const char *[]){"device.kind=plan", "device.card=rtx3070-8g", "device.vram=256MiB",
                                           "batch.size=2048", depth, NULL},
                          NULL);
    run_well(e, 3);
    hr_report r = report_of(e);
    hr_engine_destroy(e);
    return r;
}

// The copy goes beside the step: with one batch ahead it is off the step's time, and each further one costs moving up on the
// card alone.
START_TEST(the_copy_hides_behind_the_step)
{
    hr_report r[DEPTHS];
    for (int k = 0; k < DEPTHS; k++) {
        r[k] = plan_on_a_card(depths[k]);
    }
    const double link_seconds = (double)r[0].h2d_bytes_per_step / 32e9;
    ck_assert_double_lt(r[1].step.seconds, r[0].step.seconds);
    ck_assert_double_gt(r[0].step.seconds - r[1].step.seconds, 0.5 * link_seconds);
    ck_assert_double_ge(r[2].step.seconds, r[1].step.seconds);
    ck_assert_double_lt(r[2].step.seconds - r[1].step.seconds, 0.5 * link_seconds);
    for (int k = 0; k < DEPTHS; k++) {
        hr_report_deinit(&r[k]);
    }
}
END_TEST

// ---- what breaks in on it ---------------------------------------------------------------------------------------

// Saves after `_i` steps with one depth, goes on with another.
START_TEST(a_save_knows_nothing_of_what_was_copied_ahead)
{
    char path[128], save[160], resume[160], whole[HR_SHA256_TEXT_MAX], sha[HR_SHA256_TEXT_MAX];
    (void)snprintf(save, sizeof save, "train.save=%s", file_in("half.safetensors", path));
    (void)snprintf(resume, sizeof resume, "train.resume=%s", path);
    hr_engine *e = open_engine(depths[0], (const char *[]){"batch.remainder=keep", NULL}, NULL);
    run_well(e, STEPS);
    weights_of(e, whole);
    hr_engine_destroy(e);
    e = open_engine(depths[2], (const char *[]){"batch.remainder=keep", save, NULL}, NULL);
    run_well(e, (uint64_t)_i);
    hr_engine_destroy(e);
    e = open_engine(depths[1], (const char *[]){"batch.remainder=keep", resume, "train.steps=11", NULL},
                    NULL);
    run_well(e, 0);
    ck_assert_uint_eq(hr_engine_steps(e), STEPS);
    weights_of(e, sha);
    hr_engine_destroy(e);
    ck_assert_str_eq(sha, whole);
}
END_TEST

static void train_while_knobs_turn(const char *depth, const char *later, told *t,
                                   char sha[HR_SHA256_TEXT_MAX])
{
    hr_engine *e = open_engine(depth, (const char *[]){"batch.remainder=keep", NULL}, t);
    run_well(e, 2);
    ck_assert_int_eq(turn(e, HR_KNOB_BATCH_SIZE, "5"), HR_OK);
    run_well(e, 2);
    ck_assert_int_eq(turn(e, HR_KNOB_ALLOCATOR_KIND, "direct"), HR_OK);
    run_well(e, 3);
    ck_assert_int_eq(turn(e, HR_KNOB_PIPELINE_DEVICE_PREFETCH, later), HR_OK);
    run_well(e, 4);
    weights_of(e, sha);
    hr_engine_destroy(e);
}

START_TEST(a_rebuild_goes_on_with_the_batch_that_was_next)
{
    told t[DEPTHS] = {{0}};
    char sha[DEPTHS][HR_SHA256_TEXT_MAX];
    static const char *const later[DEPTHS] = {"0", "2", "0"};
    for (int k = 0; k < DEPTHS; k++) {
        train_while_knobs_turn(depths[k], later[k], &t[k], sha[k]);
        ck_assert_str_eq(sha[k], sha[0]);
        ck_assert_mem_eq(t[k].samples, t[0].samples, sizeof t[0].samples);
    }
}
END_TEST

// The heap of a fresh build has no room for the chunks of its first step; the batches ahead ask for none.
static void break_a_step(hr_engine *e)
{
    const hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = 5};
    bool idle = false;
    ck_assert_int_eq(turn(e, HR_KNOB_ALLOCATOR_GROWTH, "on"), HR_OK);
    ck_assert_int_eq(hr_engine_command(e, &run, NULL), HR_OK);
    hr_engine_advance(e, &idle); // the build
    (void)hr_host_mem_fail_at(1);
    hr_engine_advance(e, &idle);
    (void)hr_host_mem_fail_at(0);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_FAILED);
    ck_assert_ptr_nonnull(strstr(hr_engine_error(e)->sentence, "allocator"));
}

START_TEST(a_broken_step_returns_to_the_batch_of_its_save)
{
    char path[128], save[160], whole[HR_SHA256_TEXT_MAX], sha[HR_SHA256_TEXT_MAX];
    (void)snprintf(save, sizeof save, "train.save=%s", file_in("a.safetensors", path));
    hr_engine *e = open_engine(depths[0], (const char *[]){NULL}, NULL);
    run_well(e, 6);
    weights_of(e, whole);
    hr_engine_destroy(e);
    e = open_engine(depths[2], (const char *[]){save, NULL}, NULL);
    run_well(e, 4);
    break_a_step(e);
    run_well(e, 2);
    ck_assert_uint_eq(hr_engine_steps(e), 6);
    weights_of(e, sha);
    hr_engine_destroy(e);
    ck_assert_str_eq(sha, whole);
}
END_TEST

// One step more of memory than there is: refused before anything is touched, with the remedy among what is tried.
START_TEST(what_does_not_fit_any_more_is_told_of_the_batches_ahead)
{
    hr_engine *e = create((const char *[]){"batch.size=64", NULL}, NULL);
    run_well(e, 1);
    hr_report r = report_of(e);
    const uint64_t batch_bytes = 64 * (32 * 32 * 3 * sizeof(float) + sizeof(int32_t));
    const uint64_t room_bytes = (UINT64_C(8) << 20) - r.memory.peak_in_use_bytes;
    char value[24];
    hr_report_deinit(&r);
    (void)snprintf(value, sizeof value, "%llu", (unsigned long long)(room_bytes / batch_bytes + 1));
    ck_assert_int_eq(turn(e, HR_KNOB_PIPELINE_DEVICE_PREFETCH, value), HR_OK);
    run_steps(e, 1);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_OOM);
    ck_assert_msg(strstr(hr_engine_error(e)->hint, "pipeline.device_prefetch=") != NULL, "%s",
                  hr_engine_error(e)->hint);
    ck_assert_int_eq(turn(e, HR_KNOB_PIPELINE_DEVICE_PREFETCH, "1"), HR_OK);
    run_well(e, 1);
    hr_engine_destroy(e);
}
END_TEST

int main(void)
{
    hr_preset_search_beside(".");
    Suite *suite = suite_create("device prefetch");
    TCase *cases = tcase_create("device prefetch");
    tcase_set_timeout(cases, 60);
    tcase_add_checked_fixture(cases, open_all, close_preset);
    tcase_add_loop_test(cases, weights_and_losses_are_the_same_bit_for_bit, 0, WAYS);
    tcase_add_test(cases, every_batch_held_ahead_takes_its_bytes);
    tcase_add_test(cases, the_plan_is_the_run);
    tcase_add_test(cases, the_copy_hides_behind_the_step);
    tcase_add_loop_test(cases, a_save_knows_nothing_of_what_was_copied_ahead, 1, 9);
    tcase_add_test(cases, a_rebuild_goes_on_with_the_batch_that_was_next);
    tcase_add_test(cases, a_broken_step_returns_to_the_batch_of_its_save);
    tcase_add_test(cases, what_does_not_fit_any_more_is_told_of_the_batches_ahead);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
