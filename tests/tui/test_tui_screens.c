// SPDX-License-Identifier: Apache-2.0
// Golden screens of the Bench and of what lies over it.
#include <stdlib.h>

#include "headroom/units.h"

#include "app/tui/pane/graph.h"
#include "tests/tui/golden.h"
#include "tests/tui/suite.h"

static const struct {
    const char *name;
    screen_look look;
} benches[] = {
    {"bench-80x24", {.rows = 24, .columns = 80}},
    {"bench-120x36", {.rows = 36, .columns = 120}},
    {"bench-160x50", {.rows = 50, .columns = 160}},
    {"bench-60x16", {.rows = 16, .columns = 60}},
    {"bench-40x10", {.rows = 10, .columns = 40}},
    {"bench-20x4", {.rows = 4, .columns = 20}},
    {"bench-ascii", {.rows = 24, .columns = 80, .glyphs = GLYPHS_ASCII}},
    {"bench-braille", {.rows = 24, .columns = 80, .glyphs = GLYPHS_BRAILLE}},
    {"bench-mono", {.rows = 24, .columns = 80, .no_color = true}},
    {"bench-vt100", {.type = "vt100", .rows = 24, .columns = 80, .glyphs = GLYPHS_ASCII}},
    {"bench-8-colors", {.type = "xterm", .rows = 24, .columns = 80}},
};

START_TEST(the_bench_after_a_hundred_steps_looks_as_agreed)
{
    for (size_t i = 0; i < sizeof benches / sizeof *benches; i++) {
        app *a = screen_open(&benches[i].look);
        screen_advance(a, 120);
        golden_compare(benches[i].name, a);
        screen_close(a);
    }
}
END_TEST

START_TEST(a_compressed_training_shows_what_is_left_of_it_in_deployment)
{
    static const struct {
        const char *name;
        screen_look look;
    } looks[] = {{"bench-deployed-80x24", {.rows = 24, .columns = 80}},
                 {"bench-deployed-160x50", {.rows = 50, .columns = 160}},
                 {"bench-deployed-ascii", {.rows = 50, .columns = 160, .glyphs = GLYPHS_ASCII}}};
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        app *a = screen_open(&looks[i].look);
        app_turn(&a->feed, HR_KNOB_COMPRESS_QUANTIZE, "int8");
        screen_advance(a, 120);
        golden_compare(looks[i].name, a);
        screen_close(a);
    }
}
END_TEST

START_TEST(the_first_frame_needs_no_engine)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    golden_compare("first-frame", a);
    screen_close(a);
}
END_TEST

START_TEST(a_turn_that_does_not_fit_calls_the_doctor_and_turning_back_sends_it_away)
{
    static const screen_look looks[] = {{.rows = 24, .columns = 80}, {.rows = 50, .columns = 160}};
    static const char *const names[] = {"doctor-80x24", "doctor-160x50"};
    for (int i = 0; i < 2; i++) {
        app *a = screen_open(&looks[i]);
        screen_advance(a, 50);
        app_key(a, INPUT_RIGHT);
        screen_advance(a, 3);
        ck_assert_int_eq(a->feed.live.state, HR_ENGINE_OOM);
        ck_assert_int_eq(a->screen, SCREEN_DOCTOR);
        golden_compare(names[i], a);
        screen_keys(a, "z");
        screen_advance(a, 10);
        ck_assert_int_eq(a->feed.live.state, HR_ENGINE_RUNNING);
        ck_assert_int_eq(a->screen, SCREEN_BENCH);
        ck_assert_uint_gt(a->feed.live.steps, 55);
        screen_close(a);
    }
}
END_TEST

START_TEST(what_was_above_a_lowered_limit_is_seen_above_its_line)
{
    for (uint64_t limit = 1; limit <= 128; limit++) {
        graph_scale s = graph_scale_of(0, limit * HR_MIB, 64 * HR_MIB);
        ck_assert_double_gt(s.top_bytes, 64.0 * (double)HR_MIB);
        ck_assert_uint_eq(s.limit_bytes, limit * HR_MIB);
        ck_assert_double_gt(s.top_bytes, (double)s.limit_bytes);
        ck_assert_uint_eq(s.full_bytes, (limit > 64 ? limit : 64) * HR_MIB);
    }
}
END_TEST

// Of the graph's last row: an age stands beside a mark, whole, and is that of its column.
START_TEST(a_mark_and_a_label_of_the_axis_never_share_a_place)
{
    app *a = screen_open(&golden_looks[0].look);
    screen_advance(a, 400);
    history *h = &a->feed.live.history;
    history_bucket *ring = h->level[a->bench.zoom - 1].ring;
    rect r = app_layout(a).pane[PANE_VRAM];
    int shown = 0, later = 0;
    long begin = -1, all = 0;
    for (uint32_t back = 0; history_at(h, a->bench.zoom - 1, back) != NULL; back++) {
        history_bucket *bucket = &ring[history_at(h, a->bench.zoom - 1, back) - ring];
        const uint8_t marks = bucket->marks;
        bucket->marks = MARK_KNOB;
        char *text = screen_text(a), row[256] = "";
        int marked = 0;
        for (int x = 0; x < r.w; x++) {
            const wchar_t glyph = paint_read(r.y + r.h - 1, r.x + x).glyph;
            row[x] = glyph == L'▲' ? '^' : glyph < 127 && glyph > 0 ? (char)glyph : ' ';
            marked += row[x] == '^';
        }
        const char *ago = strstr(row, " s ago ");
        ck_assert_msg(ago != NULL, "%s", row);
        const long x = (long)strcspn(row, "0123456789"), seconds = strtol(row + x, NULL, 10);
        begin = begin < 0 || x < begin ? x : begin;
        all = seconds > all ? seconds : all; // one mark is never in the way of all columns
        later += x > begin;
        ck_assert_msg(labs(seconds - (all - (x - begin) * all / (long)a->bench.graph_columns)) <= 1, "%s",
                      row);
        ck_assert_msg(strstr(row, " now ") != NULL || strstr(row, "ow ") == NULL, "%s", row);
        ck_assert_int_le(marked, 1);
        shown += marked;
        bucket->marks = marks;
        free(text);
    }
    ck_assert_int_gt(shown, 20); // of every column of the graph
    ck_assert_int_gt(later, 3);  // behind the mark, and so much younger
    screen_close(a);
}
END_TEST

START_TEST(a_pinned_baseline_shows_what_changed)
{
    app *a = screen_open(&(screen_look){.rows = 36, .columns = 120});
    screen_advance(a, 50);
    screen_keys(a, "b");
    app_key(a, INPUT_LEFT);
    screen_advance(a, 30);
    golden_compare("baseline-120x36", a);
    screen_close(a);
}
END_TEST

START_TEST(overlays_and_messages_look_as_agreed)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    screen_advance(a, 20);
    screen_keys(a, "?");
    golden_compare("help-knob", a);
    screen_keys(a, "?\t?");
    golden_compare("help-counter", a);
    screen_keys(a, "?p");
    golden_compare("presets", a);
    app_key(a, INPUT_ESCAPE);
    screen_keys(a, ".");
    golden_compare("sentence", a);
    screen_keys(a, ":set batch.sise 3\n");
    golden_compare("error", a);
    app_key(a, INPUT_ESCAPE);
    screen_keys(a, "q");
    golden_compare("leave", a);
    screen_keys(a, "n: set opt");
    app_key(a, INPUT_TAB);
    golden_compare("prompt", a);
    app_key(a, INPUT_ESCAPE);
    screen_keys(a, "-e");
    golden_compare("expanded-memory", a);
    screen_close(a);
}
END_TEST

START_TEST(the_last_step_is_the_finest_zoom)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    screen_advance(a, 20);
    screen_keys(a, "++");
    golden_compare("one-step", a);
    screen_close(a);
}
END_TEST

START_TEST(a_frozen_view_stands_still_while_the_training_goes_on)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    screen_advance(a, 20);
    screen_keys(a, " ");
    char *before = screen_text(a);
    screen_advance(a, 50);
    char *after = screen_text(a);
    ck_assert_str_eq(before, after);
    ck_assert_uint_eq(a->feed.live.steps, 69);
    screen_keys(a, " ");
    char *later = screen_text(a);
    ck_assert_str_ne(before, later);
    free(before);
    free(after);
    free(later);
    screen_close(a);
}
END_TEST

START_TEST(what_comes_while_the_view_is_frozen_is_shown_once_it_goes_on)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    screen_advance(a, 20);
    screen_keys(a, " ");
    uint64_t version = a->feed.report_version;
    app_key(a, INPUT_RIGHT); // batch 256 does not fit
    screen_advance(a, 3);
    ck_assert_int_eq(a->feed.live.state, HR_ENGINE_OOM);
    ck_assert_int_eq(a->screen, SCREEN_BENCH);
    ck_assert_int_eq(a->feed.report.oom.cause, HR_OOM_NONE);
    ck_assert_uint_eq(a->feed.report_version, version);
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "Space shows why"));
    const run *last = run_log_newest(&a->feed.runs);
    ck_assert_int_eq(last->result, RUN_OOM);
    ck_assert_str_eq(last->cause, hr_oom_cause_name(HR_OOM_CAPACITY)); // the runs hear of every report
    screen_keys(a, " ");
    ck_assert_int_eq(a->screen, SCREEN_DOCTOR);
    ck_assert_int_eq(a->feed.report.oom.cause, HR_OOM_CAPACITY);
    char *text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "OUT OF MEMORY"));
    free(text);
    screen_close(a);
}
END_TEST

START_TEST(the_same_state_draws_the_same_frame)
{
    app *a = screen_open(&(screen_look){.rows = 50, .columns = 160});
    screen_advance(a, 77);
    char *first = screen_text(a), *second = screen_text(a);
    ck_assert_str_eq(first, second);
    free(first);
    free(second);
    screen_close(a);
}
END_TEST

SUITE_MAIN("tui screens", the_bench_after_a_hundred_steps_looks_as_agreed,
           a_compressed_training_shows_what_is_left_of_it_in_deployment, the_first_frame_needs_no_engine,
           a_turn_that_does_not_fit_calls_the_doctor_and_turning_back_sends_it_away,
           what_was_above_a_lowered_limit_is_seen_above_its_line,
           a_mark_and_a_label_of_the_axis_never_share_a_place, a_pinned_baseline_shows_what_changed,
           overlays_and_messages_look_as_agreed, the_last_step_is_the_finest_zoom,
           a_frozen_view_stands_still_while_the_training_goes_on,
           what_comes_while_the_view_is_frozen_is_shown_once_it_goes_on, the_same_state_draws_the_same_frame)
