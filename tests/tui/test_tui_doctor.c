// SPDX-License-Identifier: Apache-2.0
// The Doctor: what fits after an out-of-memory, and what is found before there is one.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/units.h"

#include "app/tui/feed/measures.h"
#include "app/tui/screens/bench/bench.h"
#include "app/tui/screens/doctor/doctor.h"
#include "app/tui/shell/fit_view.h"
#include "app/tui/shell/panes.h"
#include "tests/tui/fake_engine.h"
#include "tests/tui/golden.h"
#include "tests/tui/suite.h"

static void run_out(app *a)
{
    screen_advance(a, 20);
    screen_keys(a, ":set batch.size 256\n");
    screen_advance(a, 3);
    ck_assert_int_eq(a->screen, SCREEN_DOCTOR);
}

// The dry run found enough free memory, but in pieces.
static void run_out_in_pieces(app *a)
{
    run_out(a);
    hr_report_oom *oom = &a->feed.report.oom;
    oom->cause = HR_OOM_FRAGMENTATION;
    oom->hole_count = 41;
    for (uint32_t i = 0; i < HR_HOLES_MAX; i++) {
        oom->hole_bytes[i] = (uint64_t)3 * HR_MIB / (i + 1);
    }
    snprintf(
        oom->sentence, sizeof oom->sentence,
        "fragmentation: 12.0 MiB are free, but the largest piece is 3.00 MiB and conv needs 10.6 MiB in one");
}

// The host may not hold the pipeline: its stages stand where categories would, and fixes have the host's bytes.
static void run_out_of_host(app *a)
{
    static const hr_report_stage stages[] = {{"source", 0, 0, 0},
                                             {"shuffle", 30993408, 0, 0},
                                             {"map", 8256, 0, 0},
                                             {"prefetch", 4720128, 0, 0},
                                             {"evaluate", 1582144, 0, 0}};
    run_out(a);
    hr_report *r = &a->feed.report;
    r->oom.cause = HR_OOM_PIPELINE;
    r->oom.of_host = true;
    r->oom.limit_bytes = 16 * HR_MIB;
    r->host.stage_count = sizeof stages / sizeof *stages;
    r->host.peak_bytes = 37303936;
    memcpy(r->host.stages, stages, sizeof stages);
    snprintf(r->oom.tensor, sizeof r->oom.tensor, "shuffle");
    snprintf(
        r->oom.sentence, sizeof r->oom.sentence,
        "pipeline: the host would hold 35.58 MiB for the data and what is offloaded, pipeline.ram_limit is "
        "16.00 MiB; stage shuffle crosses it with 29.56 MiB and is the largest of them");
    snprintf(r->oom.fixes[0].knobs, sizeof r->oom.fixes[0].knobs, "pipeline.shuffle_of=indices");
    r->oom.fixes[0].host_bytes = 6351040;
    snprintf(r->oom.fixes[1].knobs, sizeof r->oom.fixes[1].knobs, "pipeline.ram_limit=37303936B");
    r->oom.fixes[1].host_bytes = 37303936;
}

static void be_well(app *a)
{
    screen_advance(a, 20);
    screen_keys(a, "4");
}

START_TEST(the_doctor_looks_as_agreed)
{
    golden_all("doctor-oom", run_out);
    golden_all("doctor-well", be_well);
    app *a = screen_open(&golden_looks[1].look);
    run_out_in_pieces(a);
    golden_compare("doctor-holes", a);
    screen_close(a);
}
END_TEST

START_TEST(the_hosts_out_of_memory_looks_as_agreed)
{
    golden_all("doctor-host", run_out_of_host);
}
END_TEST

START_TEST(the_hosts_limit_is_lifted_last)
{
    app *a = screen_open(&golden_looks[0].look);
    fix_row rows[FIX_ROWS_MAX];
    char text[HR_KNOB_TEXT_MAX];
    run_out_of_host(a);
    const size_t count = doctor_fixes(&a->feed, rows);
    ck_assert_uint_ge(count, 2);
    ck_assert_str_eq(doctor_fix_text(&a->feed, &rows[0], text), "pipeline.shuffle_of=indices");
    ck_assert_uint_eq(rows[0].peak_bytes, 6351040);
    for (size_t i = 0, lifts = 0; i < count; i++) {
        const bool lifts_it =
            strncmp(doctor_fix_text(&a->feed, &rows[i], text), "pipeline.ram_limit=", 19) == 0;
        lifts += lifts_it;
        ck_assert(lifts_it || lifts == 0);
    }
    screen_close(a);
}
END_TEST

START_TEST(what_it_offers_after_an_oom_fits_and_nothing_is_offered_twice)
{
    app *a = screen_open(&golden_looks[0].look);
    fix_row rows[FIX_ROWS_MAX];
    char one[HR_KNOB_TEXT_MAX], other[HR_KNOB_TEXT_MAX];
    run_out(a);
    size_t count = doctor_fixes(&a->feed, rows);
    ck_assert_uint_gt(count, a->feed.report.oom.fix_count);
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(rows[i].dry_run, i < a->feed.report.oom.fix_count ? (int)i : -1);
        ck_assert_uint_le(rows[i].peak_bytes, a->feed.report.oom.limit_bytes);
        for (size_t j = 0; j < i; j++) {
            ck_assert_str_ne(doctor_fix_text(&a->feed, &rows[i], one),
                             doctor_fix_text(&a->feed, &rows[j], other));
        }
    }
    screen_close(a);
}
END_TEST

// Where a fix has no room its knobs lose their groups before one of them goes; a word that two keys end in stays whole.
START_TEST(a_fix_shows_every_knob_in_the_smallest_window)
{
    app *a = screen_open(&golden_looks[0].look);
    run_out(a);
    snprintf(a->feed.report.oom.fixes[1].knobs, sizeof a->feed.report.oom.fixes[1].knobs,
             "batch.size=16 optimizer.kind=sgd");
    char *text = screen_text(a);
    ck_assert_msg(strstr(text, " size=16 kind=sgd ") != NULL, "%s", text);
    free(text);
    screen_close(a);
}
END_TEST

// Most of what is in use may be waste: the largest are shown, and what is left out is summed up.
START_TEST(the_verdict_says_waste_in_the_smallest_window)
{
    static const char *const sentences[] = {
        "capacity: the step asks for 102.5 MiB at its peak, the limit is 64.00 MiB",
        "capacity: the step asks for 102.5 MiB at its peak, the limit is 64.00 MiB (106.5 MiB would hold "
        "it); "
        "when separable_conv2d/conv2d:workspace was asked for, activations held 30.76 MiB"};
    for (size_t i = 0; i < 2; i++) {
        app *a = screen_open(&golden_looks[0].look);
        run_out(a);
        hr_report_oom *oom = &a->feed.report.oom;
        snprintf(oom->sentence, sizeof oom->sentence, "%s", sentences[i]);
        oom->by_category[HR_CATEGORY_ACTIVATIONS] -= 20 * HR_MIB;
        oom->by_category[HR_CATEGORY_TEMPORARIES] += HR_MIB / 2;
        char *text = screen_text(a);
        const char *waste = strstr(text, i == 0 ? "  waste  " : "% waste  ");
        ck_assert_msg(waste != NULL && strtod(waste + 9, NULL) == 19.5, "%s", text);
        ck_assert_msg((strstr(text, "  others  ") != NULL) == (strstr(text, "W weights  ") == NULL), "%s",
                      text);
        free(text);
        screen_close(a);
    }
}
END_TEST

// Whoever is moved to another screen is told, and told how to leave it; an error that was not read yet stays.
START_TEST(the_doctor_says_that_it_came)
{
    app *a = screen_open(&golden_looks[0].look);
    run_out(a);
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "the Doctor came"));
    screen_keys(a, "1");
    ck_assert_int_eq(a->screen, SCREEN_BENCH);
    screen_close(a);
    a = screen_open(&golden_looks[0].look);
    screen_advance(a, 20);
    ck_assert(app_turn(&a->feed, HR_KNOB_BATCH_SIZE, "256"));
    feed_say(&a->feed, MESSAGE_ERROR, "something else failed");
    screen_advance(a, 3);
    ck_assert_int_eq(a->screen, SCREEN_DOCTOR);
    ck_assert_str_eq(a->feed.message.text, "something else failed");
    screen_close(a);
}
END_TEST

// A limit of one's own is there to be kept, and what lifts it leaves what its own limit leaves.
START_TEST(what_lifts_the_limit_stands_behind_what_fits_into_it)
{
    app *a = screen_open(&golden_looks[0].look);
    fix_row rows[FIX_ROWS_MAX];
    char text[TABLE_CELL_MAX];
    run_out(a);
    hr_report_oom *oom = &a->feed.report.oom;
    const uint64_t limit = oom->limit_bytes;
    snprintf(oom->fixes[0].knobs, sizeof oom->fixes[0].knobs, "device.vram=none");
    oom->fixes[0].peak_bytes = 2 * limit;
    oom->fixes[0].limit_bytes = 8 * limit;
    free(screen_text(a));
    const size_t count = doctor_fixes(&a->feed, rows);
    const table_source *table = pane_ops_of(PANE_FIXES)->table;
    ck_assert_uint_gt(count, 2);
    bool lifted = false;
    for (size_t i = 0; i < count; i++) {
        const bool lifts = rows[i].limit_bytes == 0 || rows[i].limit_bytes > limit;
        ck_assert(lifts || !lifted);
        lifted = lifted || lifts;
        table->cell(pane_rows(a, PANE_FIXES), i, 3, text); // "left"
        ck_assert_msg(text[0] != '-', "%s", text);
        ck_assert(rows[i].dry_run != 0 || strcmp(text, "75.0%") == 0);
    }
    ck_assert(lifted);
    screen_close(a);
}
END_TEST

// Every line of what shows it is come by, and the way back ends at the verdict; the cursor of the fixes stays where it is.
START_TEST(what_shows_the_verdict_is_scrolled_to_its_last_line)
{
    app *a = screen_open(&golden_looks[0].look);
    char last[32];
    run_out(a);
    hr_report_oom *oom = &a->feed.report.oom;
    for (oom->evidence_count = 0; oom->evidence_count < HR_EVIDENCE_MAX; oom->evidence_count++) {
        snprintf(oom->evidence[oom->evidence_count].line, sizeof oom->evidence[0].line,
                 "line %u of what shows it, which takes two rows of the pane", oom->evidence_count + 1);
    }
    snprintf(last, sizeof last, "line %u of what", oom->evidence_count);
    screen_keys(a, "\t");
    ck_assert_int_eq(a->focus, PANE_DOCTOR);
    app_key(a, INPUT_DOWN);
    free(screen_text(a));
    const size_t fix = table_selected(&a->table[PANE_FIXES]);
    bool seen = false;
    for (int k = 0; k < 8 && !seen; k++) {
        app_key(a, INPUT_PAGE_DOWN);
        char *text = screen_text(a);
        ck_assert_msg(strstr(text, "OUT OF MEMORY") == NULL, "%s", text);
        ck_assert_msg(k > 0 || strstr(text, "line 1 of what") != NULL, "%s", text);
        seen = strstr(text, last) != NULL;
        free(text);
    }
    ck_assert(seen);
    app_key(a, INPUT_END);
    char *text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "what shows it"));
    free(text);
    app_key(a, INPUT_HOME);
    text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "OUT OF MEMORY"));
    free(text);
    ck_assert_uint_eq(table_selected(&a->table[PANE_FIXES]), fix);
    screen_close(a);
}
END_TEST

START_TEST(a_applies_the_selected_fix_from_any_pane_and_z_undoes_it_whole)
{
    app *a = screen_open(&golden_looks[0].look);
    run_out(a);
    ck_assert_int_eq(a->focus, PANE_KNOBS); // where the turn came from
    hr_knobs before = a->feed.knobs;
    screen_keys(a, "\t"); // no frame has shown the screen yet
    ck_assert_int_eq(a->focus, PANE_DOCTOR);
    app_key(a, INPUT_DOWN); // the second fix: two knobs
    screen_keys(a, "\t\t");
    screen_keys(a, "a");
    ck_assert_int_eq(hr_knob_int(&a->feed.knobs, HR_KNOB_BATCH_SIZE), 128);
    ck_assert_int_eq(hr_knob_int(&a->feed.knobs, HR_KNOB_BATCH_ACCUMULATE), 2);
    screen_advance(a, 5);
    ck_assert_int_eq(a->feed.live.state, HR_ENGINE_RUNNING);
    screen_keys(a, "z");
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        ck_assert(!knob_edit_differs(&a->feed.knobs, &before, (hr_knob_id)id));
    }
    screen_close(a);
}
END_TEST

// Rows that came since the last frame do not move the cursor from the fix that was seen under it.
START_TEST(a_applies_the_fix_that_was_seen)
{
    app *a = screen_open(&golden_looks[0].look);
    run_out(a);
    screen_keys(a, "\t");
    app_key(a, INPUT_DOWN);
    free(screen_text(a));
    hr_report_oom *oom = &a->feed.report.oom;
    const hr_report_fix first = oom->fixes[0];
    oom->fixes[0] = oom->fixes[1]; // what stood second stands first now
    oom->fixes[1] = first;
    a->feed.report_version++;
    screen_keys(a, "a");
    ck_assert_int_eq(hr_knob_int(&a->feed.knobs, HR_KNOB_BATCH_SIZE), 128);
    ck_assert_int_eq(hr_knob_int(&a->feed.knobs, HR_KNOB_BATCH_ACCUMULATE), 2);
    screen_close(a);
}
END_TEST

// A turn takes fixes away; a mark in the same breath, on what was the last row, marks one that is still there.
START_TEST(a_mark_right_after_a_turn_marks_a_fix_that_is_there)
{
    app *a = screen_open(&golden_looks[0].look);
    fix_row rows[FIX_ROWS_MAX];
    run_out(a);
    screen_keys(a, "\t\t");
    ck_assert_int_eq(a->focus, PANE_FIXES);
    app_key(a, INPUT_END);
    free(screen_text(a));
    const size_t before = doctor_fixes(&a->feed, rows);
    screen_keys(a, "<");
    const size_t after = doctor_fixes(&a->feed, rows);
    ck_assert_uint_lt(after, before);
    screen_keys(a, "t");
    const table_view *v = &a->table[PANE_FIXES];
    ck_assert_uint_eq(v->marks, after > 0);
    free(screen_text(a));
    const size_t row = table_selected(v);
    ck_assert(after == 0 ||
              pane_ops_of(PANE_FIXES)->table->key(pane_rows(a, PANE_FIXES), row) == v->marked[0]);
    screen_close(a);
}
END_TEST

// To work out what each costs takes all knobs: cells, colours and keys of a frame read what was made for it.
START_TEST(fixes_are_found_once_for_a_frame)
{
    app *a = screen_open(&golden_looks[0].look);
    run_out(a);
    free(screen_text(a));
    const table_source *table = pane_ops_of(PANE_FIXES)->table;
    const size_t before = table->count(pane_rows(a, PANE_FIXES));
    const uint32_t dry_runs = a->feed.report.oom.fix_count;
    ck_assert_uint_gt(dry_runs, 0);
    a->feed.report.oom.fix_count = 0;
    ck_assert_uint_eq(table->count(pane_rows(a, PANE_FIXES)), before);
    free(screen_text(a));
    ck_assert_uint_lt(table->count(pane_rows(a, PANE_FIXES)), before);
    screen_close(a);
}
END_TEST

START_TEST(a_healthy_step_is_offered_what_needs_less_the_least_first)
{
    app *a = screen_open(&golden_looks[0].look);
    fix_row rows[FIX_ROWS_MAX];
    be_well(a);
    size_t count = doctor_fixes(&a->feed, rows);
    ck_assert_uint_gt(count, 1);
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_lt(rows[i].peak_bytes, a->feed.answers.present.plan.peak_in_use_bytes);
        ck_assert(i == 0 || rows[i - 1].peak_bytes <= rows[i].peak_bytes);
    }
    screen_close(a);
}
END_TEST

// ---- knobs that wait ------------------------------------------------------------------------------------------

static void turn_while_paused(app *a)
{
    screen_advance(a, 20);
    screen_keys(a, "r");
    screen_advance(a, 1);
    ck_assert_int_eq(a->feed.live.state, HR_ENGINE_PAUSED);
    screen_keys(a, ":set device.vram 32MiB\n");
    screen_advance(a, 1);
    ck_assert_int_eq(a->feed.live.state, HR_ENGINE_PAUSED);
    screen_advance(a, 1);
}

static void be_turned_while_paused(app *a)
{
    turn_while_paused(a);
    screen_keys(a, "4");
}

START_TEST(turned_knobs_that_wait_and_do_not_fit_are_told_at_once)
{
    golden_all("doctor-waits", be_turned_while_paused);
    app *a = screen_open(&golden_looks[0].look);
    turn_while_paused(a);
    ck_assert(doctor_misses(&a->feed));
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "do not fit when they run"));
    golden_compare("bench-waits", a);
    screen_keys(a, "z"); // what it was steps with
    screen_advance(a, 1);
    ck_assert_ptr_null(feed_waiting_plan(&a->feed));
    screen_keys(a, ":set batch.size 64\n");
    screen_advance(a, 1);
    ck_assert_ptr_nonnull(feed_waiting_plan(&a->feed));
    ck_assert(!doctor_misses(&a->feed));
    screen_keys(a, "r");
    screen_advance(a, 3);
    ck_assert_ptr_null(feed_waiting_plan(&a->feed));
    screen_close(a);
}
END_TEST

START_TEST(what_is_offered_to_knobs_that_wait_fits_and_a_applies_it)
{
    app *a = screen_open(&golden_looks[0].look);
    fix_row rows[FIX_ROWS_MAX];
    char text[HR_KNOB_TEXT_MAX];
    be_turned_while_paused(a);
    ck_assert(fit_wanted(a));
    fit_begin(&a->feed.fit, &a->feed.knobs, 1);
    static const char *const knobs[] = {"", "execution.mode=graph batch.size=32 batch.accumulate=4",
                                        "checkpoint.strategy=blocks", "execution.fuse=off"};
    for (uint32_t i = 0; i < 4; i++) {
        hr_answer answer = {.kind = HR_QUESTION_FIT, .number = 1, .index = i, .last = i == 3};
        answer.point.plan = (hr_whatif){.fits = i == 1 || i == 2, .peak_in_use_bytes = (40 - 4 * i) * HR_MIB};
        snprintf(answer.point.knobs, sizeof answer.point.knobs, "%s", knobs[i]);
        app_take_fit(a, &answer);
    }
    size_t count = doctor_fixes(&a->feed, rows), points = 0;
    for (size_t i = 0; i < count; i++) {
        const fix_row *row = &rows[i];
        ck_assert(row->point < 0 ? feed_whatif(&a->feed, row->id, row->side)->plan.fits
                                 : a->feed.fit.point[row->point].plan.fits);
        points += row->point >= 0;
    }
    ck_assert_uint_eq(points, 2);
    ck_assert_int_eq(rows[count - 2].point, 2); // one turn
    ck_assert_int_eq(rows[count - 1].point, 1); // three
    ck_assert_str_eq(doctor_fix_text(&a->feed, &rows[count - 1], text), knobs[1]);
    screen_keys(a, "\t");
    ck_assert_int_eq(a->focus, PANE_DOCTOR);
    for (size_t i = 1; i < count; i++) {
        app_key(a, INPUT_DOWN);
    }
    screen_keys(a, "4a");
    ck_assert_int_eq(hr_knob_int(&a->feed.knobs, HR_KNOB_BATCH_ACCUMULATE), 4);
    screen_close(a);
}
END_TEST

START_TEST(a_baseline_is_of_a_finished_step_of_the_knobs_as_they_are)
{
    app *a = screen_open(&golden_looks[0].look);
    turn_while_paused(a);
    screen_keys(a, "b");
    ck_assert(!a->bench.baseline.pinned);
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "none has ended yet"));
    screen_keys(a, "r");
    screen_advance(a, 3);
    ck_assert_int_eq(a->feed.live.state, HR_ENGINE_OOM);
    screen_keys(a, "b");
    ck_assert(!a->bench.baseline.pinned);
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "none fits"));
    screen_keys(a, "z");
    screen_advance(a, 5);
    ck_assert_int_eq(a->feed.live.state, HR_ENGINE_RUNNING);
    screen_keys(a, "b");
    ck_assert(a->bench.baseline.pinned);
    screen_close(a);
}
END_TEST

// ---- findings -------------------------------------------------------------------------------------------------

static void say_step(run_state *m, uint64_t floor_bytes, uint64_t wait_ns)
{
    hr_event e = {.version = HR_EVENT_VERSION, .kind = HR_EVENT_STEP, .step = (uint32_t)m->steps + 1};
    e.u.step = (hr_event_step){.duration_ns = 1000,
                               .wait_ns = wait_ns,
                               .samples = 1,
                               .peak_in_use_bytes = floor_bytes + 100,
                               .floor_in_use_bytes = floor_bytes};
    run_state_feed(m, &e);
}

// The plan device without a card steps in no time at all: that is no measure.
START_TEST(a_step_whose_time_nobody_tells_takes_no_zero_seconds)
{
    run_state *m = calloc(1, sizeof *m);
    ck_assert_ptr_nonnull(m);
    run_state_init(m);
    hr_event e = {.version = HR_EVENT_VERSION, .kind = HR_EVENT_STEP, .step = 1};
    run_state_feed(m, &e);
    ck_assert(isnan(run_state_step_seconds(m)));
    say_step(m, 0, 0);
    ck_assert(run_state_step_seconds(m) > 0);
    free(m);
}
END_TEST

// Judged by the definition: the longest run of rises that ends with the newest step.
START_TEST(growth_is_three_rises_running_and_its_slope_is_their_mean)
{
    uint32_t seed = 11;
    run_state *m = calloc(1, sizeof *m);
    ck_assert_ptr_nonnull(m);
    for (int round = 0; round < 500; round++) {
        uint64_t floors[12];
        int count = 1 + (int)((seed >> 9) % 12), rises = 0;
        run_state_init(m);
        for (int i = 0; i < count; i++) {
            seed = seed * 1664525u + 1013904223u;
            floors[i] = i == 0 ? 1000 : floors[i - 1] + ((seed >> 16) % 4 == 0 ? 0 : (seed >> 20) % 50);
            say_step(m, floors[i], 0);
        }
        while (rises + 1 < count && floors[count - 1 - rises] > floors[count - 2 - rises]) {
            rises++;
        }
        uint64_t slope = rises >= 3 ? (floors[count - 1] - floors[count - 1 - rises]) / (uint64_t)rises : 0;
        ck_assert_uint_eq(run_state_growth_bytes(m), slope);
    }
    free(m);
}
END_TEST

static bool finds(const app *a, finding_kind kind)
{
    char text[FINDING_TEXT_MAX];
    doctor_finding(&a->feed, kind, text);
    ck_assert(text[0] == '\0' || text[strlen(text) - 1] == '.');
    return text[0] != '\0';
}

START_TEST(each_finding_comes_with_its_cause_and_goes_without_it)
{
    app *a = screen_open(&golden_looks[0].look);
    be_well(a);
    for (int kind = 0; kind < FINDING_COUNT; kind++) {
        bool expected = kind == FINDING_NEARLY_FULL; // 59.2 of 64 MiB; all else is as it should be
        if (kind != FINDING_IDLE_KNOB) {
            ck_assert_msg(finds(a, (finding_kind)kind) == expected, "%d", kind);
        }
    }
    char text[FINDING_TEXT_MAX];
    const uint64_t limit_bytes = a->feed.live.limit_bytes;
    a->feed.live.limit_bytes /= 2; // lowered, and no step has been done under it
    ck_assert_ptr_nonnull(strstr(doctor_finding(&a->feed, FINDING_NEARLY_FULL, text), ": 0 B are left"));
    a->feed.live.limit_bytes = 2 * limit_bytes;
    ck_assert(!finds(a, FINDING_NEARLY_FULL));
    hr_report_memory *r = &a->feed.report.memory;
    r->fragmentation = 0.21;
    ck_assert(finds(a, FINDING_FRAGMENTATION));
    const uint64_t pool_bytes = r->peak_pool_bytes;
    ck_assert(!measures_little_is_free(r));
    ck_assert_int_eq(counter_role(&a->feed, COUNTER_FRAGMENTATION), ROLE_TEXT);
    r->peak_pool_bytes = r->peak_in_use_bytes + r->peak_in_use_bytes / 100; // a hundredth is free
    ck_assert(measures_little_is_free(r));
    ck_assert(!finds(a, FINDING_FRAGMENTATION));
    ck_assert_int_eq(counter_role(&a->feed, COUNTER_FRAGMENTATION), ROLE_DIM);
    ck_assert_int_eq(counter_role(&a->feed, COUNTER_LARGEST_FREE), ROLE_TEXT);
    r->peak_pool_bytes = pool_bytes;
    r->at_peak.workspace = (hr_report_workspace){
        .name = "conv1/conv2d", .implementation = "cudnn eng70 k2=4", .bytes = r->peak_in_use_bytes / 10};
    r->at_peak.less_limit_bytes = HR_NONE;
    ck_assert_ptr_null(strstr(doctor_finding(&a->feed, FINDING_WORKSPACE, text), "workspace.limit"));
    r->at_peak.less_limit_bytes = 2 * HR_MIB;
    r->at_peak.less_bytes = HR_MIB;
    snprintf(r->at_peak.less_implementation, sizeof r->at_peak.less_implementation, "cudnn eng0");
    ck_assert_ptr_nonnull(
        strstr(doctor_finding(&a->feed, FINDING_WORKSPACE, text), "conv1/conv2d (cudnn eng70 k2=4)"));
    ck_assert_ptr_nonnull(strstr(text, " workspace.limit=2MiB has cudnn eng0 compute it, with 1.00 MiB."));
    r->at_peak.workspace.bytes = r->peak_in_use_bytes / 100;
    ck_assert(!finds(a, FINDING_WORKSPACE));
    a->feed.report.step.fallbacks[0] =
        (hr_report_fallback){.kind = "attentions", .first = "h0/attention", .instructions = 2, .of = 24};
    a->feed.report.step.fallbacks[0].without_driver = 2;
    a->feed.report.step.fallback_count = 1;
    ck_assert_str_eq(
        doctor_finding(&a->feed, FINDING_FALLBACK, text),
        "2 of 24 attentions run on kernels of our own, h0/attention first: cuDNN shows no engine "
        "where there is no driver.");
    a->feed.report.step.fallback_count = 0;
    a->feed.report.step.prepared[0] = (hr_report_prepared){.first = "h0/attention",
                                                           .planned = "cudnn eng4",
                                                           .implementation = "own tiles",
                                                           .instructions = 2,
                                                           .reason = "no plan"};
    a->feed.report.step.prepared_count = 1;
    a->feed.report.step.unplanned = 2;
    ck_assert_str_eq(doctor_finding(&a->feed, FINDING_PREPARED, text),
                     "2 instructions are computed otherwise than planned, h0/attention first: own tiles, not "
                     "cudnn eng4: no plan.");
    a->feed.report.step.prepared_count = 0;
    ck_assert(!finds(a, FINDING_PREPARED) && !finds(a, FINDING_CAPTURE));
    snprintf(a->feed.report.step.capture.refused, sizeof a->feed.report.step.capture.refused,
             "not supported");
    ck_assert_str_eq(doctor_finding(&a->feed, FINDING_CAPTURE, text),
                     "Steps are not captured: not supported.");
    a->feed.report.step.capture.refused[0] = '\0';
    ck_assert(!finds(a, FINDING_SEARCH));
    a->feed.report.step.search = (hr_report_search){.known = 30, .unmeasured = 2, .refused = "no memory"};
    ck_assert_str_eq(doctor_finding(&a->feed, FINDING_SEARCH, text),
                     "Engines of 30 convolutions are timed, of 2 not: no memory.");
    a->feed.report.step.search.unmeasured = 0;
    ck_assert_str_eq(doctor_finding(&a->feed, FINDING_SEARCH, text),
                     "Times of engines are not complete, or not kept: no memory.");
    a->feed.report.step.search = (hr_report_search){.unmeasured = 2};
    ck_assert_str_eq(
        doctor_finding(&a->feed, FINDING_SEARCH, text),
        "Engines of 2 convolutions are not timed yet: this plan is not exact until a run on the card.");
    a->feed.report.step.search = (hr_report_search){.known = 30};
    ck_assert(!finds(a, FINDING_SEARCH));
    r->waste_bytes = r->peak_in_use_bytes / 10;
    ck_assert(finds(a, FINDING_WASTE));
    a->feed.live.heap.band_bytes[HR_CATEGORY_RETAINED] = 4;
    ck_assert(finds(a, FINDING_RETAINED));
    for (int i = 0; i < RECENT_LENGTH; i++) {
        say_step(&a->feed.live, 5000 + (uint64_t)i, 200);
    }
    ck_assert(finds(a, FINDING_GROWTH));
    ck_assert(finds(a, FINDING_WAITS));
    free(screen_text(a));
    screen_close(a);
}
END_TEST

START_TEST(an_idle_knob_saves_and_costs_no_time)
{
    app *a = screen_open(&golden_looks[0].look);
    be_well(a);
    whatif_cell *cell = &a->feed.answers.cell[HR_KNOB_EXECUTION_MODE][WHATIF_MORE];
    for (int id = 0; id < HR_KNOB_COUNT; id++) {
        a->feed.answers.cell[id][WHATIF_LESS].known = a->feed.answers.cell[id][WHATIF_MORE].known = false;
    }
    ck_assert(!finds(a, FINDING_IDLE_KNOB));
    whatif_cell *other = &a->feed.answers.cell[HR_KNOB_EXECUTION_AS][WHATIF_MORE];
    *other = a->feed.answers.present; // another framework's step is none
    snprintf(other->value, sizeof other->value, "pytorch");
    other->plan.peak_in_use_bytes /= 2;
    ck_assert(!finds(a, FINDING_IDLE_KNOB));
    *cell = a->feed.answers.present;
    snprintf(cell->value, sizeof cell->value, "graph");
    cell->plan.peak_in_use_bytes /= 2;
    ck_assert(finds(a, FINDING_IDLE_KNOB));
    cell->plan.step_seconds *= 1.2;
    ck_assert(!finds(a, FINDING_IDLE_KNOB));
    cell->plan.step_seconds = (double)NAN;
    ck_assert(!finds(a, FINDING_IDLE_KNOB));
    screen_close(a);
}
END_TEST

SUITE_MAIN("tui doctor", the_doctor_looks_as_agreed, the_hosts_out_of_memory_looks_as_agreed,
           the_hosts_limit_is_lifted_last, a_fix_shows_every_knob_in_the_smallest_window,
           the_verdict_says_waste_in_the_smallest_window, the_doctor_says_that_it_came,
           a_step_whose_time_nobody_tells_takes_no_zero_seconds,
           what_it_offers_after_an_oom_fits_and_nothing_is_offered_twice,
           what_lifts_the_limit_stands_behind_what_fits_into_it,
           what_shows_the_verdict_is_scrolled_to_its_last_line,
           a_applies_the_selected_fix_from_any_pane_and_z_undoes_it_whole, a_applies_the_fix_that_was_seen,
           a_mark_right_after_a_turn_marks_a_fix_that_is_there, fixes_are_found_once_for_a_frame,
           a_healthy_step_is_offered_what_needs_less_the_least_first,
           turned_knobs_that_wait_and_do_not_fit_are_told_at_once,
           what_is_offered_to_knobs_that_wait_fits_and_a_applies_it,
           a_baseline_is_of_a_finished_step_of_the_knobs_as_they_are,
           growth_is_three_rises_running_and_its_slope_is_their_mean,
           each_finding_comes_with_its_cause_and_goes_without_it, an_idle_knob_saves_and_costs_no_time)
