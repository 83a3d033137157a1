// SPDX-License-Identifier: Apache-2.0
// The Pipeline: who waits for whom is what the events say. And Learn, which shows what exists.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/terms.h"

#include "app/tui/feed/input_bound.h"
#include "app/tui/screens/doctor/doctor.h"
#include "app/tui/screens/pipeline/pipeline.h"
#include "tests/tui/fake_engine.h"
#include "tests/tui/golden.h"
#include "tests/tui/suite.h"

static void say_step(app *a, uint64_t duration_ns, uint64_t wait_ns)
{
    hr_event e = {
        .version = HR_EVENT_VERSION, .kind = HR_EVENT_STEP, .step = (uint32_t)a->feed.live.steps + 1};
    e.u.step = (hr_event_step){.duration_ns = duration_ns, .wait_ns = wait_ns, .samples = 1};
    run_state_feed(&a->feed.live, &e);
}

// Of a chain that has run for so long: what each stage did in it, of 100 ns a step.
static void say_times(app *a, uint32_t step, const char *name, uint64_t busy_pct, uint64_t wait_pct,
                      uint32_t capacity)
{
    hr_event e = {
        .version = HR_EVENT_VERSION, .kind = HR_EVENT_PIPELINE, .time_ns = 1000 + step * UINT64_C(100)};
    e.u.stage = (hr_event_stage){.busy_ns = step * busy_pct,
                                 .wait_ns = step * wait_pct,
                                 .items = step,
                                 .queue_capacity = capacity,
                                 .threads = strcmp(name, "map") == 0,
                                 .cores = 2};
    snprintf(e.u.stage.name, sizeof e.u.stage.name, "%s", name);
    run_state_feed(&a->feed.live, &e);
}

// Steps of 100 ns of which `waits` are waited.
static void say_run(app *a, uint64_t waits, uint64_t map_pct, uint64_t room_pct, bool prefetches)
{
    for (uint32_t step = 1; step <= 80; step++) {
        say_step(a, 100, waits);
        say_times(a, step, "map", map_pct, 0, 0);
        say_times(a, step, "batch", 2, 0, 0);
        if (prefetches) {
            say_times(a, step, "prefetch", 0, room_pct, 2);
        }
    }
}

static void say_stage(app *a, const char *name, uint32_t length, uint32_t capacity, uint64_t bytes)
{
    hr_event e = {.version = HR_EVENT_VERSION, .kind = HR_EVENT_PIPELINE};
    e.u.stage = (hr_event_stage){.host_bytes = bytes, .queue_length = length, .queue_capacity = capacity};
    snprintf(e.u.stage.name, sizeof e.u.stage.name, "%s", name);
    run_state_feed(&a->feed.live, &e);
}

static void prepare(app *a)
{
    say_stage(a, "source", 0, 0, 0);
    say_stage(a, "shuffle", 0, 0, 40000);
    say_stage(a, "batch", 0, 0, 5137);
    screen_advance(a, 20); // and prefetch
    say_stage(a, "evaluate", 0, 0, 5137);
    screen_keys(a, "7");
}

START_TEST(the_pipeline_looks_as_agreed)
{
    golden_all("pipeline", prepare);
}
END_TEST

START_TEST(who_waits_is_what_the_steps_and_the_queue_say)
{
    static const struct {
        uint64_t wait_ns; // of 1000
        uint32_t length, capacity;
        const char *says;
    } rows[] = {
        {0, 2, 2, "Input waits for training: prefetch is full"},
        {0, 1, 2, "Nobody waits much"},
        {19, 2, 2, "Input waits for training"},
        {21, 0, 2, "Training waits 2.1% of a step for input: prefetch holds 0 of 2."},
        {500, 1, 4, "Training waits 50.0% of a step for input: prefetch holds 1 of 4."},
        {500, 0, 0, "Training waits 50.0% of a step for input: there is no queue"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[768];
        app *a = screen_open(&golden_looks[0].look);
        ck_assert_ptr_nonnull(strstr(pipeline_words(&a->feed, text, sizeof text), "No step has ended yet."));
        for (int step = 0; step < 10; step++) {
            say_step(a, 1000, rows[i].wait_ns);
        }
        say_stage(a, "prefetch", rows[i].length, rows[i].capacity, 100);
        pipeline_words(&a->feed, text, sizeof text);
        ck_assert_msg(strncmp(text, rows[i].says, strlen(rows[i].says)) == 0, "%s", text);
        screen_close(a);
    }
}
END_TEST

START_TEST(the_stage_to_blame_is_named_with_what_would_help)
{
    static const struct {
        uint64_t waits, map, room;
        bool prefetches;
        const char *stage, *helps, *finding;
    } rows[] = {
        {60, 98, 1, true, "map", "pipeline.map_threads=2",
         "map is at work 98.0% of the time on 1 thread: try pipeline.map_threads=2"},
        {40, 60, 0, false, "batch", "pipeline.prefetch=2", "nothing is made while the step computes"},
        {20, 60, 40, true, "prefetch", "pipeline.prefetch=4", "batches come unevenly"},
        {2, 60, 40, true, "", "", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[768], finding[FINDING_TEXT_MAX];
        app *a = screen_open(&golden_looks[0].look);
        say_run(a, rows[i].waits, rows[i].map, rows[i].room, rows[i].prefetches);
        const input_bound b = input_bound_of(&a->feed);
        ck_assert_int_eq(b.by, rows[i].finding == NULL ? BOUND_COMPUTE : BOUND_INPUT);
        ck_assert_str_eq(b.stage, rows[i].stage);
        ck_assert_str_eq(b.helps, rows[i].helps);
        pipeline_words(&a->feed, text, sizeof text);
        doctor_finding(&a->feed, FINDING_WAITS, finding);
        ck_assert_msg(rows[i].finding == NULL ? finding[0] == '\0' : strstr(finding, rows[i].finding) != NULL,
                      "%s", finding);
        ck_assert_msg((strstr(text, "To blame: ") != NULL) == (rows[i].finding != NULL), "%s", text);
        screen_close(a);
    }
}
END_TEST

static void say_decision(app *a, const hr_event_tune *t)
{
    hr_event e = {.version = HR_EVENT_VERSION, .kind = HR_EVENT_TUNE, .u.tune = *t};
    run_state_feed(&a->feed.live, &e);
}

static void wait_for_input(app *a)
{
    const hr_event_tune decided[] = {{.threads_from = 1,
                                      .threads_to = 2,
                                      .prefetch_from = 1,
                                      .prefetch_to = 1,
                                      .reason = HR_TUNE_ALL,
                                      .as_tensorflow = 1,
                                      .after_ns = 12000000,
                                      .making_ns = 97000000,
                                      .step_ns = 39000000,
                                      .wait_ns = 58000000},
                                     {.threads_from = 1,
                                      .threads_to = 2,
                                      .prefetch_from = 1,
                                      .prefetch_to = 1,
                                      .reason = HR_TUNE_MAKING,
                                      .after_ns = 1200000000,
                                      .making_ns = 97000000,
                                      .step_ns = 39000000,
                                      .wait_ns = 58000000},
                                     {.threads_from = 2,
                                      .threads_to = 2,
                                      .prefetch_from = 1,
                                      .prefetch_to = 1,
                                      .reason = HR_TUNE_HIDDEN,
                                      .after_ns = 2500000000,
                                      .making_ns = 48000000,
                                      .step_ns = 52000000,
                                      .wait_ns = 400000}};
    say_run(a, 60, 98, 1, true);
    for (size_t k = 0; k < sizeof decided / sizeof *decided; k++) {
        say_decision(a, &decided[k]);
    }
    screen_keys(a, "7");
}

START_TEST(a_pipeline_that_is_waited_for_looks_as_agreed)
{
    golden_all("pipeline_waited_for", wait_for_input);
}
END_TEST

START_TEST(a_device_that_only_plans_says_so)
{
    char words[768];
    app *a = screen_open(&golden_looks[2].look);
    ck_assert_int_eq(hr_knobs_set_pair(&a->feed.applied, "device.kind=plan", NULL), HR_OK);
    ck_assert_ptr_nonnull(strstr(pipeline_words(&a->feed, words, sizeof words), "moves no data"));
    screen_keys(a, "7");
    char *text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "source"));
    ck_assert_ptr_nonnull(strstr(text, "moves no data"));
    free(text);
    screen_close(a);
}
END_TEST

START_TEST(what_is_not_copied_and_not_pinned_is_said)
{
    char text[768];
    app *a = screen_open(&golden_looks[0].look);
    a->feed.has_report = true;
    a->feed.report.resident = true;
    ck_assert_ptr_nonnull(strstr(pipeline_words(&a->feed, text, sizeof text), "its data does not change."));
    (void)snprintf(a->feed.report.host.refused, sizeof a->feed.report.host.refused, "no page can be locked");
    ck_assert_ptr_nonnull(strstr(pipeline_words(&a->feed, text, sizeof text),
                                 "Batches are not pinned: no page can be locked."));
    screen_close(a);
}
END_TEST

START_TEST(enter_edits_the_setting_under_the_cursor)
{
    app *a = screen_open(&golden_looks[0].look);
    prepare(a);
    free(screen_text(a));
    screen_keys(a, "\t\t");
    ck_assert_int_eq(a->focus, PANE_SETTINGS);
    free(screen_text(a));
    for (size_t row = 0; row < a->table[PANE_SETTINGS].count; row++) {
        app_key(a, INPUT_ENTER);
        ck_assert_int_eq(a->overlay, OVERLAY_EDIT);
        const char *key = hr_knob_rows(NULL)[feed_knob(&a->feed)].key;
        ck_assert_msg(strncmp(key, "pipeline.", 9) == 0 || strncmp(key, "batch.", 6) == 0, "%s", key);
        app_key(a, INPUT_ESCAPE);
        app_key(a, INPUT_DOWN);
    }
    screen_close(a);
}
END_TEST

// ---- Learn ----------------------------------------------------------------------------------------------------

static void open_learn(app *a)
{
    screen_advance(a, 20);
    screen_keys(a, "L\t");
    screen_keys(a, "/^frag|^peak_in|^waste_|^pool_b|^saved_for\n");
}

START_TEST(learn_looks_as_agreed)
{
    golden_all("learn", open_learn);
}
END_TEST

START_TEST(every_term_can_be_selected_and_is_explained)
{
    app *a = screen_open(&golden_looks[2].look);
    screen_keys(a, "6\t");
    size_t count;
    const hr_term *terms = hr_terms(&count);
    for (size_t i = 0; i < count; i += 7) {
        char *text = screen_text(a);
        ck_assert_uint_eq(table_selected(&a->table[PANE_TERMS]), i);
        ck_assert_msg(terms[i].pytorch == NULL || strlen(terms[i].pytorch) > 40 ||
                          strstr(text, terms[i].pytorch) != NULL,
                      "%s: %s is not shown", terms[i].name, terms[i].pytorch);
        free(text);
        for (int k = 0; k < 7; k++) {
            app_key(a, INPUT_DOWN);
        }
    }
    screen_close(a);
}
END_TEST

START_TEST(a_situation_is_opened_as_a_preset)
{
    app *a = screen_open(&golden_looks[0].look);
    screen_keys(a, "6");
    free(screen_text(a));
    screen_keys(a, "\t\t\t");
    ck_assert_int_eq(a->focus, PANE_SITUATIONS);
    free(screen_text(a));
    app_key(a, INPUT_ENTER);
    ck_assert_int_eq(a->next.work, PENDING_PRESET);
    app_work(a);
    ck_assert_str_eq(hr_preset_name(a->feed.preset), "wide");
    screen_close(a);
}
END_TEST

// The first lesson from its page to the next one, by the keys that its lines name.
START_TEST(a_lesson_is_done_in_the_workbench)
{
    app *a = screen_open(&golden_looks[0].look);
    screen_keys(a, "L\n");
    ck_assert_int_eq(a->focus, PANE_LESSON);
    screen_keys(a, "h"); // no hint before the work
    ck_assert_uint_eq(a->learn.lesson.progress.hints, 0);
    screen_keys(a, "\n\n");
    ck_assert_int_eq(a->learn.lesson.phase, LESSON_ASKS);
    app_key(a, INPUT_DOWN);
    screen_keys(a, "\n");
    char *text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "Right: activations"));
    free(text);
    screen_keys(a, "\n");
    ck_assert_int_eq(a->next.work, PENDING_PRESET);
    app_work(a);
    ck_assert_str_eq(hr_preset_name(a->feed.preset), "wide");
    screen_keys(a, "6");
    ck_assert_int_eq(a->focus, PANE_LESSON);
    text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "NO  the largest batch that fits"));
    free(text);
    screen_keys(a, "n"); // not before it is done
    ck_assert_str_eq(hr_lesson_tell(a->learn.lesson.open)->name, "05-batch-size");
    screen_keys(a, "hh");
    text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "Hint 2 of 3"));
    free(text);
    screen_close(a);
}
END_TEST

START_TEST(a_sandbox_is_left_with_the_knobs_as_they_were)
{
    app *a = screen_open(&golden_looks[0].look);
    screen_keys(a, "L\n\n\n\n\n");
    app_work(a);
    screen_keys(a, "6");
    free(screen_text(a));
    screen_keys(a, "s:batch.size=128\n");
    free(screen_text(a));
    ck_assert_int_eq(a->learn.lesson.phase, LESSON_WORKS); // what would pass does not count there
    screen_keys(a, "s");
    ck_assert_int_eq(hr_knob_int(&a->feed.knobs, HR_KNOB_BATCH_SIZE), 256);
    screen_keys(a, ":batch.size=128\n");
    free(screen_text(a));
    ck_assert_int_eq(a->learn.lesson.phase, LESSON_AFTER);
    ck_assert(a->learn.lesson.progress.done);
    screen_keys(a, "n");
    ck_assert_str_eq(hr_lesson_tell(a->learn.lesson.open)->name, "06-mixed-precision");
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_NONE);
    screen_close(a);
}
END_TEST

// The training of a lesson is its own from its first moment on, not from the first look at the lesson.
START_TEST(a_knob_that_is_turned_before_the_lesson_is_looked_at_counts)
{
    app *a = screen_open(&golden_looks[0].look);
    screen_keys(a, "L\n\n\n\n");
    ck_assert(!app_begins_anew(a)); // another preset: opened as itself, with no trust of this one
    screen_keys(a, "\n");
    app_work(a);
    screen_keys(a, ":batch.size=128\n6");
    free(screen_text(a));
    ck_assert_int_eq(a->learn.lesson.phase, LESSON_AFTER);
    screen_close(a);
}
END_TEST

static void expect_shown(app *a, const char *words)
{
    char *text = screen_text(a);
    ck_assert_msg(strstr(text, words) != NULL, "'%s' is not in:\n%s", words, text);
    free(text);
}

// What the lesson holds is not turned, by whatever key, and how to leave is said.
START_TEST(a_knob_that_the_lesson_holds_is_not_turned)
{
    app *a = screen_open(&golden_looks[0].look);
    screen_keys(a, "L\n\n\n\n\n");
    app_work(a);
    screen_keys(a, ":optimizer.kind=sgd\n");
    expect_shown(a, "optimizer.kind: the lesson holds it as it is: s opens a sandbox");
    ck_assert_uint_eq(a->feed.turned.count, 0);
    hr_knobs other = a->feed.knobs;
    ck_assert_int_eq(hr_knobs_set_pairs(&other, "optimizer.kind=sgd batch.size=128", NULL), HR_OK);
    ck_assert(!app_turn_all(&a->feed, &other)); // nor together with one that may
    ck_assert_int_eq(hr_knob_int(&a->feed.knobs, HR_KNOB_BATCH_SIZE), 256);
    screen_keys(a, "s:optimizer.kind=sgd\n");
    ck_assert_str_eq(hr_knob_text(&a->feed.knobs, HR_KNOB_OPTIMIZER_KIND), "sgd");
    screen_keys(a, "s");
    ck_assert_str_ne(hr_knob_text(&a->feed.knobs, HR_KNOB_OPTIMIZER_KIND), "sgd");
    screen_keys(a, "z"); // what the sandbox turned
    ck_assert_str_ne(hr_knob_text(&a->feed.knobs, HR_KNOB_OPTIMIZER_KIND), "sgd");
    expect_shown(a, "the lesson holds it");
    screen_close(a);
}
END_TEST

// The other screens say what is wanted and the way back; which knobs turn is seen on the Bench.
START_TEST(every_screen_says_that_a_lesson_is_on)
{
    app *a = screen_open(&golden_looks[0].look);
    screen_keys(a, "L\n\n\n\n\n");
    app_work(a);
    ck_assert_int_eq(a->focus, PANE_LESSON); // what is wanted comes first
    screen_keys(a, "1");
    expect_shown(a, "6 lesson Batch size · h hint · the largest batch that fits");
    screen_keys(a, "2");
    expect_shown(a, "6 lesson Batch size · h hint");
    screen_keys(a, "s ");
    expect_shown(a, "FROZEN");
    screen_keys(a, " 6");
    expect_shown(a, "lesson · Batch size · SANDBOX");
    expect_shown(a, "-   the largest batch that fits");
    screen_keys(a, "1");
    expect_shown(a, "6 lesson Batch size · sandbox, nothing counts: s goes back");
    bool more;
    screen_keys(a, "s");
    screen_keys(a, ":batch.size=128\n");
    (void)app_drain(a, &more);
    expect_shown(a, "lesson Batch size: done. 6 says what is behind it");
    screen_close(a);
}
END_TEST

// Enter, which the page names, is the answer to the question that it brings.
START_TEST(enter_begins_what_it_said_that_it_begins)
{
    app *a = screen_open(&golden_looks[0].look);
    screen_advance(a, 30);
    screen_keys(a, "L\n\n\n\n\n");
    ck_assert_int_eq(a->overlay, OVERLAY_SWITCH);
    expect_shown(a, "Enter ends them and opens wide");
    screen_keys(a, "\n");
    ck_assert_int_eq(a->next.work, PENDING_PRESET);
    screen_close(a);
}
END_TEST

START_TEST(the_pages_are_read_again_and_the_list_is_a_key_away)
{
    app *a = screen_open(&golden_looks[0].look);
    screen_keys(a, "L\n");
    app_key(a, INPUT_RIGHT);
    expect_shown(a, "Here is a batch that does not fit.");
    app_key(a, INPUT_RIGHT);
    ck_assert_int_eq(a->learn.lesson.phase, LESSON_PAGES); // it begins nothing
    app_key(a, INPUT_LEFT);
    expect_shown(a, "A training step holds two kinds of things.");
    app_key(a, INPUT_ESCAPE);
    ck_assert_int_eq(a->focus, PANE_LESSONS);
    screen_keys(a, "6\n\n\n\n");
    app_work(a);
    app_key(a, INPUT_LEFT);
    expect_shown(a, "Here is a batch that does not fit.");
    app_key(a, INPUT_LEFT);
    expect_shown(a, "A training step holds two kinds of things.");
    app_key(a, INPUT_RIGHT);
    app_key(a, INPUT_RIGHT);
    expect_shown(a, "NO  the largest batch that fits");
    screen_keys(a, "L");
    ck_assert_int_eq(a->focus, PANE_LESSONS);
    ck_assert_ptr_nonnull(a->learn.lesson.open);
    expect_shown(a, "6 goes on with Batch size");
    screen_keys(a, "\n"); // what is open is not begun again
    ck_assert_int_eq(a->focus, PANE_LESSON);
    expect_shown(a, "NO  the largest batch that fits");
    screen_close(a);
}
END_TEST

// A hint that was shown some other time is shown again before the next, and counted once.
START_TEST(hints_are_counted_once)
{
    app *a = screen_open(&golden_looks[0].look);
    screen_keys(a, "L\n\n\n\n\n");
    app_work(a);
    a->learn.lesson.progress.hints = 1;
    screen_keys(a, "h");
    expect_shown(a, "Hint 1 of 3");
    ck_assert_uint_eq(a->learn.lesson.progress.hints, 1);
    screen_keys(a, "h");
    expect_shown(a, "Hint 2 of 3");
    ck_assert_uint_eq(a->learn.lesson.progress.hints, 2);
    screen_keys(a, ":batch.size=128\n");
    expect_shown(a, "Done, with 1 knob turned (par is 1) and 2 hints.");
    screen_close(a);
}
END_TEST

// A lesson that cannot be played says why, and so does a turn of it; neither is the end of it.
START_TEST(what_cannot_be_played_is_said)
{
    app *a = screen_open(&golden_looks[0].look);
    fake_lessons_fail("no host memory for this");
    screen_keys(a, "L\n");
    expect_shown(a, "This lesson cannot be played here: no host memory for this");
    screen_keys(a, "\n");
    expect_shown(a, "Esc goes to the list");
    fake_lessons_fail(NULL);
    app_key(a, INPUT_ESCAPE);
    app_key(a, INPUT_ESCAPE);
    screen_keys(a, "6L\n"); // once more
    ck_assert(!a->learn.lesson.is_broken);
    screen_keys(a, "\n\n\n\n");
    app_work(a);
    fake_lessons_fail("a turn that is refused");
    screen_keys(a, ":batch.size=64\n");
    expect_shown(a, "a turn that is refused");
    fake_lessons_fail(NULL);
    screen_keys(a, ":batch.size=128\n");
    expect_shown(a, "Done, with 1 knob turned");
    screen_close(a);
}
END_TEST

// The Doctor, whose fixes are what a lesson asks for, does not come over its page.
START_TEST(the_doctor_does_not_come_over_a_lesson)
{
    app *a = screen_open(&golden_looks[0].look);
    screen_keys(a, "L\n\n\n\n\n");
    app_work(a);
    free(screen_text(a));
    a->feed.live.state = HR_ENGINE_OOM;
    app_freeze(a, false);
    ck_assert_int_eq(a->focus, PANE_LESSON);
    expect_shown(a, "out of memory: 4 is the Doctor, 1 the Bench");
    screen_keys(a, "1");
    a->doctor.has_seen_oom = false;
    app_freeze(a, false);
    ck_assert_int_eq(a->screen, SCREEN_DOCTOR); // on the Bench it does
    expect_shown(a, "the Doctor came");
    screen_close(a);
}
END_TEST

// What is only watched is not ended for a lesson or a situation; pages can be read.
START_TEST(what_is_watched_is_not_ended_by_a_lesson)
{
    app *a = screen_open(&golden_looks[0].look);
    a->feed.watched = "/run/headroom/7.sock";
    screen_keys(a, "L\n");
    expect_shown(a, "A training step holds two kinds of things.");
    screen_keys(a, "\n\n\n\n");
    ck_assert_int_eq(a->overlay, OVERLAY_NONE);
    ck_assert_int_eq(a->next.work, PENDING_NONE);
    expect_shown(a, "this training is another process's");
    a->focus = PANE_SITUATIONS;
    screen_keys(a, "\n");
    ck_assert_int_eq(a->overlay, OVERLAY_NONE);
    ck_assert_int_eq(a->next.work, PENDING_NONE);
    screen_close(a);
}
END_TEST

// What was done is there when the workbench is opened again, with its hints and the par beside it.
START_TEST(what_was_done_of_a_lesson_is_kept)
{
    char path[] = "/tmp/headroom-learn-XXXXXX", file[64];
    ck_assert_ptr_nonnull(mkdtemp(path));
    (void)snprintf(file, sizeof file, "%s/workbench", path);
    for (int again = 0; again < 2; again++) {
        app *a = screen_open(&golden_looks[0].look);
        learn_remember(&a->learn, file);
        screen_keys(a, "L");
        expect_shown(a, again ? " done  05-batch-size" : "       05-batch-size");
        screen_keys(a, "\n");
        if (again) { // done some other time: n needs no doing again
            ck_assert_uint_eq(a->learn.lesson.progress.hints, 1);
            screen_keys(a, "n");
            ck_assert_str_eq(hr_lesson_tell(a->learn.lesson.open)->name, "06-mixed-precision");
        } else {
            screen_keys(a, "\n\n\n\n");
            app_work(a);
            screen_keys(a, "h:batch.size=128\n");
            expect_shown(a, "Done, with 1 knob turned (par is 1) and 1 hint.");
        }
        screen_close(a);
    }
    (void)snprintf(file, sizeof file, "%s/lessons", path);
    (void)remove(file);
    (void)remove(path);
}
END_TEST

// A lesson that takes its time does not take the screen's.
START_TEST(a_lesson_is_played_beside_the_screen)
{
    app *a = screen_open(&golden_looks[0].look);
    fake_lessons_take(1000);
    screen_keys(a, "L\n");
    expect_shown(a, "One moment");
    screen_keys(a, "\n");
    ck_assert_int_eq(a->learn.lesson.phase, LESSON_PAGES);
    fake_lessons_take(1);
    expect_shown(a, "A training step holds two kinds of things.");
    screen_keys(a, "\n\n\n\n");
    app_work(a);
    free(screen_text(a));
    fake_lessons_take(1000);
    screen_keys(a, ":batch.size=64\n");
    free(screen_text(a));
    ck_assert(learn_waits(&a->learn));
    screen_keys(a, ":batch.size=128\n"); // meanwhile: the one before says nothing any more
    fake_lessons_take(1);
    free(screen_text(a));
    free(screen_text(a));
    ck_assert_int_eq(a->learn.lesson.phase, LESSON_AFTER);
    screen_close(a);
}
END_TEST

START_TEST(what_may_not_be_turned_is_said_whole_and_not_played)
{
    static const screen_look narrow = {.rows = 16, .columns = 60};
    app *a = screen_open(&narrow);
    screen_keys(a, "L\n\n\n\n\n");
    app_work(a);
    screen_keys(a, "6");
    free(screen_text(a));
    const unsigned played = fake_lessons_played();
    ck_assert_int_eq(hr_knobs_set_pairs(&a->feed.knobs, "optimizer.kind=sgd", NULL), HR_OK);
    char *text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "NO  optimizer.kind stays"));
    ck_assert_msg(strstr(text, "in it)") != NULL, "%s", text);
    free(text);
    ck_assert_uint_eq(fake_lessons_played(), played);
    screen_close(a);
}
END_TEST

SUITE_MAIN("tui pipeline", a_lesson_is_done_in_the_workbench, a_knob_that_the_lesson_holds_is_not_turned,
           every_screen_says_that_a_lesson_is_on, enter_begins_what_it_said_that_it_begins,
           the_pages_are_read_again_and_the_list_is_a_key_away, hints_are_counted_once,
           a_lesson_is_played_beside_the_screen, what_cannot_be_played_is_said,
           the_doctor_does_not_come_over_a_lesson, what_is_watched_is_not_ended_by_a_lesson,
           what_was_done_of_a_lesson_is_kept, a_knob_that_is_turned_before_the_lesson_is_looked_at_counts,
           what_may_not_be_turned_is_said_whole_and_not_played, a_sandbox_is_left_with_the_knobs_as_they_were,
           the_pipeline_looks_as_agreed, who_waits_is_what_the_steps_and_the_queue_say,
           the_stage_to_blame_is_named_with_what_would_help, a_pipeline_that_is_waited_for_looks_as_agreed,
           a_device_that_only_plans_says_so, what_is_not_copied_and_not_pinned_is_said,
           enter_edits_the_setting_under_the_cursor, learn_looks_as_agreed,
           every_term_can_be_selected_and_is_explained, a_situation_is_opened_as_a_preset)
