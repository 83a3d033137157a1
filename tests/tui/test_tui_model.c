// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "headroom/engine.h"

#include "app/tui/feed/run_state.h"
#include "tests/tui/fake_engine.h"
#include "tests/tui/suite.h"

static run_state *make(void)
{
    run_state *m = malloc(sizeof *m);
    run_state_init(m);
    return m;
}

static hr_session *start(void)
{
    hr_session *host;
    fake_engine_set_manual(true);
    ck_assert_int_eq(
        hr_session_start(&(hr_session_options){.knobs = hr_preset_knobs(fake_preset())}, &host, NULL), HR_OK);
    hr_command run = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_RUN};
    ck_assert(hr_session_send(host, &run));
    return host;
}

// Feeds what waits, leaving out `skip` events from `from` on (as if the ring had lost them).
static void feed(run_state *m, hr_session *host, size_t from, size_t skip)
{
    hr_event event;
    uint64_t lost;
    for (size_t i = 0; hr_session_events(host, &event, 1, &lost) == 1; i++) {
        if (i >= from && i < from + skip) {
            continue;
        }
        if (skip > 0 && i == from + skip) {
            run_state_lost(m, skip);
        }
        run_state_feed(m, &event);
    }
}

static uint64_t sum_of_bands(const run_state *m)
{
    uint64_t sum = 0;
    for (int i = 0; i < BAND_COUNT; i++) {
        sum += m->heap.band_bytes[i];
    }
    return sum;
}

// What the events say is alive, category by category.
static void count_requests(uint64_t bytes[HR_CATEGORY_COUNT], const hr_event *e)
{
    bytes[e->category] += e->kind == HR_EVENT_ALLOC ? e->u.memory.requested_bytes : 0;
    bytes[e->category] -= e->kind == HR_EVENT_FREE ? e->u.memory.requested_bytes : 0;
}

START_TEST(bands_are_what_was_asked_for_and_waste_and_add_up_to_what_is_in_use)
{
    uint64_t requested[HR_CATEGORY_COUNT] = {0}, most_waste = 0;
    run_state *m = make();
    hr_session *host = start();
    hr_event event;
    uint64_t lost;
    fake_engine_advance(host, 5);
    while (hr_session_events(host, &event, 1, &lost) == 1) {
        run_state_feed(m, &event);
        count_requests(requested, &event);
        ck_assert_uint_eq(sum_of_bands(m), m->heap.in_use_bytes);
        ck_assert_mem_eq(m->heap.band_bytes, requested, sizeof requested);
        uint64_t waste = m->heap.band_bytes[BAND_UNKNOWN];
        ck_assert_uint_eq(waste, m->heap.in_use_bytes - m->heap.requested_bytes);
        most_waste = waste > most_waste ? waste : most_waste;
    }
    ck_assert_uint_gt(most_waste, 0);
    ck_assert(m->attributed);
    ck_assert_uint_eq(m->steps, 4);
    ck_assert_uint_eq(m->step_peak_bytes, m->epoch_peak_bytes);
    ck_assert_int_eq(hr_session_stop(host, NULL), HR_OK);
    free(m);
}
END_TEST

START_TEST(lost_events_leave_the_total_right_and_the_bands_known_again_within_two_steps)
{
    for (size_t from = 40; from < 120; from += 7) {
        run_state *m = make();
        hr_session *host = start();
        fake_engine_advance(host, 3);
        feed(m, host, SIZE_MAX, 0);
        fake_engine_advance(host, 4);
        feed(m, host, from, 13);
        ck_assert_uint_eq(m->lost_events, 13);
        ck_assert_uint_eq(sum_of_bands(m), m->heap.in_use_bytes);
        ck_assert(m->attributed);
        ck_assert_uint_eq(m->heap.band_bytes[BAND_UNKNOWN], m->heap.in_use_bytes - m->heap.requested_bytes);
        ck_assert_int_eq(hr_session_stop(host, NULL), HR_OK);
        free(m);
    }
}
END_TEST

START_TEST(records_of_strangers_do_no_harm)
{
    run_state *m = make();
    srand(7);
    for (int i = 0; i < 50000; i++) {
        hr_event event;
        unsigned char *bytes = (unsigned char *)&event;
        for (size_t j = 0; j < sizeof event; j++) {
            bytes[j] = (unsigned char)(rand() >> 7);
        }
        event.version = i % 16 == 0 ? event.version : HR_EVENT_VERSION;
        event.kind = (uint8_t)(event.kind % (HR_EVENT_COUNT + 2));
        run_state_feed(m, &event);
        ck_assert_uint_lt(m->state, HR_ENGINE_STATE_COUNT);
        ck_assert_uint_le(m->stage_count, STAGES_MAX);
    }
    free(m);
}
END_TEST

static hr_event step_event(uint32_t step, double loss)
{
    hr_event e = {.version = HR_EVENT_VERSION, .kind = HR_EVENT_STEP, .step = step};
    e.u.step =
        (hr_event_step){.loss = loss, .accuracy = (double)NAN, .duration_ns = 50000000, .samples = 128};
    return e;
}

START_TEST(rates_are_means_of_the_recent_steps_and_unknown_before_the_first)
{
    run_state *m = make();
    m->state = HR_ENGINE_RUNNING;
    ck_assert(isnan(run_state_steps_per_second(m)));
    ck_assert(isnan(run_state_loss_per_second(m)));
    for (uint32_t i = 1; i <= 300; i++) {
        hr_event e = step_event(i, 3 - 0.001 * i);
        run_state_feed(m, &e);
    }
    ck_assert_double_eq_tol(run_state_steps_per_second(m), 20, 1e-9);
    ck_assert_double_eq_tol(run_state_examples_per_second(m), 2560, 1e-6);
    ck_assert_double_eq_tol(run_state_loss_per_second(m), -0.02, 1e-9);
    m->state = HR_ENGINE_PAUSED; // no step is made, so none per second
    ck_assert(isnan(run_state_steps_per_second(m)));
    free(m);
}
END_TEST

START_TEST(a_message_is_logged_once_and_whole)
{
    run_state *m = make();
    const char *sentence = "conv2d:out asked for 10.56 MiB, but 1.18 MiB of 64.00 MiB are free: not enough";
    hr_event e = {.version = HR_EVENT_VERSION, .kind = HR_EVENT_STATE};
    e.u.note.count = HR_ENGINE_OOM;
    memcpy(e.u.note.text, sentence, sizeof e.u.note.text - 1); // an event cuts
    run_state_feed(m, &e);
    e.kind = HR_EVENT_LOG;
    run_state_feed(m, &e);
    ck_assert_uint_eq(m->log_count, 1);
    run_state_log_once(m, LOG_BAD, sentence);
    ck_assert_uint_eq(m->log_count, 1);
    ck_assert_str_eq(m->log[0].text, sentence);
    run_state_feed(m, &e); // the cut one may also come last
    ck_assert_uint_eq(m->log_count, 1);
    ck_assert_str_eq(m->log[0].text, sentence);
    run_state_log_once(m, LOG_BAD, "another");
    ck_assert_uint_eq(m->log_count, 2);
    free(m);
}
END_TEST

START_TEST(a_build_begins_a_new_peak_and_keeps_the_one_since_the_start)
{
    run_state *m = make();
    hr_session *host = start();
    fake_engine_advance(host, 3);
    hr_command turn = {.version = HR_EVENT_VERSION, .kind = HR_COMMAND_KNOB, .knob = HR_KNOB_BATCH_SIZE};
    strcpy(turn.text, "32");
    ck_assert(hr_session_send(host, &turn));
    fake_engine_advance(host, 3);
    feed(m, host, SIZE_MAX, 0);
    ck_assert_uint_lt(m->epoch_peak_bytes, m->peak_bytes);
    ck_assert_uint_eq(m->epoch_peak_bytes, m->step_peak_bytes);
    ck_assert_int_eq(hr_session_stop(host, NULL), HR_OK);
    free(m);
}
END_TEST

START_TEST(loss_scale_and_the_worst_layer_are_those_of_the_last_step_and_a_build_forgets_them)
{
    static const float flushed[] = {0.1F, 0.4F, 0.2F};
    run_state *m = make();
    hr_event scale = {.version = HR_EVENT_VERSION, .kind = HR_EVENT_SCALE, .u.scale = {16384, 3, 0, 0}};
    hr_event step = {.version = HR_EVENT_VERSION, .kind = HR_EVENT_STEP, .step = 1, .u.step = {.loss = 1}};
    hr_event build = {.version = HR_EVENT_VERSION, .kind = HR_EVENT_BUILD};
    run_state_feed(m, &step);
    run_state_feed(m, &scale);
    for (size_t k = 0; k < 3; k++) {
        hr_event health = {.version = HR_EVENT_VERSION, .kind = HR_EVENT_HEALTH};
        health.u.health.flushed = flushed[k];
        memset(health.u.health.layer, 'a' + (int)k, sizeof health.u.health.layer); // no end: a stranger's
        run_state_feed(m, &health);
    }
    ck_assert(m->loss_scale == 16384 && m->skipped == 3);
    ck_assert_uint_eq(strlen(m->worst.layer), sizeof m->worst.layer - 1);
    ck_assert_int_eq(m->worst.layer[0], 'b');
    run_state_feed(m, &step);
    ck_assert_str_eq(m->worst.layer, "");
    run_state_feed(m, &build);
    ck_assert(m->loss_scale == 0 && m->skipped == 0);
    free(m);
}
END_TEST

START_TEST(a_teacher_is_told_of_until_the_build_and_parts_of_a_loss_until_the_next)
{
    char text[64] = "";
    run_state *m = make();
    hr_event answers = {.version = HR_EVENT_VERSION, .kind = HR_EVENT_ANSWERS, .u.answers = {0, 60000, 0, 0}};
    const hr_event losses = {.version = HR_EVENT_VERSION, .kind = HR_EVENT_LOSSES, .u.losses = {2.5, 0.25}};
    const hr_event build = {.version = HR_EVENT_VERSION, .kind = HR_EVENT_BUILD};
    ck_assert(!run_state_answers(m, text, sizeof text));
    run_state_feed(m, &answers);
    answers.u.answers.answered = 1240;
    answers.u.answers.spent_ns = 4000000000;
    run_state_feed(m, &answers);
    ck_assert(run_state_answers(m, text, sizeof text));
    ck_assert_str_eq(text, "teacher answers 1240 of 60000, 310 a second, 190 s left");
    ck_assert_str_eq(m->log[0].text, "the teacher answers 60000 samples before the first step");
    ck_assert_uint_eq(m->log_count, 1);
    run_state_feed(m, &build);
    ck_assert(!run_state_answers(m, text, sizeof text));
    ck_assert(isnan(m->parts.student) && isnan(m->parts.distill));
    run_state_feed(m, &losses);
    ck_assert(m->parts.student == 2.5 && m->parts.distill == 0.25);
    run_state_feed(m, &build);
    ck_assert(isnan(m->parts.student) && isnan(m->parts.distill));
    free(m);
}
END_TEST

SUITE_MAIN("tui model", a_teacher_is_told_of_until_the_build_and_parts_of_a_loss_until_the_next,
           loss_scale_and_the_worst_layer_are_those_of_the_last_step_and_a_build_forgets_them,
           bands_are_what_was_asked_for_and_waste_and_add_up_to_what_is_in_use,
           lost_events_leave_the_total_right_and_the_bands_known_again_within_two_steps,
           records_of_strangers_do_no_harm, rates_are_means_of_the_recent_steps_and_unknown_before_the_first,
           a_message_is_logged_once_and_whole, a_build_begins_a_new_peak_and_keeps_the_one_since_the_start)
