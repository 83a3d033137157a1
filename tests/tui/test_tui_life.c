// SPDX-License-Identifier: Apache-2.0
// Whatever becomes of the worker, the workbench stays: it says what happened, keeps what was told, and starts again.
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tui/fake_engine.h"
#include "tests/tui/fake_planning.h"
#include "tests/tui/screen.h"
#include "tests/tui/suite.h"

static const screen_look wide = {.rows = 36, .columns = 120};

static void end_worker_by(app *a, hr_session_life life, int signal_number, uint32_t instr,
                          uint64_t saved_step)
{
    hr_session_end end = {.exit_code = -1,
                          .signal = signal_number,
                          .step = 42,
                          .instr = instr,
                          .saved_step = saved_step,
                          .sentence = "segmentation fault"};
    bool more;
    fake_engine_end(a->feed.session, life, &end);
    app_drain(a, &more);
}

static void end_worker(app *a, hr_session_life life, uint64_t saved_step)
{
    end_worker_by(a, life, SIGSEGV, 3, saved_step);
}

START_TEST(a_dead_worker_leaves_its_graphs_and_says_where_it_died)
{
    app *a = screen_open(&wide);
    screen_advance(a, 60);
    uint64_t steps = a->feed.live.steps, peak = a->feed.live.peak_bytes;
    end_worker(a, HR_SESSION_ENDED, 40);
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "segmentation fault"));
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "instruction 3"));
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "step 43"));
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "R goes on from the save of step 40"));
    ck_assert_uint_eq(a->feed.live.steps, steps);
    ck_assert_uint_eq(a->feed.live.peak_bytes, peak);
    ck_assert_int_eq(run_log_newest(&a->feed.runs)->result, RUN_FAILED);
    char *text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "failed"));
    free(text);
    screen_keys(a, "R");
    screen_advance(a, 10); // another run
    ck_assert_int_eq(run_log_newest(&a->feed.runs)->result, RUN_RUNNING);
    ck_assert_uint_eq(a->feed.runs.count, 2);
    screen_close(a);
}
END_TEST

START_TEST(r_starts_a_dead_worker_again_and_the_history_stays)
{
    static const char keys[] = {'R', 'r'};
    for (size_t i = 0; i < sizeof keys; i++) {
        app *a = screen_open(&wide);
        screen_advance(a, 60);
        end_worker(a, HR_SESSION_ENDED, HR_NONE);
        uint64_t peak = a->feed.live.peak_bytes, lines = a->feed.live.log_count;
        ck_assert_ptr_null(app_why_not(a, REQUEST_RESTART));
        app_key(a, keys[i]);
        screen_advance(a, 10);
        ck_assert_int_eq(a->feed.live.state, HR_ENGINE_RUNNING);
        ck_assert_int_eq(a->feed.message.kind, MESSAGE_NONE);
        ck_assert_uint_eq(a->feed.live.peak_bytes, peak);
        ck_assert_uint_gt(a->feed.live.log_count, lines);
        ck_assert(a->feed.live.attributed);
        screen_close(a);
    }
}
END_TEST

// The processor lacks an instruction: R would meet it again, a turned knob may not.
START_TEST(r_does_not_start_a_worker_again_that_lacked_an_instruction)
{
    static const char keys[] = {'R', 'r'};
    app *a = screen_open(&wide);
    screen_advance(a, 60);
    end_worker_by(a, HR_SESSION_ENDED, SIGILL, 3, 40);
    for (size_t i = 0; i < sizeof keys; i++) {
        app_key(a, keys[i]);
        screen_advance(a, 3);
        ck_assert(!feed_engine_lives(&a->feed));
        ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
        ck_assert_ptr_nonnull(strstr(a->feed.message.text, "SIGILL"));
        ck_assert_ptr_nonnull(strstr(a->feed.message.text, "instruction 3"));
        ck_assert_ptr_nonnull(strstr(a->feed.message.text, "with avx2"));
        ck_assert_ptr_nonnull(strstr(a->feed.message.text,
                                     "try: :set device.kind=reference, or leave and start "
                                     "ONEDNN_MAX_CPU_ISA=AVX headroom"));
    }
    app_key(a, '<');
    screen_advance(a, 3);
    ck_assert(feed_engine_lives(&a->feed));
    screen_close(a);
}
END_TEST

START_TEST(r_starts_again_once_what_dies_in_the_same_instruction)
{
    static const struct {
        int signal_number;
        uint32_t instr;
        bool again; // R brings it back
    } deaths[] = {{SIGSEGV, 3, true}, {SIGSEGV, 4, true}, {SIGABRT, 4, true}, {SIGABRT, 4, false}};
    app *a = screen_open(&wide);
    screen_advance(a, 20);
    for (size_t k = 0; k < sizeof deaths / sizeof *deaths; k++) {
        end_worker_by(a, HR_SESSION_ENDED, deaths[k].signal_number, deaths[k].instr, HR_NONE);
        app_key(a, 'R');
        screen_advance(a, 3);
        ck_assert_msg(feed_engine_lives(&a->feed) == deaths[k].again, "death %zu: %s", k,
                      a->feed.message.text);
    }
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "SIGABRT"));
    screen_close(a);
}
END_TEST

START_TEST(a_turned_knob_brings_a_dead_worker_back_with_it)
{
    app *a = screen_open(&wide);
    screen_advance(a, 20);
    end_worker(a, HR_SESSION_ENDED, HR_NONE);
    app_key(a, '<');
    screen_advance(a, 10);
    ck_assert_int_eq(a->feed.live.state, HR_ENGINE_RUNNING);
    ck_assert_int_eq(hr_knob_int(&a->feed.applied, HR_KNOB_BATCH_SIZE), 64);
    screen_close(a);
}
END_TEST

START_TEST(a_silent_worker_is_told_and_forgiven_when_it_goes_on)
{
    app *a = screen_open(&wide);
    bool more;
    screen_advance(a, 20);
    end_worker(a, HR_SESSION_SILENT, 10);
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "no sign of life for 5 s"));
    ck_assert_int_eq(a->feed.live.state, HR_ENGINE_RUNNING);
    fake_engine_end(a->feed.session, HR_SESSION_LIVE, &(hr_session_end){0});
    app_drain(a, &more);
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_NOTE);
    ck_assert_ptr_nonnull(app_why_not(a, REQUEST_RESTART));
    screen_close(a);
}
END_TEST

static bool has_same_knobs(const app *a)
{
    bool same = true;
    for (int id = 0; same && id < HR_KNOB_COUNT; id++) {
        same = !knob_edit_differs(&a->feed.knobs, &a->feed.applied, (hr_knob_id)id);
    }
    return same;
}

START_TEST(a_turn_that_the_engine_refuses_is_forgotten_and_one_on_its_way_is_not)
{
    app *a = screen_open(&wide);
    screen_advance(a, 5);
    const hr_knob_value before = a->feed.knobs.value[HR_KNOB_BATCH_SIZE];
    ck_assert_int_eq(hr_knobs_set(&a->feed.knobs, HR_KNOB_BATCH_SIZE, "64", NULL), HR_OK);
    knob_edit_log_add(&a->feed.turned, HR_KNOB_BATCH_SIZE, &before, &a->feed.knobs.value[HR_KNOB_BATCH_SIZE]);
    ck_assert(feed_send_text(&a->feed, HR_COMMAND_KNOB, HR_KNOB_BATCH_SIZE, "sixty-four"));
    uint64_t question = a->feed.question;
    screen_advance(a, 1);
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
    ck_assert_int_eq(hr_knob_int(&a->feed.knobs, HR_KNOB_BATCH_SIZE), 128);
    ck_assert_uint_gt(a->feed.question, question);
    ck_assert_ptr_nonnull(app_why_not(a, REQUEST_UNDO));
    // Said behind the refusal, but sent before it was heard of.
    ck_assert(feed_send_text(&a->feed, HR_COMMAND_KNOB, HR_KNOB_EXECUTION_MODE, "graph"));
    screen_advance(a, 1);
    ck_assert(has_same_knobs(a));
    screen_close(a);
}
END_TEST

// An event has room for the beginning of a long path alone.
START_TEST(a_long_path_comes_back_whole)
{
    static const char path[] =
        "/a/folder/with/a/name/that/is/much/longer/than/an/event/has/room/for/images.bin";
    app *a = screen_open(&wide);
    screen_advance(a, 5);
    ck_assert(app_turn(&a->feed, HR_KNOB_PIPELINE_PATH, path));
    screen_advance(a, 2);
    ck_assert_str_eq(hr_knob_text(&a->feed.applied, HR_KNOB_PIPELINE_PATH), path);
    ck_assert(has_same_knobs(a));
    ck_assert(knob_edit_same(&a->feed.knobs, &a->feed.stepped)); // a baseline can be pinned
    ck_assert_ptr_null(app_why_not(a, REQUEST_PIN));
    ck_assert(feed_send_text(&a->feed, HR_COMMAND_KNOB, HR_KNOB_BATCH_SIZE,
                             "sixty-four")); // refused: back to what was applied
    screen_advance(a, 1);
    ck_assert_str_eq(hr_knob_text(&a->feed.knobs, HR_KNOB_PIPELINE_PATH), path);
    screen_close(a);
}
END_TEST

START_TEST(what_a_busy_engine_does_not_take_is_not_turned)
{
    app *a = screen_open(&wide);
    screen_advance(a, 5);
    bool full = false;
    for (int i = 0; i < 1000 && !full; i++) {
        app_key(a, i % 2 == 0 ? '<' : '>');
        full = a->feed.message.kind == MESSAGE_ERROR;
    }
    ck_assert(full);
    size_t done = a->feed.turned.done;
    app_key(a, 'z');
    ck_assert_uint_eq(a->feed.turned.done, done);
    hr_knobs to = a->feed.knobs;
    ck_assert_int_eq(hr_knobs_set_pair(&to, "execution.mode=graph", NULL), HR_OK);
    ck_assert(!app_turn_all(&a->feed, &to));
    ck_assert_uint_eq(a->feed.turned.done, done);
    screen_advance(a, 3);
    ck_assert(has_same_knobs(a));
    screen_close(a);
}
END_TEST

START_TEST(a_healthy_worker_is_not_restarted_by_a_slip)
{
    app *a = screen_open(&wide);
    screen_advance(a, 20);
    uint64_t steps = a->feed.live.steps;
    app_key(a, 'R');
    screen_advance(a, 1);
    ck_assert_uint_eq(a->feed.live.steps, steps + 1);
    screen_close(a);
}
END_TEST

static bool has_logged(const app *a, const char *words)
{
    bool found = false;
    for (size_t i = 0; i < a->feed.live.log_count && i < LOG_LENGTH; i++) {
        found = found || strstr(a->feed.live.log[i].text, words) != NULL;
    }
    return found;
}

// What it said while it was silent stands, when its end brings nothing newer.
START_TEST(a_silent_worker_is_restarted_from_the_save_that_it_told)
{
    app *a = screen_open(&wide);
    (void)snprintf(a->feed.autosave, sizeof a->feed.autosave, "/nonexistent/auto.safetensors");
    screen_advance(a, 60);
    end_worker(a, HR_SESSION_SILENT, 40);
    screen_keys(a, "R");
    ck_assert_int_eq(a->next.work, PENDING_RESTART);
    app_work(a);
    ck_assert(has_logged(a, "started again from the save of step 40"));
    end_worker(a, HR_SESSION_ENDED, HR_NONE); // before it had read that
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "R goes on from the save of step 40"));
    screen_close(a);
    a = screen_open(&wide);
    screen_advance(a, 60);
    end_worker(a, HR_SESSION_ENDED, HR_NONE);
    screen_keys(a, "R");
    ck_assert(has_logged(a, "started again from the beginning"));
    screen_close(a);
}
END_TEST

static void lose_device(app *a, uint64_t saved_step)
{
    hr_session_end end = {.exit_code = 4,
                          .step = 42,
                          .instr = HR_NO_ID,
                          .saved_step = saved_step,
                          .device_lost = true,
                          .sentence = "cuLaunchKernel: an illegal address"};
    bool more;
    fake_engine_end(a->feed.session, HR_SESSION_ENDED, &end);
    app_drain(a, &more);
}

START_TEST(a_lost_device_is_taken_anew_from_the_save_but_not_for_ever)
{
    app *a = screen_open(&wide);
    (void)snprintf(a->feed.autosave, sizeof a->feed.autosave, "/nonexistent/auto.safetensors");
    screen_advance(a, 60);
    lose_device(a, 40);
    ck_assert_int_eq(a->feed.life, HR_SESSION_LIVE);
    ck_assert(has_logged(a, "started again from the save of step 40"));
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "an illegal address"));
    lose_device(a, 40);
    ck_assert_int_eq(a->feed.life, HR_SESSION_ENDED);
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "R goes on from the save of step 40"));
    screen_close(a);
}
END_TEST

// The screen stays alive; of the keys only those count that leave.
START_TEST(a_training_that_saves_ends_in_its_own_time)
{
    app *a = screen_open(&wide);
    screen_advance(a, 20);
    ck_assert_int_eq(hr_knobs_set_pair(&a->feed.applied, "train.save=end.safetensors", NULL), HR_OK);
    fake_engine_save_long(a->feed.session, 3);
    screen_keys(a, "qy");
    ck_assert_int_eq(a->next.work, PENDING_QUIT);
    app_work(a);
    ck_assert(a->feed.ending && !a->quits);
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "saving end.safetensors"));
    hr_knobs before = a->feed.knobs;
    screen_keys(a, ">p2R");
    ck_assert_mem_eq(&a->feed.knobs, &before, sizeof before);
    ck_assert_int_eq(a->overlay, OVERLAY_NONE);
    ck_assert(!feed_check_life(&a->feed));
    app_work(a);
    ck_assert(!a->quits);
    app_work(a);
    ck_assert(a->quits && !a->feed.ending);
    ck_assert_int_eq(a->next.work, PENDING_NONE);
    screen_close(a);
}
END_TEST

START_TEST(whoever_leaves_twice_waits_for_no_save)
{
    static const int keys[] = {'q', INPUT_CTRL_C};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        app *a = screen_open(&wide);
        screen_advance(a, 20);
        fake_engine_save_long(a->feed.session, UINT_MAX);
        screen_keys(a, "qy");
        app_work(a);
        app_work(a);
        ck_assert(a->feed.ending && !a->quits);
        app_key(a, keys[i]);
        ck_assert(!feed_check_life(&a->feed)); // it is meant to end
        app_work(a);
        ck_assert(a->quits);
        screen_close(a);
    }
}
END_TEST

// A preset that cannot be read ends nothing; one that can waits for the save of the training before.
START_TEST(another_preset_waits_for_the_save_too)
{
    app *a = screen_open(&wide);
    screen_advance(a, 20);
    fake_engine_save_long(a->feed.session, 2);
    screen_keys(a, ":preset nothing\n");
    app_work(a);
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
    ck_assert(!a->feed.ending);
    app_key(a, INPUT_ESCAPE);
    screen_keys(a, ":preset cifar10_separable_cnn\ny");
    app_work(a);
    ck_assert(a->feed.ending);
    ck_assert_str_eq(hr_preset_name(a->feed.preset), "demo");
    app_work(a);
    ck_assert(!a->feed.ending);
    ck_assert_str_eq(hr_preset_name(a->feed.preset), "cifar10_separable_cnn");
    ck_assert_int_eq(a->next.work, PENDING_NONE);
    screen_close(a);
}
END_TEST

// It trains on, is asked nothing more, and keeps its worker.
static void goes_on(app *a, const hr_session *session)
{
    const uint64_t steps = a->feed.live.steps;
    ck_assert_int_eq(a->next.work, PENDING_NONE);
    ck_assert(a->feed.session == session && !a->feed.ending && a->next.opened == NULL &&
              a->feed.judge == NULL);
    ck_assert_str_eq(hr_preset_name(a->feed.preset), "demo");
    screen_advance(a, 5);
    ck_assert_uint_gt(a->feed.live.steps, steps);
}

START_TEST(what_would_not_stand_ends_nothing)
{
    app *a = screen_open(&wide);
    screen_advance(a, 20);
    hr_session *session = a->feed.session;
    fake_planning_refuse(true);
    screen_keys(a, ":preset cifar10_separable_cnn\ny");
    app_work(a);
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "it would not stand"));
    goes_on(a, session);
    end_worker(a, HR_SESSION_SILENT, 10);
    screen_keys(a, "R");
    app_work(a);
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "it would not stand"));
    fake_engine_end(a->feed.session, HR_SESSION_LIVE, &(hr_session_end){0});
    goes_on(a, session);
    fake_planning_refuse(false);
    fake_planning_break(true); // where it cannot be tried, nothing is known of it
    screen_keys(a, ":preset cifar10_separable_cnn\ny");
    app_work(a);
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
    goes_on(a, session);
    fake_planning_break(false);
    screen_close(a);
}
END_TEST

START_TEST(what_is_still_being_tried_can_be_left)
{
    app *a = screen_open(&wide);
    screen_advance(a, 20);
    hr_session *session = a->feed.session;
    fake_planning_hold(true);
    screen_keys(a, ":preset cifar10_separable_cnn\ny");
    app_work(a);
    app_work(a);
    ck_assert_int_eq(a->next.work, PENDING_PRESET);
    ck_assert(!a->feed.ending);
    app_key(a, INPUT_ESCAPE);
    goes_on(a, session);
    screen_keys(a, ":preset cifar10_separable_cnn\ny");
    app_work(a);
    screen_keys(a, "qy"); // who leaves waits for no verdict
    app_work(a);
    ck_assert(a->quits);
    fake_planning_hold(false);
    screen_close(a);
}
END_TEST

SUITE_MAIN("tui life", a_long_path_comes_back_whole, what_would_not_stand_ends_nothing,
           what_is_still_being_tried_can_be_left,
           a_turn_that_the_engine_refuses_is_forgotten_and_one_on_its_way_is_not,
           what_a_busy_engine_does_not_take_is_not_turned,
           a_dead_worker_leaves_its_graphs_and_says_where_it_died,
           r_starts_a_dead_worker_again_and_the_history_stays,
           r_does_not_start_a_worker_again_that_lacked_an_instruction,
           r_starts_again_once_what_dies_in_the_same_instruction,
           a_turned_knob_brings_a_dead_worker_back_with_it,
           a_silent_worker_is_restarted_from_the_save_that_it_told,
           a_lost_device_is_taken_anew_from_the_save_but_not_for_ever,
           a_training_that_saves_ends_in_its_own_time, whoever_leaves_twice_waits_for_no_save,
           another_preset_waits_for_the_save_too, a_silent_worker_is_told_and_forgiven_when_it_goes_on,
           a_healthy_worker_is_not_restarted_by_a_slip)
