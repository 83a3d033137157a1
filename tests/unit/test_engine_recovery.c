// SPDX-License-Identifier: Apache-2.0
// What training goes on from after a step that broke off, after a save was read in the middle of a run, and after a
// knob that leaves nothing to compute: the last save of this training, never what a broken step left behind.
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "headroom/trace.h"

#include "base/host_mem.h"
#include "unit/small_engine.h"

static void command_file(hr_engine *e, hr_command_kind kind, const char *path, hr_status expected)
{
    hr_command c = {.version = HR_EVENT_VERSION, .kind = (uint16_t)kind};
    (void)snprintf(c.text, sizeof c.text, "%s", path);
    ck_assert_int_eq(hr_engine_command(e, &c, NULL), expected);
}

static void begin(hr_engine *e, uint64_t count)
{
    hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN, .count = count};
    ck_assert_int_eq(hr_engine_command(e, &run, NULL), HR_OK);
}

// Goes on until step `step` is done, and no further: nothing ends, nothing is saved.
static void run_to(hr_engine *e, uint64_t step)
{
    for (bool idle = false; hr_engine_steps(e) != step && !idle;) {
        hr_engine_advance(e, &idle);
    }
    ck_assert_uint_eq(hr_engine_steps(e), step);
}

// The heap's requests for its own chunks in the first step of a build: before anything was written that lasts, and when
// the batch normalisation has moved its statistics.
enum { EARLY = 1, LATE = 2 };

// Breaks a step off: the heap of a fresh build has no room for the chunks of its first step from the n-th on.
static void break_a_step_at(hr_engine *e, uint64_t nth)
{
    bool idle = false;
    bool grows = hr_knob_is(hr_engine_knobs(e), HR_KNOB_ALLOCATOR_GROWTH, "on");
    ck_assert_int_eq(turn(e, HR_KNOB_ALLOCATOR_GROWTH, grows ? "off" : "on"), HR_OK);
    begin(e, 5);
    hr_engine_advance(e, &idle); // the build
    ck_assert(!idle);
    (void)hr_host_mem_fail_at(nth);
    hr_engine_advance(e, &idle);
    (void)hr_host_mem_fail_at(0);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_FAILED);
    ck_assert_ptr_nonnull(strstr(hr_engine_error(e)->sentence, "allocator")); // within the step
}

static void break_a_step(hr_engine *e)
{
    break_a_step_at(e, LATE);
}

static void weights_after(uint64_t steps, char sha[HR_SHA256_TEXT_MAX])
{
    hr_engine *e = create((const char *[]){NULL}, NULL);
    run_steps(e, steps);
    weights_of(e, sha);
    hr_engine_destroy(e);
}

START_TEST(a_broken_step_returns_to_the_last_save)
{
    char path[128];
    char save[160];
    char whole[HR_SHA256_TEXT_MAX];
    char sha[HR_SHA256_TEXT_MAX];
    (void)snprintf(save, sizeof save, "train.save=%s", file_in("a.safetensors", path));
    weights_after(6, whole);
    hr_engine *e = create((const char *[]){save, NULL}, NULL);
    run_steps(e, 4); // saves at the end
    begin(e, 2);
    run_to(e, 5);
    break_a_step(e);
    run_steps(e, 1); // to step 6, from step 4 again
    ck_assert_uint_eq(hr_engine_steps(e), 6);
    weights_of(e, sha);
    ck_assert_str_eq(sha, whole);
    hr_engine_destroy(e);
}
END_TEST

// Not the save either is gone back to: there is none. Its batch comes once more.
START_TEST(a_step_that_broke_off_before_it_changed_anything_loses_nothing)
{
    char path[128];
    char resume[160];
    char whole[HR_SHA256_TEXT_MAX];
    char sha[HR_SHA256_TEXT_MAX];
    weights_after(6, whole);
    hr_engine *e = create((const char *[]){NULL}, NULL);
    run_steps(e, 5);
    break_a_step_at(e, EARLY);
    command_file(e, HR_COMMAND_SAVE, file_in("kept.safetensors", path), HR_OK);
    run_steps(e, 1);
    ck_assert_uint_eq(hr_engine_steps(e), 6);
    weights_of(e, sha);
    ck_assert_str_eq(sha, whole);
    hr_engine_destroy(e);
    (void)snprintf(resume, sizeof resume, "train.resume=%s", path);
    e = create((const char *[]){resume, "train.steps=6", NULL}, NULL);
    run_steps(e, 0);
    ck_assert_uint_eq(hr_engine_steps(e), 6);
    weights_of(e, sha);
    ck_assert_str_eq(sha, whole);
    hr_engine_destroy(e);
}
END_TEST

START_TEST(a_file_of_an_earlier_training_is_no_save_of_this_one)
{
    char path[128];
    char save[160];
    char whole[HR_SHA256_TEXT_MAX];
    char sha[HR_SHA256_TEXT_MAX];
    (void)snprintf(save, sizeof save, "train.save=%s", file_in("old.safetensors", path));
    weights_after(3, whole);
    hr_engine *e = create((const char *[]){save, NULL}, NULL);
    run_steps(e, 9);
    hr_engine_destroy(e);
    e = create((const char *[]){save, NULL}, NULL);
    break_a_step(e);
    run_steps(e, 3);
    ck_assert_uint_eq(hr_engine_steps(e), 3);
    weights_of(e, sha);
    ck_assert_str_eq(sha, whole);
    hr_engine_destroy(e);
}
END_TEST

START_TEST(what_a_broken_step_left_is_neither_saved_nor_reported)
{
    char path[128];
    char other[128];
    char save[160];
    char kept[HR_SHA256_TEXT_MAX];
    char sha[HR_SHA256_TEXT_MAX];
    char resume[160];
    (void)snprintf(save, sizeof save, "train.save=%s", file_in("a.safetensors", path));
    (void)snprintf(resume, sizeof resume, "train.resume=%s", path);
    hr_engine *e = create((const char *[]){save, NULL}, NULL);
    run_steps(e, 2);
    weights_of(e, kept);
    break_a_step(e);
    hr_report r = report_of(e);
    ck_assert_str_eq(r.train.weights_sha256, "");
    hr_report_deinit(&r);
    command_file(e, HR_COMMAND_SAVE, file_in("b.safetensors", other), HR_STATE);
    ck_assert_int_ne(access(other, F_OK), 0);
    command_file(e, HR_COMMAND_STOP, "", HR_OK); // as quitting does: the good save stays
    hr_engine_destroy(e);
    e = create((const char *[]){resume, "train.steps=2", NULL}, NULL);
    run_steps(e, 0);
    ck_assert_uint_eq(hr_engine_steps(e), 2);
    weights_of(e, sha);
    ck_assert_str_eq(sha, kept);
    hr_engine_destroy(e);
}
END_TEST

// With `keep` and a batch size that changed, the last batch of the epoch is another one after the return.
START_TEST(a_return_to_a_save_finds_the_batches_of_its_position)
{
    char path[128];
    char save[160];
    char data[160];
    (void)snprintf(save, sizeof save, "train.save=%s", file_in("a.safetensors", path));
    hr_engine *e =
        create((const char *[]){save, write_images(100, 7, data), "batch.remainder=keep", NULL}, NULL);
    run_steps(e, 5); // 40 images
    ck_assert_int_eq(turn(e, HR_KNOB_BATCH_SIZE, "7"), HR_OK);
    begin(e, 100);
    run_to(e, 7); // 54 images: 1 of 9 would be left after 5 steps, and 6 of 9 are from 40 on
    ck_assert_int_eq(turn(e, HR_KNOB_BATCH_SIZE, "9"), HR_OK);
    break_a_step(e);
    run_steps(e, 12);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    ck_assert_uint_eq(hr_engine_steps(e), 7 + 12);
    hr_engine_destroy(e);
}
END_TEST

START_TEST(a_save_can_be_resumed_in_the_middle_of_a_run)
{
    char path[128];
    char whole[HR_SHA256_TEXT_MAX];
    char sha[HR_SHA256_TEXT_MAX];
    hr_engine *e = create((const char *[]){NULL}, NULL);
    run_steps(e, 3);
    command_file(e, HR_COMMAND_SAVE, file_in("a.safetensors", path), HR_OK);
    run_steps(e, 4);
    weights_of(e, whole);
    for (int k = 0; k < 2; k++) {
        run_steps(e, 2);
        ck_assert_int_eq(turn(e, HR_KNOB_TRAIN_RESUME, path), HR_OK);
        begin(e, 0);
        run_to(e, 7);
        command_file(e, HR_COMMAND_STOP, "", HR_OK);
        weights_of(e, sha);
        ck_assert_str_eq(sha, whole);
    }
    hr_engine_destroy(e);
}
END_TEST

START_TEST(a_save_that_cannot_be_written_is_refused_before_the_first_step)
{
    char path[128];
    hr_err err = {0};
    hr_engine *e = NULL;
    hr_knobs knobs = *hr_preset_knobs(preset);
    ck_assert_int_eq(hr_knobs_set(&knobs, HR_KNOB_TRAIN_SAVE, "/nowhere/a.safetensors", &err), HR_OK);
    ck_assert_int_eq(hr_engine_create(preset, &knobs, NULL, &e, &err), HR_WRITE);
    ck_assert_ptr_null(e);
    e = create((const char *[]){NULL}, NULL);
    ck_assert_int_eq(turn(e, HR_KNOB_TRAIN_SAVE, "/nowhere/a.safetensors"), HR_WRITE);
    ck_assert_str_eq(hr_knob_text(hr_engine_knobs(e), HR_KNOB_TRAIN_SAVE), "");
    ck_assert_int_eq(turn(e, HR_KNOB_TRAIN_SAVE, file_in("a.safetensors", path)), HR_OK);
    ck_assert_int_ne(access(path, F_OK), 0); // asking leaves no file behind
    hr_engine_destroy(e);
}
END_TEST

// An evaluation under way ends where nothing is computed any more, whatever became of the data meanwhile.
START_TEST(an_evaluation_does_not_outlive_the_arithmetic)
{
    char data[160];
    bool idle = false;
    hr_engine *e = create((const char *[]){write_images(24, 50, data), NULL}, NULL);
    begin(e, 40);
    run_to(e, 3);
    hr_engine_advance(e, &idle); // the epoch ends
    hr_engine_advance(e, &idle); // one evaluation batch
    ck_assert_int_eq(turn(e, HR_KNOB_PIPELINE_PATH, "/nowhere/at/all"), HR_OK);
    hr_engine_advance(e, &idle);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_FAILED);
    ck_assert_int_eq(turn(e, HR_KNOB_DEVICE_KIND, "plan"), HR_OK);
    run_steps(e, 2);
    ck_assert_msg(hr_engine_get_state(e) == HR_ENGINE_IDLE, "%s", hr_engine_error(e)->sentence);
    ck_assert_uint_eq(hr_engine_steps(e), 5);
    hr_engine_destroy(e);
}
END_TEST

// ---- an evaluation that was asked for ------------------------------------------------------------------------------

static void ask_evaluation(hr_engine *e)
{
    command_file(e, HR_COMMAND_EVALUATE, "", HR_OK);
}

// What comes next; an engine that goes on for ever fails.
static void go_until_idle(hr_engine *e)
{
    bool idle = false;
    for (int k = 0; k < 100 && !idle; k++) {
        hr_engine_advance(e, &idle);
    }
    ck_assert(idle);
}

static hr_engine_next next_of(const hr_engine *e)
{
    hr_engine_now now;
    hr_engine_look(e, &now);
    return now.next;
}

static double accuracy_of(hr_engine *e)
{
    hr_report r = report_of(e);
    const double accuracy = r.train.eval_accuracy;
    hr_report_deinit(&r);
    return accuracy;
}

// 80 images make 10 batches, 20 held-out ones 3.
static hr_engine *create_with_images(void)
{
    char data[160];
    return create((const char *[]){write_images(80, 20, data), NULL}, NULL);
}

START_TEST(an_evaluation_that_failed_is_not_owed_to_the_next_run)
{
    hr_engine *e = create_with_images();
    run_steps(e, 3);
    ck_assert_int_eq(turn(e, HR_KNOB_BATCH_SIZE, "4096"), HR_OK);
    ask_evaluation(e);
    go_until_idle(e);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_OOM);
    ck_assert_int_eq(turn(e, HR_KNOB_BATCH_SIZE, "8"), HR_OK);
    if (_i == 1) { // nobody asked it to train on
        go_until_idle(e);
        ck_assert_uint_eq(hr_engine_steps(e), 3);
    }
    run_steps(e, 5);
    ck_assert_int_eq(hr_engine_get_state(e), HR_ENGINE_IDLE);
    ck_assert_uint_eq(hr_engine_steps(e), 8);
    ck_assert(isnan(accuracy_of(e)));
    hr_engine_destroy(e);
}
END_TEST

START_TEST(a_run_asked_for_during_an_evaluation_follows_it)
{
    bool idle = false;
    hr_engine *e = create_with_images();
    run_steps(e, 3);
    ask_evaluation(e);
    if (_i == 1) {
        hr_engine_advance(e, &idle); // it is under way
    }
    ck_assert_int_eq(next_of(e), HR_ENGINE_EVALUATES);
    run_steps(e, 2);
    ck_assert_uint_eq(hr_engine_steps(e), 5);
    ck_assert(isfinite(accuracy_of(e)));
    hr_engine_destroy(e);
}
END_TEST

START_TEST(a_stopped_evaluation_is_not_owed_to_the_next_run)
{
    hr_engine *e = create_with_images();
    run_steps(e, 3);
    ask_evaluation(e);
    command_file(e, HR_COMMAND_STOP, "", HR_OK);
    begin(e, 2);
    ck_assert_int_eq(next_of(e), HR_ENGINE_TRAINS);
    go_until_idle(e);
    ck_assert_uint_eq(hr_engine_steps(e), 5);
    hr_engine_destroy(e);
}
END_TEST

START_TEST(an_evaluation_goes_back_to_where_it_was_asked_for_first)
{
    static const hr_engine_state states[] = {HR_ENGINE_IDLE, HR_ENGINE_PAUSED};
    bool idle = false;
    hr_engine *e = create_with_images();
    run_steps(e, 3);
    if (states[_i] == HR_ENGINE_PAUSED) {
        begin(e, 4);
        command_file(e, HR_COMMAND_PAUSE, "", HR_OK);
    }
    ask_evaluation(e);
    hr_engine_advance(e, &idle);
    ask_evaluation(e);
    go_until_idle(e);
    ck_assert_int_eq(hr_engine_get_state(e), states[_i]);
    ck_assert_uint_eq(hr_engine_steps(e), 3);
    ck_assert(isfinite(accuracy_of(e)));
    hr_engine_destroy(e);
}
END_TEST

// ---- where epochs end ----------------------------------------------------------------------------------------------

START_TEST(the_last_step_of_an_epoch_is_followed_by_its_evaluation)
{
    char data[160];
    hr_engine *e = create((const char *[]){write_images(27, 9, data), NULL}, NULL);
    run_steps(e, 2);
    hr_report r = report_of(e);
    ck_assert(isnan(r.train.eval_accuracy));
    hr_report_deinit(&r);
    run_steps(e, 1); // the 3 images that are left fill no batch
    ck_assert_uint_eq(hr_engine_steps(e), 3);
    r = report_of(e);
    ck_assert(isfinite(r.train.eval_accuracy));
    hr_report_deinit(&r);
    hr_engine_destroy(e);
}
END_TEST

START_TEST(a_listing_builds_the_program_it_needs)
{
    hr_engine *e = create((const char *[]){NULL}, NULL);
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(hr_engine_listing(e, out, NULL), HR_OK);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_ptr_nonnull(strstr(text, "separable_conv2d"));
    free(text);
    hr_report r = report_of(e);
    ck_assert_uint_ge(r.memory.peak_pool_bytes, r.memory.peak_in_use_bytes);
    hr_report_deinit(&r);
    hr_engine_destroy(e);
}
END_TEST

// ---- events across rebuilds -----------------------------------------------------------------------------------

typedef struct story {
    int64_t live[HR_CATEGORY_COUNT]; // allocated bytes
    hr_event oom;                    // the last one
    uint32_t wanted_step, wrong_steps;
    bool watches_steps;
} story;

static void follow(void *context, const hr_event *event)
{
    story *s = context;
    if (event->kind == HR_EVENT_ALLOC || event->kind == HR_EVENT_FREE) {
        int64_t bytes = (int64_t)event->u.memory.allocated_bytes;
        s->live[event->category] += event->kind == HR_EVENT_ALLOC ? bytes : -bytes;
        ck_assert_int_ge(s->live[event->category], 0);
        s->wrong_steps += s->watches_steps && event->step < s->wanted_step;
    } else if (event->kind == HR_EVENT_OOM) {
        s->oom = *event;
    }
}

START_TEST(what_will_not_fit_is_told_in_the_stream)
{
    story s = {.wanted_step = 0};
    hr_engine *e = create((const char *[]){NULL}, &(hr_engine_options){.sink = follow, .sink_context = &s});
    run_steps(e, 2);
    ck_assert_int_eq(turn(e, HR_KNOB_BATCH_SIZE, "4096"), HR_OK);
    run_steps(e, 1);
    hr_report r = report_of(e);
    ck_assert_int_eq(s.oom.kind, HR_EVENT_OOM);
    ck_assert_uint_eq(s.oom.u.memory.requested_bytes, r.oom.requested_bytes);
    ck_assert_uint_eq(s.oom.u.memory.in_use_bytes, r.oom.in_use_bytes);
    ck_assert_int_eq(s.oom.category, HR_CATEGORY_INPUT);
    hr_report_deinit(&r);
    hr_engine_destroy(e);
}
END_TEST

START_TEST(events_of_a_build_that_goes_balance_in_every_category)
{
    story s = {.wanted_step = 0};
    hr_engine *e = create((const char *[]){NULL}, &(hr_engine_options){.sink = follow, .sink_context = &s});
    run_steps(e, 2);
    ck_assert_int_gt(s.live[HR_CATEGORY_OPTIMIZER], 0);
    ck_assert_int_eq(turn(e, HR_KNOB_OPTIMIZER_KIND, "sgd"), HR_OK);
    run_steps(e, 2);
    ck_assert_int_eq(s.live[HR_CATEGORY_OPTIMIZER], 0);
    hr_engine_destroy(e);
    for (int k = 0; k < HR_CATEGORY_COUNT; k++) {
        ck_assert_int_eq(s.live[k], 0);
    }
}
END_TEST

START_TEST(events_after_a_resume_carry_the_steps_of_the_save)
{
    char path[128];
    char resume[160];
    hr_engine *e = create((const char *[]){NULL}, NULL);
    run_steps(e, 5);
    command_file(e, HR_COMMAND_SAVE, file_in("a.safetensors", path), HR_OK);
    hr_engine_destroy(e);
    (void)snprintf(resume, sizeof resume, "train.resume=%s", path);
    story s = {.wanted_step = 5, .watches_steps = true};
    e = create((const char *[]){resume, "train.steps=6", NULL},
               &(hr_engine_options){.sink = follow, .sink_context = &s});
    run_steps(e, 0);
    ck_assert_uint_eq(hr_engine_steps(e), 6);
    ck_assert_uint_eq(s.wrong_steps, 0);
    hr_engine_destroy(e);
}
END_TEST

// ---- names in trace files ---------------------------------------------------------------------------------------

typedef struct held {
    unsigned long long address;
    char name[HR_NAME_MAX];
} held;

// Every row that frees an address names the tensor that the row which took it named. Returns how many there were.
static int check_names(const char *path)
{
    held live[256] = {{0, ""}};
    char line[512];
    int frees = 0;
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f) != NULL) {
        char event[16], name[HR_NAME_MAX] = "";
        unsigned long long address;
        if (sscanf(line, "%*[^,],%*[^,],%15[^,],%llu,%*[^,],%*[^,],%95[^,]", event, &address, name) != 3) {
            continue;
        }
        bool takes = strcmp(event, "alloc") == 0;
        int k = 0;
        while (k < 255 && live[k].address != (takes ? 0 : address)) {
            k++;
        }
        if (takes) {
            live[k].address = address;
            memcpy(live[k].name, name, sizeof name);
        } else if (strcmp(event, "free") == 0) {
            ck_assert_msg(strcmp(live[k].name, name) == 0, "took %s, freed %s", live[k].name, name);
            live[k].address = 0;
            frees++;
        }
    }
    ck_assert_int_eq(fclose(f), 0);
    return frees;
}

START_TEST(a_tensor_is_freed_under_the_name_it_was_taken_under)
{
    char data[160];
    char path[128];
    bool idle = false;
    hr_trace *trace = NULL;
    hr_engine *e = create((const char *[]){write_images(40, 21, data), "batch.remainder=keep", NULL}, NULL);
    ck_assert_int_eq(hr_trace_open(e, file_in("a.csv", path), &trace, NULL), HR_OK);
    run_steps(e, 1);
    ck_assert_int_eq(turn(e, HR_KNOB_BATCH_SIZE, "9"), HR_OK); // 32 are left: a rest of 5, then one of 4
    begin(e, 100);
    run_to(e, 5);
    hr_engine_advance(e, &idle); // the epoch ends
    hr_engine_advance(e, &idle); // one evaluation batch
    ck_assert_int_eq(turn(e, HR_KNOB_OPTIMIZER_KIND, "sgd"), HR_OK);
    run_to(e, 12);
    ck_assert_int_eq(hr_trace_close(trace, NULL), HR_OK);
    ck_assert_int_gt(check_names(path), 300);
    hr_engine_destroy(e);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("engine_recovery");
    TCase *cases = tcase_create("engine_recovery");
    tcase_add_checked_fixture(cases, open_preset, close_preset);
    tcase_add_test(cases, a_broken_step_returns_to_the_last_save);
    tcase_add_test(cases, a_step_that_broke_off_before_it_changed_anything_loses_nothing);
    tcase_add_test(cases, a_file_of_an_earlier_training_is_no_save_of_this_one);
    tcase_add_test(cases, what_a_broken_step_left_is_neither_saved_nor_reported);
    tcase_add_test(cases, a_return_to_a_save_finds_the_batches_of_its_position);
    tcase_add_test(cases, a_save_can_be_resumed_in_the_middle_of_a_run);
    tcase_add_test(cases, a_save_that_cannot_be_written_is_refused_before_the_first_step);
    tcase_add_test(cases, an_evaluation_does_not_outlive_the_arithmetic);
    tcase_add_loop_test(cases, an_evaluation_that_failed_is_not_owed_to_the_next_run, 0, 2);
    tcase_add_loop_test(cases, a_run_asked_for_during_an_evaluation_follows_it, 0, 2);
    tcase_add_test(cases, a_stopped_evaluation_is_not_owed_to_the_next_run);
    tcase_add_loop_test(cases, an_evaluation_goes_back_to_where_it_was_asked_for_first, 0, 2);
    tcase_add_test(cases, the_last_step_of_an_epoch_is_followed_by_its_evaluation);
    tcase_add_test(cases, a_listing_builds_the_program_it_needs);
    tcase_add_test(cases, what_will_not_fit_is_told_in_the_stream);
    tcase_add_test(cases, events_of_a_build_that_goes_balance_in_every_category);
    tcase_add_test(cases, events_after_a_resume_carry_the_steps_of_the_save);
    tcase_add_test(cases, a_tensor_is_freed_under_the_name_it_was_taken_under);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
