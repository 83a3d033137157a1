// SPDX-License-Identifier: Apache-2.0
// The log of runs, and the screen that compares them.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "headroom/terms.h"

#include "app/tui/shell/panes.h"
#include "tests/tui/fake_engine.h"
#include "tests/tui/golden.h"
#include "tests/tui/suite.h"

// ---- the log --------------------------------------------------------------------------------------------------

typedef struct told {
    run_log *log;
    run_state *model;
    hr_knobs knobs;
    uint64_t steps;
} told;

static told begin(void)
{
    told t = {.log = calloc(1, sizeof *t.log), .model = calloc(1, sizeof *t.model)};
    ck_assert(t.log != NULL && t.model != NULL);
    run_state_init(t.model);
    t.model->limit_bytes = 1000;
    hr_knobs_init(&t.knobs);
    return t;
}

static void end(told *t)
{
    free(t->log);
    free(t->model);
}

static void tell(told *t, hr_event e)
{
    e.version = HR_EVENT_VERSION;
    run_state_feed(t->model, &e);
    run_log_event(t->log, t->model, &t->knobs, "demo", &e);
}

static void tell_note(told *t, hr_event_kind kind, uint64_t count)
{
    hr_event e = {.kind = (uint8_t)kind};
    e.u.note.count = count;
    tell(t, e);
}

// Another configuration, and its build.
static void turn_batch(told *t, uint32_t batch)
{
    char pair[32];
    snprintf(pair, sizeof pair, "batch.size=%u", batch);
    ck_assert_int_eq(hr_knobs_set_pair(&t->knobs, pair, NULL), HR_OK);
    tell_note(t, HR_EVENT_KNOB, HR_KNOB_BATCH_SIZE);
    tell_note(t, HR_EVENT_BUILD, 0);
}

static void tell_step(told *t, uint64_t peak_bytes, double seconds, double loss)
{
    hr_event e = {.kind = HR_EVENT_STEP, .step = (uint32_t)++t->steps};
    e.u.step = (hr_event_step){.loss = loss,
                               .accuracy = (double)NAN,
                               .duration_ns = (uint64_t)(seconds * 1e9),
                               .samples = 10,
                               .peak_in_use_bytes = peak_bytes};
    tell(t, e);
}

START_TEST(a_turn_or_a_build_ends_a_run_and_its_next_step_begins_another)
{
    told t = begin();
    tell_note(&t, HR_EVENT_BUILD, 0);
    ck_assert_uint_eq(t.log->count, 0);
    tell_step(&t, 500, 0.1, 3);
    tell_step(&t, 700, 0.3, 2);
    tell_step(&t, 600, 0.2, 1);
    const run *r = run_log_current(t.log);
    ck_assert_ptr_nonnull(r);
    ck_assert_double_eq(r->measures.value[MEASURE_PEAK], 700);
    ck_assert_double_eq(r->measures.value[MEASURE_STEPS], 3);
    ck_assert_double_eq_tol(r->measures.value[MEASURE_SECONDS], 0.2, 1e-9);
    ck_assert_double_eq_tol(r->measures.value[MEASURE_EXAMPLES], 50, 1e-6);
    ck_assert_double_eq(r->measures.value[MEASURE_LOSS_FIRST], 3);
    ck_assert_double_eq(r->measures.value[MEASURE_LOSS_LAST], 1);
    ck_assert_double_eq(r->measures.value[MEASURE_LIMIT], 1000);
    tell_note(&t, HR_EVENT_KNOB, HR_KNOB_BATCH_SIZE);
    tell_note(&t, HR_EVENT_BUILD, 0);
    ck_assert_uint_eq(t.log->count, 1); // ended, and no other has begun
    ck_assert_int_eq(run_log_at(t.log, 0)->result, RUN_ENDED);
    ck_assert_ptr_null(run_log_current(t.log));
    ck_assert_int_eq(hr_knobs_set_pair(&t.knobs, "batch.size=8", NULL), HR_OK);
    tell_step(&t, 300, 0.1, 0.5);
    ck_assert_uint_eq(t.log->count, 2);
    ck_assert_uint_eq(run_log_current(t.log)->number, 2);
    char pairs[128];
    ck_assert_str_eq(run_pairs(run_log_at(t.log, 0), run_log_at(t.log, 1), pairs, sizeof pairs),
                     "batch.size=8");
    end(&t);
}
END_TEST

START_TEST(a_training_that_comes_back_to_a_configuration_goes_on_with_its_run)
{
    told t = begin();
    char text[512];
    static const uint32_t batches[] = {128, 64, 128, 64, 256, 128};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        turn_batch(&t, batches[i]);
        for (int step = 0; step < RUN_TIMED_STEPS; step++) {
            tell_step(&t, 100 * batches[i], 0.1, 9.0 - (double)t.steps / 10);
        }
    }
    ck_assert_uint_eq(t.log->count, 3);
    ck_assert_uint_eq(run_log_current(t.log)->number, 1);
    ck_assert_int_eq(run_log_at(t.log, 0)->result, RUN_RUNNING);
    ck_assert_int_eq(run_log_at(t.log, 2)->result, RUN_ENDED);
    ck_assert_double_eq(run_log_at(t.log, 0)->measures.value[MEASURE_STEPS], 3 * RUN_TIMED_STEPS);
    ck_assert_double_eq(run_log_at(t.log, 1)->measures.value[MEASURE_STEPS], 2 * RUN_TIMED_STEPS);
    ck_assert_uint_eq(run_log_at(t.log, 2)->goes_on_from, 2); // whose weights were the newest
    run_pair pair = {run_log_at(t.log, 0), run_log_at(t.log, 2)};
    run_verdict(&pair, text, sizeof text);
    ck_assert_msg(strstr(text, "ends at a loss") == NULL, "%s", text);
    pair = (run_pair){run_log_at(t.log, 2), run_log_at(t.log, 0)};
    run_verdict(&pair, text, sizeof text);
    ck_assert_msg(strstr(text, "b was gone back to after another: the losses do not compare") != NULL, "%s",
                  text);
    t.steps = 0; // anew, and not the same
    turn_batch(&t, 64);
    tell_step(&t, 100, 0.1, 9);
    ck_assert_uint_eq(t.log->count, 4);
    ck_assert_uint_eq(run_log_current(t.log)->began_at, 0);
    ck_assert_uint_eq(run_log_current(t.log)->goes_on_from, 0);
    run_log_fail(t.log);
    tell_step(&t, 100, 0.1, 9); // that one stays as it ended
    ck_assert_int_eq(run_log_at(t.log, 3)->result, RUN_FAILED);
    end(&t);
}
END_TEST

START_TEST(what_sets_a_run_apart_is_told_first)
{
    told t = begin();
    char text[256];
    tell_step(&t, 1, 0.1, 3);
    ck_assert_int_eq(hr_knobs_set_pair(&t.knobs, "batch.accumulate=2", NULL), HR_OK);
    turn_batch(&t, 64);
    tell_step(&t, 1, 0.1, 3);
    ck_assert_int_eq(hr_knobs_set_pair(&t.knobs, "optimizer.kind=sgd", NULL), HR_OK);
    turn_batch(&t, 64);
    tell_step(&t, 1, 0.1, 3);
    run_distinction(t.log, run_log_at(t.log, 2), text, sizeof text);
    ck_assert_str_eq(text, "optimizer.kind=sgd batch.size=64 batch.accumulate=2");
    end(&t);
}
END_TEST

START_TEST(what_does_not_fit_is_one_run_however_often_it_is_told)
{
    told t = begin();
    for (int again = 0; again < 3; again++) {
        tell_note(&t, HR_EVENT_BUILD, 0);
        tell_note(&t, HR_EVENT_OOM, 0);
        tell_note(&t, HR_EVENT_STATE, HR_ENGINE_OOM);
        tell_note(&t, HR_EVENT_STATE, HR_ENGINE_OOM);
        ck_assert_uint_eq(t.log->count, 1);
    }
    ck_assert_int_eq(run_log_newest(t.log)->result, RUN_OOM);
    ck_assert(isnan(run_log_newest(t.log)->measures.value[MEASURE_PEAK]));
    hr_report report = {.oom = {.cause = HR_OOM_FRAGMENTATION, .limit_bytes = 77}};
    run_log_report(t.log, &report);
    ck_assert_str_eq(run_log_newest(t.log)->cause, "fragmentation");
    turn_batch(&t, 8);
    tell_step(&t, 300, 0.1, 0.5);
    tell_note(&t, HR_EVENT_STATE, HR_ENGINE_OOM); // a leak: in the middle of a run
    ck_assert_uint_eq(t.log->count, 2);
    ck_assert_int_eq(run_log_newest(t.log)->result, RUN_OOM);
    ck_assert_double_eq(run_log_newest(t.log)->measures.value[MEASURE_PEAK], 300);
    end(&t);
}
END_TEST

START_TEST(a_report_of_another_configuration_is_passed_over)
{
    told t = begin();
    hr_report report = {.memory = {.peak_in_use_bytes = 500, .waste_bytes = 12, .limit_bytes = 1000}};
    tell_step(&t, 400, 0.1, 3);
    run_log_report(t.log, &report);
    ck_assert(isnan(run_log_newest(t.log)->measures.value[MEASURE_WASTE]));
    tell_step(&t, 500, 0.1, 3);
    run_log_report(t.log, &report);
    ck_assert_double_eq(run_log_newest(t.log)->measures.value[MEASURE_WASTE], 12);
    ck_assert_double_eq(run_log_newest(t.log)->measures.value[MEASURE_STEPS], 2);
    report.memory.waste_bytes = 99;
    tell_note(&t, HR_EVENT_KNOB, HR_KNOB_BATCH_SIZE);
    run_log_report(t.log, &report);
    ck_assert_double_eq(run_log_newest(t.log)->measures.value[MEASURE_WASTE], 12);
    end(&t);
}
END_TEST

START_TEST(a_full_log_keeps_the_first_run_the_pinned_one_and_the_newest)
{
    told t = begin();
    for (uint32_t i = 1; i <= 5 * RUN_LOG_MAX; i++) {
        turn_batch(&t, i);
        tell_step(&t, i, 0.1, 3);
        t.log->pinned = i == 40 ? 40 : t.log->pinned;
        ck_assert_uint_eq(run_log_newest(t.log)->number, i);
        ck_assert_uint_eq(run_log_at(t.log, 0)->number, 1);
        ck_assert(i < 40 || run_log_find(t.log, 40) != NULL);
        ck_assert_uint_le(t.log->count, RUN_LOG_MAX);
        for (size_t row = 1; row < t.log->count; row++) {
            ck_assert_uint_lt(run_log_at(t.log, row - 1)->number, run_log_at(t.log, row)->number);
            ck_assert_double_eq(run_log_at(t.log, row)->measures.value[MEASURE_PEAK],
                                run_log_at(t.log, row)->number);
        }
    }
    ck_assert_uint_eq(t.log->count, RUN_LOG_MAX);
    end(&t);
}
END_TEST

START_TEST(two_runs_are_the_marked_ones_or_the_selected_one_against_the_baseline_or_the_first)
{
    told t = begin();
    for (uint32_t i = 1; i <= 4; i++) {
        turn_batch(&t, i);
        tell_step(&t, 1, 0.1, 3);
    }
    const uint64_t marked[] = {4, 2}, gone[] = {9, 3};
    const struct {
        const uint64_t *marked;
        unsigned marks;
        uint32_t pinned, selected, a, b;
    } rows[] = {{NULL, 0, 0, 3, 1, 3}, {NULL, 0, 0, 0, 1, 4},   {NULL, 0, 2, 3, 2, 3},
                {NULL, 0, 3, 3, 1, 3}, {marked, 2, 3, 1, 2, 4}, {marked, 1, 3, 1, 4, 1},
                {gone, 2, 0, 4, 3, 4}, {NULL, 0, 0, 1, 1, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        t.log->pinned = rows[i].pinned;
        run_pair pair = run_log_pair(t.log, rows[i].marked, rows[i].marks, rows[i].selected);
        ck_assert_uint_eq(pair.a->number, rows[i].a);
        ck_assert_uint_eq(pair.b == NULL ? 0 : pair.b->number, rows[i].b);
    }
    end(&t);
}
END_TEST

// Independent of the log: what the sentences say of seeded pairs of numbers.
START_TEST(the_verdict_says_less_exactly_where_it_is_less)
{
    uint32_t seed = 7;
    for (int i = 0; i < 2000; i++) {
        measures a = measures_unknown(), b = a;
        char text[512];
        seed = seed * 1664525u + 1013904223u;
        double before = (double)(seed >> 12) * 1024, after = (double)(seed & 0xFFFFF) * 1024;
        a.value[MEASURE_PEAK] = before;
        b.value[MEASURE_PEAK] = after;
        measures_verdict(&a, &b, text, sizeof text);
        ck_assert_msg((strstr(text, " less at the peak") != NULL) == (after < before), "%s", text);
        ck_assert_msg((strstr(text, " more at the peak") != NULL) == (after > before), "%s", text);
        ck_assert(strstr(text, "a step") == NULL && text[strlen(text) - 1] == '.');
    }
}
END_TEST

START_TEST(what_goes_on_from_other_weights_has_no_verdict_on_its_loss)
{
    told t = begin();
    char text[512];
    for (int i = 0; i < 2 * RUN_TIMED_STEPS; i++) {
        tell_step(&t, 500, 0.2, 9.0 - i);
        if (i + 1 == RUN_TIMED_STEPS) {
            turn_batch(&t, 8);
        }
    }
    run_pair pair = {run_log_at(t.log, 0), run_log_at(t.log, 1)};
    ck_assert_uint_eq(pair.a->began_at, 0);
    ck_assert_uint_eq(pair.b->began_at, RUN_TIMED_STEPS);
    ck_assert_uint_eq(pair.b->goes_on_from, 1);
    run_verdict(&pair, text, sizeof text);
    ck_assert_msg(strstr(text, "ends at a loss") == NULL, "%s", text);
    ck_assert_msg(strstr(text, "b goes on from run 1's weights") != NULL, "%s", text);
    t.steps = 0; // from the beginning again: as fair as the first
    tell_note(&t, HR_EVENT_BUILD, 0);
    for (int i = 0; i < RUN_TIMED_STEPS; i++) {
        tell_step(&t, 500, 0.1, 4.0 - i);
    }
    pair = (run_pair){run_log_at(t.log, 0), run_log_at(t.log, 2)};
    run_verdict(&pair, text, sizeof text);
    ck_assert_msg(strstr(text, "ends at a loss 5.0000 lower") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "takes 100 ms less a step") != NULL && strstr(text, "goes on") == NULL, "%s",
                  text);
    end(&t);
}
END_TEST

START_TEST(times_of_a_few_steps_and_of_none_are_not_compared)
{
    for (int steps = 1; steps < 2 * RUN_TIMED_STEPS; steps++) {
        told t = begin();
        char text[512];
        for (int run_number = 0; run_number < 2; run_number++) {
            t.steps = 0;
            tell_note(&t, HR_EVENT_BUILD, 0);
            for (int i = 0; i < (run_number == 0 ? 2 * RUN_TIMED_STEPS : steps); i++) {
                tell_step(&t, 500, run_number == 0 ? 0.2 : 0.1, 1);
            }
        }
        run_pair pair = {run_log_at(t.log, 0), run_log_at(t.log, 1)};
        run_verdict(&pair, text, sizeof text);
        ck_assert_msg((strstr(text, "a step") != NULL) == (steps >= RUN_TIMED_STEPS), "%d: %s", steps, text);
        end(&t);
    }
    told t = begin();
    tell_step(&t, 500, 0, 1);
    ck_assert(isnan(run_log_at(t.log, 0)->measures.value[MEASURE_SECONDS]));
    end(&t);
}
END_TEST

// A column has eight places; what is not nothing is not shown as nothing.
START_TEST(every_byte_value_fits_its_cell)
{
    uint32_t seed = 11;
    for (int i = 0; i < 20000; i++) {
        measures m = measures_unknown();
        char text[FORMAT_MAX];
        seed = seed * 1664525u + 1013904223u;
        m.value[MEASURE_PEAK] = (double)(UINT64_C(1) << (seed >> 27)) * (1 + (seed & 0xFFFF) / 65536.0);
        seed = seed * 1664525u + 1013904223u;
        m.value[MEASURE_LIMIT] =
            (double)(UINT64_C(1) << (10 + (seed >> 27))) * (1 + (seed & 0xFFFF) / 65536.0);
        m.value[MEASURE_PEAK] = (seed & 7) == 0 ? UNKNOWN : floor(m.value[MEASURE_PEAK]);
        m.value[MEASURE_WASTE] = 256;
        const byte_unit unit = measures_unit(&m, NULL);
        for (int id = 0; id <= MEASURE_WASTE; id++) {
            measure_format((measure_id)id, m.value[id], unit, text);
            ck_assert_msg(isnan(m.value[id]) || strlen(text) <= 8, "%s of %.0f", text, m.value[id]);
            ck_assert_msg(isnan(m.value[id]) || strspn(text, "0.") < strlen(text), "%s of %.0f", text,
                          m.value[id]);
        }
    }
    char text[FORMAT_MAX];
    ck_assert_str_eq(format_loss_short(4.52e-5, text), "4.5e-5");
    ck_assert_str_eq(format_loss_short(1.25e12, text), "1.2e12");
    ck_assert_str_eq(format_loss_short(2.304, text), "2.3040");
    ck_assert_str_eq(format_count(93630684123.0, text), "93.63G");
    ck_assert_str_eq(format_count(99999999.0, text), "99999999");
    ck_assert_str_eq(format_count(999999999.0, text), "1G");
}
END_TEST

// ---- the screen -----------------------------------------------------------------------------------------------

static void three_runs(app *a)
{
    screen_advance(a, 50);
    screen_keys(a, ":set batch.size 64\n");
    screen_advance(a, 60);
    screen_keys(a, ":set execution.mode graph\n");
    screen_advance(a, 40);
    screen_keys(a, ":set batch.size 512\n");
    screen_advance(a, 4);
    screen_keys(a, "5");
    app_key(a, INPUT_DOWN);
}

START_TEST(the_runs_look_as_agreed)
{
    golden_all("runs", three_runs);
}
END_TEST

START_TEST(enter_looks_and_a_turns_every_knob_back_and_z_undoes_it_in_one_step)
{
    app *a = screen_open(&golden_looks[0].look);
    three_runs(a);
    ck_assert_uint_eq(a->feed.runs.count, 4);
    ck_assert_int_eq(run_log_newest(&a->feed.runs)->result, RUN_OOM);
    hr_knobs before = a->feed.knobs;
    app_key(a, INPUT_END);
    app_key(a, INPUT_ENTER); // the first run
    ck_assert_int_eq(a->focus, PANE_DIFF);
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        ck_assert(!knob_edit_differs(&a->feed.knobs, &before, (hr_knob_id)id));
    }
    screen_keys(a, "a");
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        ck_assert(!knob_edit_differs(&a->feed.knobs, &a->feed.runs.runs[0].knobs, (hr_knob_id)id));
    }
    screen_advance(a, 10);
    ck_assert_int_eq(a->feed.live.state, HR_ENGINE_RUNNING);
    ck_assert_uint_eq(a->feed.runs.count, 4); // the run that was there goes on
    ck_assert_uint_eq(run_log_current(&a->feed.runs)->number, 1);
    screen_keys(a, "z");
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        ck_assert(!knob_edit_differs(&a->feed.knobs, &before, (hr_knob_id)id));
    }
    screen_close(a);
}
END_TEST

START_TEST(undo_and_redo_go_back_to_the_runs_that_exist)
{
    app *a = screen_open(&golden_looks[0].look);
    three_runs(a);
    for (int i = 0; i < 3; i++) {
        screen_keys(a, "zz");
        screen_advance(a, 6);
        ck_assert_uint_eq(run_log_current(&a->feed.runs)->number, 2);
        screen_keys(a, "Z");
        screen_advance(a, 6);
        ck_assert_uint_eq(run_log_current(&a->feed.runs)->number, 3);
        screen_keys(a, "Z");
        screen_advance(a, 6);
        ck_assert_uint_eq(run_log_current(&a->feed.runs)->number, 4);
        ck_assert_int_eq(run_log_current(&a->feed.runs)->result, RUN_OOM);
        ck_assert_uint_eq(a->feed.runs.count, 4);
    }
    screen_close(a);
}
END_TEST

START_TEST(a_run_bears_the_name_that_it_is_given)
{
    app *a = screen_open(&golden_looks[0].look);
    three_runs(a);
    screen_keys(a, ":name half the batch\n"); // run 3 is selected
    ck_assert_str_eq(run_log_find(&a->feed.runs, 3)->name, "half the batch");
    char *text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "half the batch: batch.size=64"));
    free(text);
    screen_keys(a, "1:name first of all\n");
    ck_assert_str_eq(run_log_current(&a->feed.runs)->name, "first of all");
    screen_keys(a, ":name\n");
    ck_assert_str_eq(run_log_current(&a->feed.runs)->name, "");
    screen_close(a);
}
END_TEST

START_TEST(what_ran_out_of_memory_is_turned_back_to_only_when_asked_twice_in_a_row)
{
    app *a = screen_open(&golden_looks[0].look);
    three_runs(a);
    screen_keys(a, "z"); // it trains again
    screen_advance(a, 5);
    hr_knobs before = a->feed.knobs;
    size_t row = 0;
    app_key(a, INPUT_HOME);
    while (a->feed.runs.runs[a->feed.runs.count - 1 - row].result != RUN_OOM) {
        app_key(a, INPUT_DOWN);
        ck_assert_uint_lt(++row, a->feed.runs.count);
    }
    static const char *const asks[] = {"a", ".a"}; // what comes between forgets the first
    for (size_t k = 0; k < sizeof asks / sizeof *asks; k++) {
        screen_keys(a, asks[k]);
        ck_assert_msg(strstr(a->feed.message.text, "ran out of memory") != NULL, "%s", a->feed.message.text);
        ck_assert(!knob_edit_differs(&a->feed.knobs, &before, HR_KNOB_BATCH_SIZE));
    }
    screen_keys(a, "a");
    ck_assert_int_eq(hr_knob_int(&a->feed.knobs, HR_KNOB_BATCH_SIZE), 512);
    screen_close(a);
}
END_TEST

START_TEST(runs_that_never_ended_a_step_have_no_chart_but_a_sentence)
{
    app *a = screen_open(&golden_looks[2].look);
    screen_keys(a, ":set device.vram 1 MiB\n");
    screen_advance(a, 4);
    screen_keys(a, ":set device.vram 2 MiB\n");
    screen_advance(a, 4);
    screen_keys(a, "5");
    ck_assert_uint_eq(a->feed.runs.count, 2);
    char *text = screen_text(a);
    ck_assert_msg(strstr(text, "Neither of these runs has ended a step") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "Neither fits: a runs out of memory by") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "1048576") == NULL && strstr(text, "+1.00") != NULL, "%s", text);
    ck_assert_msg(strstr(text, " us") == NULL, "%s", text); // no time either
    free(text);
    screen_close(a);
}
END_TEST

START_TEST(the_baseline_is_a_run_of_the_log_and_unpinning_forgets_it)
{
    app *a = screen_open(&golden_looks[0].look);
    screen_advance(a, 20);
    screen_keys(a, "b");
    ck_assert_uint_eq(a->feed.runs.pinned, 1);
    screen_keys(a, ":set batch.size 64\n");
    screen_advance(a, 20);
    screen_keys(a, "5");
    char *text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "1b"));
    free(text);
    screen_keys(a, "B");
    ck_assert_uint_eq(a->feed.runs.pinned, 0);
    screen_close(a);
}
END_TEST

// ---- export ---------------------------------------------------------------------------------------------------

static char *read_whole(const char *path)
{
    char *text = calloc(1, 1 << 20);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL && text != NULL, "%s", path);
    ck_assert_uint_gt(fread(text, 1, (1 << 20) - 1, file), 0);
    fclose(file);
    return text;
}

static size_t count_of(const char *text, const char *what)
{
    size_t count = 0;
    for (; (text = strstr(text, what)) != NULL; text++) {
        count++;
    }
    return count;
}

// What the message advises, as it would be typed.
static void follow_advice(app *a)
{
    char line[256];
    const char *advice = strstr(a->feed.message.text, "\ntry: :");
    ck_assert_msg(advice != NULL, "%s", a->feed.message.text);
    snprintf(line, sizeof line, "%s\n", advice + strlen("\ntry: "));
    app_key(a, INPUT_ESCAPE);
    screen_keys(a, line);
}

START_TEST(what_is_turned_is_exported_and_replaces_nothing_unasked)
{
    char folder[] = "/tmp/headroom-export-XXXXXX", line[256], path[128];
    app *a = screen_open(&golden_looks[0].look);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/mine.py", folder);
    snprintf(line, sizeof line, ":export pytorch %s\n", path);
    screen_keys(a, line);
    ck_assert_msg(a->feed.message.kind == MESSAGE_NOTE, "%s", a->feed.message.text);
    char *text = read_whole(path);
    ck_assert_str_eq(text, "pytorch of demo, batch 128\n");
    free(text);
    screen_keys(a, ":set batch.size 64\n");
    screen_keys(a, line); // again
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
    follow_advice(a);
    ck_assert_msg(a->feed.message.kind == MESSAGE_NOTE, "%s", a->feed.message.text);
    text = read_whole(path);
    ck_assert_str_eq(text, "pytorch of demo, batch 64\n");
    free(text);
    unlink(path);
    app_key(a, INPUT_ESCAPE);
    screen_keys(a, ":export pytorch\n");
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "try: :export preset mine.yaml"));
    ck_assert_int_eq(rmdir(folder), 0);
    screen_close(a);
}
END_TEST

START_TEST(runs_are_exported_whole_and_replace_no_file_unasked)
{
    char folder[] = "/tmp/headroom-runs-XXXXXX", line[256], path[128];
    app *a = screen_open(&golden_looks[0].look);
    three_runs(a);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/runs.csv", folder);
    snprintf(line, sizeof line, ":export-runs %s\n", path);
    screen_keys(a, line);
    ck_assert_msg(a->feed.message.kind == MESSAGE_NOTE, "%s", a->feed.message.text);
    char *csv = read_whole(path);
    ck_assert_uint_eq(count_of(csv, "\n"), 1 + a->feed.runs.count);
    snprintf(line, sizeof line, "\n2,\"\",\"demo\",\"batch.size=64\",ended,,%.0f,67108864,",
             a->feed.runs.runs[1].measures.value[MEASURE_PEAK]);
    ck_assert_ptr_nonnull(strstr(csv, line));
    snprintf(line, sizeof line, ":export-runs %s\n", path);
    ck_assert_ptr_nonnull(
        strstr(csv, "\n4,\"\",\"demo\",\"batch.size=512 execution.mode=graph\",oom,capacity,,"));
    free(csv);
    screen_keys(a, line); // again
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "is there already, and stays as it is"));
    FILE *other = fopen(path, "w");
    fclose(other);
    follow_advice(a);
    csv = read_whole(path);
    ck_assert_uint_eq(count_of(csv, "\n"), 1 + a->feed.runs.count);
    free(csv);
    unlink(path);
    ck_assert_int_eq(mkdir(path, 0700), 0); // nothing but a file gives way
    app_key(a, INPUT_ESCAPE);
    snprintf(line, sizeof line, ":export-runs! %s\n", path);
    screen_keys(a, line);
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
    ck_assert_int_eq(rmdir(path), 0);
    app_key(a, INPUT_ESCAPE);
    snprintf(path, sizeof path, "%s/runs.json", folder);
    snprintf(line, sizeof line, ":export-runs %s\n", path);
    screen_keys(a, line);
    char *json = read_whole(path);
    ck_assert_uint_eq(count_of(json, "\"peak_in_use_bytes\""), a->feed.runs.count);
    ck_assert_uint_eq(count_of(json, "null, \"limit_bytes\""), 1); // the peak of the one that did not fit
    free(json);
    unlink(path);
    app_key(a, INPUT_ESCAPE);
    screen_keys(a, ":export-runs runs.txt\n");
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
    ck_assert_int_eq(rmdir(folder), 0); // nothing else was left there
    screen_close(a);
}
END_TEST

START_TEST(every_heading_of_every_table_is_in_the_glossary)
{
    for (int pane = 0; pane < PANE_FOCUS_COUNT; pane++) {
        const table_source *table = pane_ops_of((pane_id)pane)->table;
        for (unsigned i = 0; table != NULL && i < table->column_count; i++) {
            ck_assert_msg(hr_term_find(table->columns[i].term) != NULL, "no term %s", table->columns[i].term);
        }
    }
    for (int id = 0; id < MEASURE_ALL; id++) {
        ck_assert_msg(hr_term_find(measure_row_of((measure_id)id)->term) != NULL, "no term %s",
                      measure_row_of((measure_id)id)->term);
    }
}
END_TEST

START_TEST(a_column_is_explained_by_what_it_shows)
{
    app *a = screen_open(&golden_looks[0].look);
    three_runs(a);
    screen_keys(a, "c");
    for (int i = 0; i < 4; i++) {
        app_key(a, INPUT_DOWN);
    }
    char *text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "the most that the allocator could take in this run"));
    ck_assert_ptr_null(strstr(text, "for `pack`"));
    free(text);
    app_key(a, INPUT_ESCAPE);
    screen_keys(a, ":sort seconds\n?");
    text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "seconds: mean time of the steps of this run"));
    free(text);
    screen_close(a);
}
END_TEST

START_TEST(a_baseline_that_is_pinned_in_a_frozen_view_is_the_run_that_is_shown)
{
    app *a = screen_open(&golden_looks[1].look);
    screen_advance(a, 10);
    screen_keys(a, "5 ");
    const uint32_t shown = run_log_newest(&a->feed.runs)->number;
    screen_keys(a, "<");
    screen_advance(a, 10); // another run, unseen
    ck_assert_uint_gt(run_log_newest(&a->feed.runs)->number, shown);
    screen_keys(a, "b");
    ck_assert_uint_eq(a->feed.runs.pinned, shown);
    ck_assert_uint_eq(feed_runs(&a->feed)->pinned, shown);
    screen_keys(a, "r"); // paused, unseen too
    screen_advance(a, 2);
    char *text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "running"));
    ck_assert_ptr_null(strstr(text, "paused"));
    free(text);
    screen_keys(a, " B");
    ck_assert_uint_eq(a->feed.runs.pinned, 0);
    screen_close(a);
}
END_TEST

START_TEST(a_frozen_view_of_runs_stands_still)
{
    app *a = screen_open(&golden_looks[1].look);
    three_runs(a);
    screen_keys(a, "z"); // it trains again
    screen_advance(a, 5);
    screen_keys(a, " ");
    free(screen_text(a)); // the note goes with the next key
    char *before = screen_text(a);
    screen_advance(a, 30);
    char *after = screen_text(a);
    ck_assert_str_eq(before, after);
    screen_keys(a, " ");
    char *later = screen_text(a);
    ck_assert_str_ne(before, later);
    free(before);
    free(after);
    free(later);
    screen_close(a);
}
END_TEST

START_TEST(runs_of_two_presets_say_so)
{
    app *a = screen_open(&golden_looks[0].look);
    screen_advance(a, 5);
    screen_keys(a, ":preset wide\ny");
    app_work(a);
    screen_keys(a, ":set batch.size 64\n");
    screen_advance(a, 5);
    screen_keys(a, "5");
    char *text = screen_text(a), *diff = strstr(text, "diff");
    ck_assert_ptr_nonnull(strstr(text, "wide batch.size=64"));
    ck_assert(diff != NULL && strstr(diff, "preset") != NULL);
    free(text);
    app_key(a, INPUT_END);
    screen_keys(a, "a"); // another preset's knobs are not for this model
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_NOTE);
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "was of the preset demo"));
    screen_close(a);
}
END_TEST

SUITE_MAIN("tui runs", a_column_is_explained_by_what_it_shows,
           a_baseline_that_is_pinned_in_a_frozen_view_is_the_run_that_is_shown, runs_of_two_presets_say_so,
           a_frozen_view_of_runs_stands_still, every_heading_of_every_table_is_in_the_glossary,
           a_turn_or_a_build_ends_a_run_and_its_next_step_begins_another,
           a_training_that_comes_back_to_a_configuration_goes_on_with_its_run,
           what_sets_a_run_apart_is_told_first, undo_and_redo_go_back_to_the_runs_that_exist,
           a_run_bears_the_name_that_it_is_given, what_does_not_fit_is_one_run_however_often_it_is_told,
           a_report_of_another_configuration_is_passed_over,
           a_full_log_keeps_the_first_run_the_pinned_one_and_the_newest,
           two_runs_are_the_marked_ones_or_the_selected_one_against_the_baseline_or_the_first,
           the_verdict_says_less_exactly_where_it_is_less, the_runs_look_as_agreed,
           enter_looks_and_a_turns_every_knob_back_and_z_undoes_it_in_one_step,
           what_ran_out_of_memory_is_turned_back_to_only_when_asked_twice_in_a_row,
           what_goes_on_from_other_weights_has_no_verdict_on_its_loss,
           times_of_a_few_steps_and_of_none_are_not_compared, every_byte_value_fits_its_cell,
           runs_that_never_ended_a_step_have_no_chart_but_a_sentence,
           what_is_turned_is_exported_and_replaces_nothing_unasked,
           runs_are_exported_whole_and_replace_no_file_unasked,
           the_baseline_is_a_run_of_the_log_and_unpinning_forgets_it)
