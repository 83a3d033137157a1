// SPDX-License-Identifier: Apache-2.0
// Somebody else's training is seen like one's own, and nothing that is pressed reaches it.
#include <stdlib.h>
#include <string.h>

#include "tests/tui/fake_engine.h"
#include "tests/tui/screen.h"
#include "tests/tui/suite.h"

static app *watching(bool unknown)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    ck_assert_int_eq(feed_stop_engine(&a->feed, NULL), HR_OK);
    a->feed.watched = "/run/headroom/7.sock";
    a->feed.unknown = unknown;
    a->feed.live.limit_bytes = 0;
    feed_start_engine(&a->feed);
    screen_advance(a, 20);
    return a;
}

START_TEST(a_watched_training_is_shown_and_cannot_be_turned)
{
    static const request wants[] = {REQUEST_RUN,  REQUEST_UNDO,    REQUEST_LESS,
                                    REQUEST_MORE, REQUEST_PRESETS, REQUEST_RESTART};
    app *a = watching(false);
    hr_knobs before = a->feed.knobs;
    ck_assert_uint_gt(a->feed.live.steps, 10);
    char *text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "watching demo"));
    free(text);
    for (size_t i = 0; i < sizeof wants / sizeof *wants; i++) {
        ck_assert_ptr_nonnull(app_why_not(a, wants[i]));
    }
    static const char *const keys[] = {
        "<", ">", "r", "R", "p", "z", ":set batch.size 16\n", ":fix 1\n", ":preset wide\n", ":run 5\n"};
    app_key(a, INPUT_RIGHT);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        screen_keys(a, keys[i]);
        ck_assert_msg(a->feed.message.kind != MESSAGE_NONE, "%s says nothing", keys[i]);
        app_key(a, INPUT_ESCAPE);
    }
    ck_assert_mem_eq(&a->feed.knobs, &before, sizeof before);
    ck_assert_int_eq(a->next.work, PENDING_NONE);
    uint64_t steps = a->feed.live.steps;
    screen_advance(a, 5);
    ck_assert_uint_gt(a->feed.live.steps, steps);
    screen_close(a);
}
END_TEST

START_TEST(leaving_and_interrupting_ask_nothing_and_stop_nothing)
{
    app *a = watching(false);
    screen_keys(a, "q");
    ck_assert_int_eq(a->next.work, PENDING_QUIT);
    screen_close(a);
    a = watching(false);
    app_key(a, INPUT_CTRL_C);
    ck_assert_int_eq(a->next.work, PENDING_QUIT);
    screen_close(a);
}
END_TEST

START_TEST(the_end_of_what_is_watched_is_a_line_and_the_graphs_stay)
{
    app *a = watching(false);
    uint64_t peak = a->feed.live.peak_bytes, steps = a->feed.live.steps;
    bool more;
    fake_engine_end(a->feed.session, HR_SESSION_ENDED,
                    &(hr_session_end){.saved_step = HR_NONE, .instr = HR_NO_ID, .sentence = "it is over"});
    app_drain(a, &more);
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_NOTE);
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "it is over"));
    ck_assert_uint_eq(a->feed.live.peak_bytes, peak);
    ck_assert_uint_eq(a->feed.live.steps, steps);
    char *text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "ended"));
    ck_assert_ptr_null(strstr(text, "failed"));
    free(text);
    screen_close(a);
}
END_TEST

START_TEST(whoever_watches_a_silent_training_is_not_told_to_restart_it)
{
    app *a = watching(false);
    bool more;
    fake_engine_end(a->feed.session, HR_SESSION_SILENT,
                    &(hr_session_end){.saved_step = HR_NONE, .instr = HR_NO_ID, .sentence = ""});
    app_drain(a, &more);
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "no sign of life"));
    ck_assert_ptr_null(strstr(a->feed.message.text, "R "));
    ck_assert_int_eq(run_log_newest(&a->feed.runs)->result, RUN_RUNNING);
    screen_close(a);
}
END_TEST

START_TEST(of_what_is_unknown_no_knob_is_shown)
{
    app *a = watching(true);
    char *text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "watching 7.sock"));
    ck_assert_ptr_null(strstr(text, "128"));
    ck_assert_ptr_null(strstr(text, "measured"));
    free(text);
    screen_close(a);
}
END_TEST

SUITE_MAIN("tui watch", a_watched_training_is_shown_and_cannot_be_turned,
           leaving_and_interrupting_ask_nothing_and_stop_nothing,
           whoever_watches_a_silent_training_is_not_told_to_restart_it,
           the_end_of_what_is_watched_is_a_line_and_the_graphs_stay, of_what_is_unknown_no_knob_is_shown)
