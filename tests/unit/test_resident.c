// SPDX-License-Identifier: Apache-2.0
// pipeline.resident: one batch stays on the device. A step is then what it is over a data set of that batch alone, bit for
// bit and byte for byte, but that nothing is copied: with rounds, evaluations, rebuilds, saves and resumes.
#include "headroom/preset.h"

#include "unit/small_engine.h"

enum { BATCH = 8, PAIRS_MAX = 12, STEPS = 6 };

static char one_batch[160], many[160];

// The first of the many are those of the one batch.
static void open_all(void)
{
    char other[200];
    open_preset();
    (void)write_images(40, 9, many);
    (void)snprintf(other, sizeof other, "mkdir %s/one", folder);
    ck_assert_int_eq(system(other), 0);
    (void)snprintf(other, sizeof other,
                   "head -c %d %s/data_batch_1.bin > %s/one/data_batch_1.bin && cp %s/test_batch.bin %s/one",
                   BATCH * 3073, folder, folder, folder, folder);
    ck_assert_int_eq(system(other), 0);
    (void)snprintf(one_batch, sizeof one_batch, "pipeline.path=%s/one", folder);
}

static hr_engine *open_engine(const char *resident, const char *const *pairs,
                              const hr_engine_options *options)
{
    const char *all[PAIRS_MAX] = {
        strcmp(resident, "on") == 0 ? many : one_batch, "threads.count=1", "pipeline.shuffle=0",
        strcmp(resident, "on") == 0 ? "pipeline.resident=on" : "pipeline.resident=off"};
    for (size_t k = 4; *pairs != NULL; k++) {
        ck_assert_uint_lt(k, PAIRS_MAX - 1);
        all[k] = *pairs++;
    }
    return create(all, options);
}

static void run_well(hr_engine *e, uint64_t steps)
{
    run_steps(e, steps);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
}

// ---- what is learned ----------------------------------------------------------------------------------------------

static const char *const ways[][4] = {
    {"execution.mode=eager"},
    {"execution.mode=graph", "checkpoint.strategy=every:2"},
    {"execution.mode=graph", "batch.accumulate=2", "batch.remainder=pad"}, // by the batch itself
    {"execution.mode=eager", "device.kind=cpu", "precision.policy=mixed_bfloat16"},
    {"execution.mode=graph", "device.kind=cpu", "precision.policy=mixed_bfloat16", "allocator.kind=static"},
    {"execution.mode=eager", "offload.activations=on"},
};
enum { WAYS = sizeof ways / sizeof *ways };

START_TEST(it_is_training_on_that_batch_alone)
{
    char sha[2][HR_SHA256_TEXT_MAX];
    const char *pairs[5] = {NULL};
    memcpy(pairs, ways[_i], sizeof ways[0]);
    for (int resident = 0; resident < 2; resident++) {
        hr_engine *e = open_engine(resident ? "on" : "off", pairs, NULL);
        run_well(e, STEPS);
        weights_of(e, sha[resident]);
        hr_engine_destroy(e);
    }
    ck_assert_str_eq(sha[0], sha[1]);
}
END_TEST

// ---- what it holds ------------------------------------------------------------------------------------------------

START_TEST(it_holds_what_any_step_holds_and_copies_nothing)
{
    const char *pairs[5] = {NULL};
    memcpy(pairs, ways[_i], sizeof ways[0]);
    hr_report r[3]; // copied, resident, resident and planned
    for (int k = 0; k < 3; k++) {
        const hr_engine_options options = {.plan_only = k == 2};
        hr_engine *e = open_engine(k > 0 ? "on" : "off", pairs, &options);
        run_well(e, 3);
        r[k] = report_of(e);
        hr_engine_destroy(e);
        ck_assert_uint_eq(r[k].memory.peak_in_use_bytes, r[0].memory.peak_in_use_bytes);
        ck_assert_uint_eq(r[k].memory.saved_for_backward_bytes, r[0].memory.saved_for_backward_bytes);
        ck_assert_int_eq(r[k].resident, k > 0);
    }
    ck_assert_uint_gt(r[0].h2d_bytes_per_step, r[1].h2d_bytes_per_step);
    ck_assert_uint_eq(r[1].h2d_bytes_per_step, r[2].h2d_bytes_per_step);
    ck_assert(_i == WAYS - 1 || r[1].h2d_bytes_per_step == 0); // fetches are copies too
    ck_assert_uint_lt(r[1].step.instructions, r[0].step.instructions);
    ck_assert_str_eq(r[0].train.data, "CIFAR-10 (one)");
    ck_assert_ptr_eq(strstr(r[1].train.data, "one batch of CIFAR-10 ("), r[1].train.data);
    for (int k = 0; k < 3; k++) {
        hr_report_deinit(&r[k]);
    }
}
END_TEST

// ---- where it stands ----------------------------------------------------------------------------------------------

// 40 images are five batches: epochs would end and be evaluated.
static void count_ends(void *context, const hr_event *event)
{
    *(uint64_t *)context += event->kind == HR_EVENT_EPOCH || event->kind == HR_EVENT_EVAL;
}

START_TEST(epochs_do_not_end)
{
    uint64_t ends = 0;
    const hr_engine_options options = {.sink = count_ends, .sink_context = &ends};
    hr_engine *e = open_engine("on", (const char *const[]){NULL}, &options);
    run_well(e, 12);
    ck_assert_uint_eq(ends, 0);
    ck_assert_int_eq(turn(e, HR_KNOB_PIPELINE_RESIDENT, "off"), HR_OK);
    run_well(e, 6); // from where the epoch stood, which is its beginning
    ck_assert_uint_eq(ends, 2);
    hr_engine_destroy(e);
}
END_TEST

// As a save in its last step finds it: the epoch's end is not taken yet.
static hr_engine *stopped_behind(uint64_t steps, const char *const *pairs)
{
    hr_engine *e = create(pairs, NULL);
    const hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = steps + 9};
    ck_assert_int_eq(hr_engine_command(e, &run, NULL), HR_OK);
    for (bool idle = false; hr_engine_steps(e) < steps && !idle;) {
        hr_engine_advance(e, &idle);
    }
    ck_assert_uint_eq(hr_engine_steps(e), steps);
    return e;
}

static void save_to(hr_engine *e, const char *path)
{
    hr_command save = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_SAVE};
    (void)snprintf(save.text, sizeof save.text, "%s", path);
    ck_assert_int_eq(hr_engine_command(e, &save, NULL), HR_OK);
}

START_TEST(an_end_that_was_not_taken_does_not_keep_it_going)
{
    char path[128], resume[160];
    (void)snprintf(resume, sizeof resume, "train.resume=%s", file_in("end.safetensors", path));
    hr_engine *e = stopped_behind(5, (const char *const[]){many, "threads.count=1", NULL});
    save_to(e, path);
    hr_engine_destroy(e);
    e = create(
        (const char *const[]){many, "threads.count=1", "pipeline.resident=on", resume, "train.steps=8", NULL},
        NULL);
    run_well(e, 0);
    ck_assert_uint_eq(hr_engine_steps(e), 8);
    hr_engine_destroy(e);
}
END_TEST

// Three updates of 16 are 48 samples of 40: what was taken of the next epoch is given up with repeat.
START_TEST(repeat_can_be_left_behind_an_epochs_last_sample)
{
    static const char repeats[] = "pipeline.stages=cache,shuffle,repeat,map,batch,prefetch";
    char path[128], resume[160];
    uint64_t ends = 0;
    (void)snprintf(resume, sizeof resume, "train.resume=%s", file_in("filled.safetensors", path));
    hr_engine *e =
        stopped_behind(3, (const char *const[]){many, "threads.count=1", "batch.size=16", repeats, NULL});
    save_to(e, path);
    ck_assert_int_eq(turn(e, HR_KNOB_PIPELINE_STAGES, "cache,shuffle,map,batch,prefetch"), HR_OK);
    run_well(e, 2);
    hr_engine_destroy(e);
    const hr_engine_options options = {.sink = count_ends, .sink_context = &ends};
    e = create((const char *const[]){many, "threads.count=1", "batch.size=16", repeats, resume,
                                     "train.steps=5", NULL},
               &options);
    run_well(e, 0);
    ck_assert_uint_eq(ends, 4); // at 48 and at 80 samples, each with its evaluation
    hr_engine_destroy(e);
    e = create((const char *const[]){many, "threads.count=1", "batch.size=16", resume, "train.steps=5", NULL},
               NULL);
    run_steps(e, 0);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_FAILED);
    ck_assert_ptr_nonnull(
        strstr(hr_engine_error(e)->sentence, "needed a position of at most 40 samples, had 48"));
    ck_assert_ptr_nonnull(strstr(hr_engine_error(e)->hint, "repeat where it stood in pipeline.stages"));
    hr_engine_destroy(e);
}
END_TEST

// Turned on in the middle of an epoch, or at its end: the batch is that epoch's first, and going on from a save is going
// on.
START_TEST(a_resumed_training_has_the_same_batch)
{
    char path[128], resume[160], whole[HR_SHA256_TEXT_MAX], sha[HR_SHA256_TEXT_MAX];
    (void)snprintf(resume, sizeof resume, "train.resume=%s", file_in("half.safetensors", path));
    hr_engine *e = create((const char *[]){many, "threads.count=1", "pipeline.shuffle=16", NULL}, NULL);
    run_well(e, 7 - (uint64_t)_i);
    ck_assert_int_eq(turn(e, HR_KNOB_PIPELINE_RESIDENT, "on"), HR_OK);
    run_well(e, 2);
    save_to(e, path);
    run_well(e, 12 - hr_engine_steps(e));
    weights_of(e, whole);
    hr_engine_destroy(e);

    e = create((const char *[]){many, "threads.count=1", "pipeline.shuffle=16", "pipeline.resident=on",
                                resume, "train.steps=12", NULL},
               NULL);
    run_well(e, 0);
    ck_assert_uint_eq(hr_engine_steps(e), 12);
    weights_of(e, sha);
    ck_assert_str_eq(sha, whole);
    hr_engine_destroy(e);
}
END_TEST

// ---- what it needs ------------------------------------------------------------------------------------------------

START_TEST(a_set_without_a_whole_batch_is_refused)
{
    hr_engine *e = create(
        (const char *[]){one_batch, "batch.size=12", "batch.remainder=keep", "pipeline.resident=on", NULL},
        NULL);
    run_steps(e, 1);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_FAILED);
    ck_assert_str_eq(hr_engine_error(e)->sentence, "pipeline.resident: needed a batch of 12 samples, had 8");
    ck_assert_str_eq(hr_engine_error(e)->hint, "-s batch.size=8, or -s pipeline.resident=off");
    ck_assert_int_eq(turn(e, HR_KNOB_BATCH_SIZE, "8"), HR_OK);
    run_well(e, 2);
    hr_engine_destroy(e);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("resident");
    TCase *cases = tcase_create("resident");
    tcase_add_checked_fixture(cases, open_all, close_preset);
    tcase_add_loop_test(cases, it_is_training_on_that_batch_alone, 0, WAYS);
    tcase_add_loop_test(cases, it_holds_what_any_step_holds_and_copies_nothing, 0, WAYS);
    tcase_add_test(cases, epochs_do_not_end);
    tcase_add_test(cases, an_end_that_was_not_taken_does_not_keep_it_going);
    tcase_add_test(cases, repeat_can_be_left_behind_an_epochs_last_sample);
    tcase_add_loop_test(cases, a_resumed_training_has_the_same_batch, 0, 4);
    tcase_add_test(cases, a_set_without_a_whole_batch_is_refused);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
