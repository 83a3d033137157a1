// SPDX-License-Identifier: Apache-2.0
// "/" on every screen and list, and what is said where something cannot be had.
#include <stdlib.h>
#include <string.h>

#include "app/tui/shell/frame.h"
#include "app/tui/shell/panes.h"
#include "app/tui/shell/tour.h"
#include "tests/tui/screen.h"
#include "tests/tui/suite.h"

static const screen_look plain = {.rows = 24, .columns = 80};

static const char *selected_key(const app *a)
{
    return hr_knob_rows(NULL)[feed_knob(&a->feed)].key;
}

static void ck_shows(app *a, const char *text, bool shown)
{
    char *screen = screen_text(a);
    ck_assert_msg((strstr(screen, text) != NULL) == shown, "%s '%s':\n%s", shown ? "no" : "there is", text,
                  screen);
    free(screen);
}

START_TEST(what_is_typed_after_a_slash_is_never_a_command)
{
    static const screen_look looks[] = {{.rows = 24, .columns = 80},
                                        {.rows = 16, .columns = 60},
                                        {.rows = 10, .columns = 40},
                                        {.rows = 1, .columns = 24}};
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        for (int screen = 0; screen < SCREEN_COUNT; screen++) {
            app *a = screen_open(&looks[i]);
            screen_advance(a, 4);
            free(screen_text(a));
            app_show_screen(a, (screen_id)screen);
            for (int panes = 0; panes < 8; panes++) {
                glyph_set before = a->looks.glyphs.set;
                app_key(a, '/');
                ck_assert(app_is_typing(a));
                free(screen_text(a));
                screen_keys(a, "grab");
                ck_assert(app_is_typing(a));
                ck_assert_str_eq(a->prompt.text, "grab");
                ck_assert(a->looks.glyphs.set == before && !a->bench.baseline.pinned);
                app_key(a, INPUT_ESCAPE);
                ck_assert(!app_is_typing(a));
                app_key(a, INPUT_TAB);
                free(screen_text(a));
            }
            screen_close(a);
        }
    }
}
END_TEST

START_TEST(among_knobs_it_selects_the_one_that_matches)
{
    app *a = screen_open(&plain);
    screen_keys(a, "/optimizer.k");
    ck_assert_str_eq(selected_key(a), "optimizer.kind");
    ck_shows(a, "1 of ", true);
    app_key(a, INPUT_ENTER);
    ck_assert_int_eq(a->overlay, OVERLAY_NONE);
    screen_keys(a, "/ALLOC");
    ck_assert_str_eq(selected_key(a), "allocator.kind");
    app_key(a, INPUT_DOWN);
    ck_assert_str_eq(selected_key(a), "allocator.growth");
    app_key(a, INPUT_UP);
    ck_assert_str_eq(selected_key(a), "allocator.kind");
    screen_keys(a, "nothing of that name");
    ck_assert_str_eq(selected_key(a), "allocator.kind");
    ck_shows(a, "0 of ", true);
    app_key(a, INPUT_ESCAPE);
    screen_keys(a, "/xyzzy\n");
    ck_assert_str_eq(a->feed.message.text, "no knob has 'xyzzy' in its key");
    screen_keys(a, "/vram\n");
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_NONE);
    screen_close(a);
}
END_TEST

START_TEST(a_pane_without_rows_hands_the_line_to_the_first_table)
{
    app *a = screen_open(&plain);
    screen_advance(a, 4);
    free(screen_text(a));
    a->focus = PANE_VRAM;
    screen_keys(a, "/no such tensor");
    ck_assert_int_eq(a->focus, PANE_PEAK);
    ck_assert_str_eq(a->table[PANE_PEAK].filter, "no such tensor");
    app_key(a, INPUT_ESCAPE);
    ck_assert_str_eq(a->table[PANE_PEAK].filter, "");
    app_request(a, REQUEST_COLUMNS);
    screen_keys(a, "/q");
    ck_assert_int_eq(a->overlay, OVERLAY_FILTER);
    screen_close(a);
}
END_TEST

START_TEST(presets_are_narrowed_by_name_and_title)
{
    app *a = screen_open(&plain);
    app_request(a, REQUEST_PRESETS);
    screen_keys(a, "/SMALL");
    ck_shows(a, "1 of 3", true);
    ck_assert_str_eq(app_preset_entry(a, 0)->name, "cifar10_separable_cnn");
    ck_assert_ptr_null(app_preset_entry(a, 1));
    app_key(a, INPUT_ENTER);
    ck_assert_int_eq(a->overlay, OVERLAY_PRESETS);
    app_key(a, INPUT_ENTER);
    ck_assert_str_eq(a->next.preset, "cifar10_separable_cnn");
    app_request(a, REQUEST_PRESETS);
    ck_assert_ptr_nonnull(app_preset_entry(a, 2)); // a new list has all
    screen_keys(a, "/xyz");
    ck_shows(a, "no preset matches", true);
    app_key(a, INPUT_ESCAPE);
    ck_assert_int_eq(a->overlay, OVERLAY_PRESETS);
    ck_assert_ptr_nonnull(app_preset_entry(a, 2));
    screen_close(a);
}
END_TEST

START_TEST(a_table_says_in_its_title_what_it_leaves_out_and_its_order)
{
    app *a = screen_open(&plain);
    screen_advance(a, 4);
    free(screen_text(a));
    a->focus = PANE_PEAK;
    ck_shows(a, "[at_peak]", true);
    app_command(a, "sort bytes");
    ck_shows(a, "[at_peak · by bytes▾]", true); // three rows: no heading
    app_command(a, "sort bytes");
    ck_shows(a, "by bytes▴]", true);
    a->expanded = true;
    ck_shows(a, "[at_peak]", true); // a heading says it
    app_command(a, "filter grad");
    ck_shows(a, " /grad · by", false); // nor is that said twice
    ck_shows(a, " of ", true);
    ck_shows(a, " /grad]", true);
    app_key(a, INPUT_TAB);
    ck_shows(a, "/grad", false); // another pane alone
    a->expanded = false;
    ck_shows(a, " /grad · by bytes▴ ", true);
    screen_close(a);
}
END_TEST

START_TEST(the_filter_command_goes_where_the_key_goes)
{
    app *a = screen_open(&plain);
    screen_advance(a, 4);
    app_command(a, "filter growth");
    ck_assert_str_eq(selected_key(a), "allocator.growth");
    free(screen_text(a));
    a->focus = PANE_LOG;
    app_command(a, "filter grad");
    ck_assert_str_eq(a->table[PANE_PEAK].filter, "grad");
    screen_close(a);
}
END_TEST

static bool shows_words(app *a, const char *words)
{
    char *text = screen_text(a), solid[8192];
    size_t length = 0;
    for (const char *c = text; *c != '\0' && length + 1 < sizeof solid; c++) {
        bool blank = *c == ' ' || *c == '\n';
        if (!blank || (length > 0 && solid[length - 1] != ' ')) {
            solid[length++] = blank ? ' ' : *c;
        }
    }
    solid[length] = '\0';
    free(text);
    return strstr(solid, words) != NULL;
}

START_TEST(what_a_preset_says_of_itself_is_shown_before_and_when_it_is_opened)
{
    static const char claim[] = "accumulating two of those halves learns the same.";
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    screen_advance(a, 5);
    screen_keys(a, "p");
    ck_assert(!shows_words(a, claim));
    app_key(a, INPUT_END);
    ck_assert(shows_words(a, claim));
    app_key(a, INPUT_ESCAPE);
    screen_keys(a, "6");
    a->focus = PANE_SITUATIONS;
    ck_assert(shows_words(a, claim));
    screen_keys(a, "\ny");
    for (int i = 0; i < 50 && a->next.work != PENDING_NONE; i++) {
        app_work(a);
    }
    ck_assert_str_eq(hr_preset_name(a->feed.preset), "wide");
    ck_assert(shows_words(a, claim));
    ck_assert_ptr_nonnull(strstr(a->feed.live.log[0].text, claim));
    screen_close(a);
}
END_TEST

START_TEST(a_card_that_is_none_is_not_taken)
{
    app *a = screen_open(&plain);
    screen_advance(a, 4);
    app_command(a, "set device.card h100-80g");
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
    ck_assert_str_eq(hr_knob_text(&a->feed.knobs, HR_KNOB_DEVICE_CARD), "");
    ck_assert_uint_eq(a->feed.turned.count, 0);
    screen_close(a);
}
END_TEST

START_TEST(a_card_of_ones_own_is_a_name_and_what_differs)
{
    app *a = screen_open(&plain);
    screen_advance(a, 4);
    app_command(a, "card own-8g  vram=12GiB memory_bytes_per_second=9e11");
    ck_assert_str_eq(hr_knob_text(&a->feed.knobs, HR_KNOB_DEVICE_CARD),
                     "own-8g,vram=12GiB,memory_bytes_per_second=9e11");
    app_command(a, "card own-8g,vram=10GiB");
    ck_assert_str_eq(hr_knob_text(&a->feed.knobs, HR_KNOB_DEVICE_CARD), "own-8g,vram=10GiB");
    app_command(a, "card nothing vram=12GiB");
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
    ck_assert_str_eq(hr_knob_text(&a->feed.knobs, HR_KNOB_DEVICE_CARD), "own-8g,vram=10GiB");
    app_command(a, "card");
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_ERROR);
    screen_close(a);
}
END_TEST

START_TEST(what_is_typed_in_a_shell_is_said_as_it_is_typed_here)
{
    static const char *const said[][2] = {
        {"-s batch.size=32", "try: :set batch.size 32"},
        {"-s device.card=a=b, or -s batch.size=2", "try: :set device.card a=b, or :set batch.size 2"},
        {"headroom plan resnet18", "try: :preset resnet18"},
        {"-s train.resume= to start anew", "try: :set train.resume= to start anew"},
        {"headroom plan demo --at-peak", "try: headroom plan demo --at-peak"},
        {"headroom demo -s batch.size=32", "try: :anew batch.size 32"},
        {"headroom demo -s a=1 -s b=2", "try: headroom demo -s a=1 -s b=2"},
        {"headroom demo -s a=1 --steps 2", "try: headroom demo -s a=1 --steps 2"},
        {"headroom vgg16 -s a=1", "try: headroom vgg16 -s a=1"},
        {"a=b", "try: a=b"}};
    app *a = screen_open(&plain);
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        hr_err err;
        ck_assert_int_ne(HR_FAIL(&err, KNOB, "needed one"), HR_OK);
        hr_err_try(&err, "%s", said[i][0]);
        feed_say_error(&a->feed, &err);
        ck_assert_str_eq(strstr(a->feed.message.text, "try: "), said[i][1]);
    }
    screen_close(a);
}
END_TEST

START_TEST(undone_twice_there_was_something_to_undo)
{
    app *a = screen_open(&plain);
    ck_assert_str_eq(app_why_not(a, REQUEST_UNDO), "no knob has been turned yet");
    app_request(a, REQUEST_LESS);
    app_request(a, REQUEST_UNDO);
    ck_assert_str_eq(app_why_not(a, REQUEST_UNDO), "nothing more to undo: Z turns it again");
    screen_close(a);
}
END_TEST

START_TEST(the_tip_is_about_the_selected_knob)
{
    app *a = screen_open(&plain);
    screen_advance(a, 40);
    ck_shows(a, "←→ turn batch size · 256 will not fit", true);
    ck_shows(a, "b pin · ", true);
    app_request(a, REQUEST_PIN);
    a->feed.message.kind = MESSAGE_NONE;
    ck_shows(a, "b pin · ", false);
    app_request(a, REQUEST_DOWN);
    ck_shows(a, "←→ turn batch accumulate", true);
    ck_shows(a, "256 will not fit", false);
    a->focus = PANE_PEAK;
    ck_shows(a, "←→ turn", false);
    screen_close(a);
}
END_TEST

START_TEST(who_only_watches_is_offered_nothing_that_turns)
{
    app *a = screen_open(&plain);
    screen_advance(a, 40);
    a->feed.watched = "/somewhere.sock";
    ck_shows(a, "←→ turn", false);
    ck_shows(a, "Enter edit", false);
    ck_shows(a, "try it", false);
    ck_shows(a, "p presets", false);
    app_request(a, REQUEST_ENTER);
    ck_assert_int_eq(a->overlay, OVERLAY_NONE);
    app_show_screen(a, SCREEN_DOCTOR);
    ck_shows(a, " apply", false);
    screen_close(a);
}
END_TEST

START_TEST(the_tour_stays_where_it_stood_until_its_step_is_done)
{
    app *a = screen_open(&plain);
    screen_advance(a, 40);
    tour_begin(a);
    static const int keys[] = {'?', INPUT_ESCAPE, 'p', INPUT_ESCAPE, '4', '1', '.', INPUT_ESCAPE, INPUT_DOWN};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        app_key(a, keys[i]);
        ck_shows(a, "tour 1/9", true);
    }
    feed_say(&a->feed, MESSAGE_ERROR, "something went wrong");
    ck_shows(a, "tour 1/9", true);
    ck_shows(a, "something went wrong", true);
    screen_close(a);
}
END_TEST

START_TEST(the_tour_speaks_of_what_its_own_key_has_brought)
{
    static const struct {
        const char *before;
        screen_id screen;
        const char *line;
    } turns[] = {{"", SCREEN_DOCTOR, "the Doctor says why"},
                 {":set batch.size 32\n", SCREEN_BENCH, "beside each knob stands"}};
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        app *a = screen_open(&plain);
        screen_advance(a, 40);
        screen_keys(a, turns[i].before);
        screen_keys(a, "]\t"); // the tour begins anywhere
        tour_begin(a);
        ck_shows(a, "turns batch size up", true);
        app_key(a, INPUT_RIGHT);
        screen_advance(a, 5);
        ck_assert_int_eq(a->screen, turns[i].screen);
        ck_shows(a, "tour 2/9", true);
        ck_shows(a, turns[i].line, true);
        screen_close(a);
    }
}
END_TEST

START_TEST(the_tour_of_what_does_not_fit_turns_the_batch_down)
{
    app *a = screen_open(&plain);
    screen_advance(a, 10);
    screen_keys(a, ":set batch.size 256\n");
    screen_advance(a, 5);
    ck_assert_int_eq(a->feed.live.state, HR_ENGINE_OOM);
    tour_begin(a);
    ck_shows(a, "tour 1/9: this does not fit: ← turns batch size down", true);
    app_key(a, INPUT_LEFT);
    screen_advance(a, 5);
    ck_shows(a, "tour 2/9: z undoes it", true);
    screen_close(a);
}
END_TEST

START_TEST(the_first_card_speaks_of_what_stands_behind_it)
{
    app *a = screen_open(&plain);
    screen_advance(a, 10);
    a->overlay = OVERLAY_CARD;
    ck_shows(a, "Behind this card a network trains", true);
    a->overlay = OVERLAY_NONE;
    screen_keys(a, ":set batch.size 256\n");
    screen_advance(a, 5);
    a->overlay = OVERLAY_CARD;
    ck_shows(a, "Behind this card a network does not fit", true);
    ck_shows(a, "Behind this card a network trains", false);
    screen_close(a);
}
END_TEST

// "=" beside a knob is no answer to why: in the short help stands when it applies, and `.` says it.
START_TEST(a_knob_without_effect_says_when_it_applies)
{
    size_t count;
    const hr_knob_id *panel = knob_edit_panel(&count);
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    screen_advance(a, 10);
    for (int acts = 0; acts < 2; acts++) {
        screen_keys(a, acts == 0 ? ":set optimizer.kind adam\n" : ":set optimizer.kind momentum\n");
        screen_advance(a, 3);
        for (a->feed.knob = 0; panel[a->feed.knob] != HR_KNOB_OPTIMIZER_MOMENTUM; a->feed.knob++) {
            ck_assert_uint_lt(a->feed.knob, count);
        }
        ck_shows(a, "no effect: applies with", acts == 0);
        app_key(a, INPUT_ESCAPE);
        screen_keys(a, ".");
        ck_assert_int_eq(strstr(a->feed.message.text,
                                "It has no effect now: it applies with optimizer.kind momentum.") != NULL,
                         acts == 0);
        app_key(a, INPUT_ESCAPE);
    }
    screen_close(a);
}
END_TEST

START_TEST(the_marks_beside_knobs_are_explained)
{
    app *a = screen_open(&plain);
    app_request(a, REQUEST_HELP);
    ck_shows(a, "▴ more, = as much, ! does not fit", true);
    screen_close(a);
}
END_TEST

SUITE_MAIN("tui find", what_a_preset_says_of_itself_is_shown_before_and_when_it_is_opened,
           what_is_typed_after_a_slash_is_never_a_command, among_knobs_it_selects_the_one_that_matches,
           a_pane_without_rows_hands_the_line_to_the_first_table, presets_are_narrowed_by_name_and_title,
           a_table_says_in_its_title_what_it_leaves_out_and_its_order,
           the_filter_command_goes_where_the_key_goes, a_card_that_is_none_is_not_taken,
           a_card_of_ones_own_is_a_name_and_what_differs,
           what_is_typed_in_a_shell_is_said_as_it_is_typed_here, undone_twice_there_was_something_to_undo,
           the_tip_is_about_the_selected_knob, who_only_watches_is_offered_nothing_that_turns,
           the_tour_stays_where_it_stood_until_its_step_is_done,
           the_tour_speaks_of_what_its_own_key_has_brought,
           the_tour_of_what_does_not_fit_turns_the_batch_down, the_first_card_speaks_of_what_stands_behind_it,
           a_knob_without_effect_says_when_it_applies, the_marks_beside_knobs_are_explained)
