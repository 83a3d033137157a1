// SPDX-License-Identifier: Apache-2.0
// Lua on the screen: the console, `:lua`, `:=`, and what a recipe says while the console is closed. The guest is a fake.
#include <stdlib.h>
#include <string.h>

#include "app/tui/shell/act.h"
#include "app/tui/shell/remember.h"
#include "tests/tui/fake_engine.h"
#include "tests/tui/screen.h"
#include "tests/tui/suite.h"

static bool is_whole(const char *text)
{
    return strstr(text, "do") == NULL || strstr(text, "end") != NULL;
}

static const hr_guest_ops lua = {.is_whole = is_whole};

static app *bench(int rows, int columns)
{
    app *a = screen_open(&(screen_look){.rows = rows, .columns = columns});
    fake_guest_begin();
    a->feed.guest = &lua;
    return a;
}

static void expect(app *a, const char *text, bool shown)
{
    char *screen = screen_text(a);
    ck_assert_msg((strstr(screen, text) != NULL) == shown, "'%s' is%s on\n%s", text, shown ? " not" : "",
                  screen);
    free(screen);
}

static void line(app *a, const char *text)
{
    screen_keys(a, text);
    app_key(a, INPUT_ENTER);
}

static void drain(app *a)
{
    bool more = false;
    (void)app_drain(a, &more);
}

static void say(app *a, hr_guest_line kind, const char *text)
{
    fake_guest_say(kind, text);
    drain(a);
}

// ---- orders -----------------------------------------------------------------------------------------------------

START_TEST(a_recipe_is_ordered_with_its_words_and_the_console_shows_what_it_says)
{
    app *a = bench(24, 80);
    line(a, ":lua find_rate demo batch.size=64");
    ck_assert_str_eq(fake_guest_order(), "0 recipes/find_rate.lua\ndemo\nbatch.size=64");
    expect(a, "> :lua find_rate demo batch.size=64", true);
    say(a, HR_GUEST_STATE, "running find_rate.lua");
    say(a, HR_GUEST_PRINTED, "tried 0.1");
    say(a, HR_GUEST_NOTE, "it explodes at 3.0");
    expect(a, "runs find_rate.lua · ^C stops it", true);
    expect(a, "  tried 0.1", true);
    expect(a, "lua find_rate.lua", true); // in the title
    app_key(a, INPUT_ESCAPE);
    expect(a, "it explodes at 3.0", true); // a note stands in the log
    expect(a, "tried 0.1", false);
    screen_keys(a, "=");
    expect(a, "tried 0.1", true);
    screen_close(a);
}
END_TEST

// A worker may say anything: no byte of this begins a character.
START_TEST(a_text_that_is_no_utf_8_goes_on_in_the_next_line)
{
    static char text[601];
    app *a = bench(24, 80);
    line(a, ":lua find_rate");
    memset(text, 0x80, sizeof text - 1);
    const uint64_t before = a->feed.recipe.count;
    say(a, HR_GUEST_PRINTED, text);
    ck_assert_uint_eq(a->feed.recipe.count - before, 3);
    say(a, HR_GUEST_PRINTED, "and so on");
    expect(a, "  and so on", true);
    screen_close(a);
}
END_TEST

START_TEST(a_recipe_that_is_not_there_is_refused_in_words)
{
    app *a = bench(24, 80);
    line(a, ":lua missing");
    ck_assert_str_eq(fake_guest_order(), "");
    expect(a, "there is no recipe 'missing'", true);
    expect(a, ":lua largest_batch", true);
    app_key(a, INPUT_ESCAPE);
    line(a, ":=  ");
    expect(a, "= needs an expression", true);
    screen_close(a);
}
END_TEST

// What a lesson holds no recipe turns; in its sandbox one may, and what was left listening there ends with it.
START_TEST(a_lesson_takes_no_recipe)
{
    app *a = bench(24, 80);
    screen_keys(a, "L\n\n\n\n\n");
    app_work(a);
    line(a, ":=hr.knobs.optimizer.kind");
    ck_assert_str_eq(fake_guest_order(), "");
    expect(a, "which the lesson holds: s opens a sandbox for it", true);
    line(a, ":lua find_rate");
    ck_assert_str_eq(fake_guest_order(), "");
    ck_assert_int_eq(a->overlay, OVERLAY_NONE);
    line(a, ":lua stop");
    ck_assert_uint_eq(fake_guest_interrupts(), 1);
    screen_keys(a, "s");
    line(a, ":lua find_rate");
    ck_assert_str_eq(fake_guest_order(), "0 recipes/find_rate.lua");
    say(a, HR_GUEST_STATE, "listening find_rate.lua");
    app_key(a, INPUT_ESCAPE);
    screen_keys(a, "s");
    free(screen_text(a));
    ck_assert_str_eq(fake_guest_order(), "2 ");
    ck_assert_uint_eq(fake_guest_interrupts(), 2);
    screen_close(a);
}
END_TEST

START_TEST(a_second_order_waits_for_the_first)
{
    app *a = bench(24, 80);
    line(a, ":lua find_rate");
    say(a, HR_GUEST_STATE, "running find_rate.lua");
    line(a, "1 + 1");
    ck_assert_str_eq(fake_guest_order(), "0 recipes/find_rate.lua");
    expect(a, "a recipe is at work: ^C stops it", true);
    screen_close(a);
}
END_TEST

START_TEST(what_an_expression_comes_to_is_said_where_the_console_is_closed)
{
    app *a = bench(24, 80);
    line(a, ":=hr.knobs.batch.size * 2");
    ck_assert_str_eq(fake_guest_order(), "1 hr.knobs.batch.size * 2");
    say(a, HR_GUEST_STATE, "running console");
    say(a, HR_GUEST_PRINTED, "256");
    say(a, HR_GUEST_STATE, "idle");
    ck_assert_int_eq(a->overlay, OVERLAY_NONE);
    expect(a, "256\n", true);
    line(a, ":=nonsense +");
    say(a, HR_GUEST_ERROR, "headroom: script failed: console 2:1: unexpected symbol");
    say(a, HR_GUEST_ERROR, "  >    1 | nonsense +");
    expect(a, "script failed: console 2:1: unexpected symbol", true);
    expect(a, ">    1 | nonsense +", true);
    screen_close(a);
}
END_TEST

START_TEST(a_plot_opens_the_console)
{
    app *a = bench(24, 80);
    line(a, ":=plot_it()");
    say(a, HR_GUEST_PLOT, "      4 |        *");
    say(a, HR_GUEST_PLOT, "      1 |*");
    ck_assert_int_eq(a->overlay, OVERLAY_CONSOLE);
    expect(a, "      4 |        *\n      1 |*", true);
    screen_close(a);
}
END_TEST

START_TEST(long_lines_of_an_error_go_on_below)
{
    app *a = bench(24, 80);
    screen_keys(a, "=");
    say(a, HR_GUEST_ERROR,
        "headroom: script failed: /a/long/way/to/a/recipe/that/has/a/long/name.lua:12: needed a table such "
        "as "
        "{key = value}, had a number and then some words that end HERE");
    expect(a, "HERE", true);
    expect(a, "…", false);
    screen_close(a);
}
END_TEST

// ---- the line ---------------------------------------------------------------------------------------------------

START_TEST(a_chunk_that_is_not_whole_takes_another_line)
{
    app *a = bench(24, 80);
    screen_keys(a, "=");
    line(a, "for k = 1, 2 do");
    expect(a, "\n>>\n", true);
    line(a, "print(k) end");
    ck_assert_str_eq(fake_guest_order(), "1 for k = 1, 2 do\nprint(k) end");
    line(a, "do");
    line(a, ""); // given up: Lua says what it lacks
    ck_assert_str_eq(fake_guest_order(), "1 do\n");
    app_key(a, INPUT_UP);
    ck_assert_str_eq(a->console.prompt.text, "do");
    app_key(a, INPUT_UP);
    ck_assert_str_eq(a->console.prompt.text, "print(k) end");
    screen_close(a);
}
END_TEST

START_TEST(lines_of_the_console_are_remembered_apart_from_commands)
{
    app *a = bench(24, 80);
    line(a, ":set batch.size 64");
    screen_keys(a, "=");
    line(a, "hr.plan()");
    char *text = remember_text(a);
    ck_assert_ptr_nonnull(strstr(text, "line set batch.size 64\n"));
    ck_assert_ptr_nonnull(strstr(text, "lua hr.plan()\n"));
    ck_assert_ptr_null(strstr(text, "line hr.plan()"));
    free(text);
    screen_close(a);
}
END_TEST

START_TEST(tab_completes_from_the_answer_and_an_old_answer_is_none)
{
    app *a = bench(24, 80);
    screen_keys(a, "=");
    screen_keys(a, "hr.pl");
    ck_assert_str_eq(fake_guest_order(), "3 5 5\nhr.pl");
    say(a, HR_GUEST_ANSWER, "4 3 old hint");
    say(a, HR_GUEST_ANSWER, "+pair\t");
    expect(a, "old hint", false);
    say(a, HR_GUEST_ANSWER, "5 3 hr.plan{steps = N}");
    say(a, HR_GUEST_ANSWER, "+plan\t(");
    expect(a, "hr.plan{steps = N}", true);
    app_key(a, INPUT_TAB);
    ck_assert_str_eq(a->console.prompt.text, "hr.plan(");
    screen_close(a);
}
END_TEST

// ---- the stop ---------------------------------------------------------------------------------------------------

START_TEST(the_stop_key_reaches_a_recipe_wherever_it_is_pressed)
{
    app *a = bench(24, 80);
    line(a, ":lua find_rate");
    say(a, HR_GUEST_STATE, "running find_rate.lua");
    app_key(a, INPUT_CTRL_C);
    ck_assert_uint_eq(fake_guest_interrupts(), 1);
    ck_assert_str_eq(fake_guest_order(), "2 ");
    expect(a, "find_rate.lua · stops", true);
    say(a, HR_GUEST_STATE, "listening find_rate.lua");
    app_key(a, INPUT_ESCAPE);
    a->feed.recipe.stopping = false;
    app_key(a, INPUT_CTRL_C);
    ck_assert_uint_eq(fake_guest_interrupts(), 2);
    ck_assert_int_eq(a->next.work, PENDING_NONE); // the workbench stays
    line(a, ":lua stop");
    ck_assert_uint_eq(fake_guest_interrupts(), 3);
    screen_close(a);
}
END_TEST

START_TEST(a_worker_that_a_recipe_took_with_it_is_started_again)
{
    app *a = bench(24, 80);
    const hr_session_end end = {
        .exit_code = 3,
        .step = 12,
        .instr = HR_NO_ID,
        .saved_step = HR_NONE,
        .sentence = "the worker was ended with exit code 3; the last it said: bad.lua:3: did not come back"};
    line(a, ":lua bad");
    say(a, HR_GUEST_STATE, "running bad.lua");
    fake_engine_end(a->feed.session, HR_SESSION_ENDED, &end);
    (void)feed_check_life(&a->feed);
    ck_assert(feed_engine_lives(&a->feed));
    ck_assert_int_eq(a->feed.recipe.state, RECIPE_IDLE);
    expect(a, "the recipe hung: bad.lua:3: did not come back", true);
    expect(a, "the training goes on from step 0", false); // it is a sentence
    expect(a, "The training goes on", true);
    screen_close(a);
}
END_TEST

START_TEST(a_training_that_rested_rests_when_a_recipe_has_hung)
{
    app *a = bench(24, 80);
    const hr_session_end end = {
        .exit_code = 3, .step = 12, .instr = HR_NO_ID, .saved_step = HR_NONE, .sentence = "it hung"};
    for (int rests = 0; rests < 3; rests++) {
        screen_advance(a, 20);
        if (rests == 1) {
            app_key(a, 'r');
            screen_advance(a, 3);
            ck_assert_int_eq(a->feed.live.state, HR_ENGINE_PAUSED);
        } else if (rests == 2) { // behind a run of a recipe's own
            app_key(a, 'r');
            screen_advance(a, 3);
            a->feed.live.state = HR_ENGINE_IDLE;
        }
        line(a, ":lua bad");
        say(a, HR_GUEST_STATE, "running bad.lua");
        fake_engine_end(a->feed.session, HR_SESSION_ENDED, &end);
        (void)feed_check_life(&a->feed);
        fake_guest_begin();
        app_key(a, INPUT_ESCAPE);
        screen_advance(a, 3);
        ck_assert_int_eq(a->feed.live.state, rests != 0 ? HR_ENGINE_PAUSED : HR_ENGINE_RUNNING);
        ck_assert(rests == 0 || a->feed.live.steps == 0); // there is no save
    }
    screen_close(a);
}
END_TEST

START_TEST(what_a_recipe_turns_is_turned_on_the_screen)
{
    app *a = bench(24, 80);
    line(a, ":=hr.knobs.batch.size = 64");
    hr_event knob = {.version = HR_EVENT_VERSION,
                     .kind = HR_EVENT_KNOB,
                     .category = HR_CATEGORY_COUNT,
                     .phase = HR_PHASE_COUNT};
    knob.u.note.count = HR_KNOB_BATCH_SIZE;
    strcpy(knob.u.note.text, "64");
    const uint64_t question = a->feed.question;
    fake_engine_say(a->feed.session, &knob);
    drain(a);
    ck_assert_int_eq(hr_knob_int(&a->feed.knobs, HR_KNOB_BATCH_SIZE), 64);
    ck_assert_uint_ne(a->feed.question, question); // what was planned beside 128 is not of 64
    screen_close(a);
}
END_TEST

// Whatever a guest says, at any size.
START_TEST(any_lines_are_shown_without_harm)
{
    static const int sizes[][2] = {{24, 80}, {50, 160}, {16, 60}, {10, 30}, {2, 20}, {1, 8}};
    static const char kinds[] = {'o', 'n', 'p', 'e', 's', 'c', '?', '\x01'};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        app *a = bench(sizes[k][0], sizes[k][1]);
        screen_keys(a, "=");
        for (unsigned seed = 0; seed < 200; seed++) {
            char text[700];
            srand(seed);
            const size_t length = (size_t)rand() % sizeof text;
            for (size_t c = 0; c < length; c++) {
                text[c] = (char)(rand() % 255 + 1);
                text[c] = text[c] == '\n' ? ' ' : text[c];
            }
            text[length > 0 ? length - 1 : 0] = '\0';
            say(a, (hr_guest_line)kinds[(size_t)rand() % sizeof kinds], text);
            app_key(a, rand() % 2 ? INPUT_PAGE_UP : INPUT_PAGE_DOWN);
            free(screen_text(a));
        }
        screen_close(a);
    }
}
END_TEST

SUITE_MAIN("tui console", a_recipe_is_ordered_with_its_words_and_the_console_shows_what_it_says,
           a_text_that_is_no_utf_8_goes_on_in_the_next_line, a_recipe_that_is_not_there_is_refused_in_words,
           a_second_order_waits_for_the_first, a_lesson_takes_no_recipe,
           what_an_expression_comes_to_is_said_where_the_console_is_closed, a_plot_opens_the_console,
           long_lines_of_an_error_go_on_below, a_chunk_that_is_not_whole_takes_another_line,
           lines_of_the_console_are_remembered_apart_from_commands,
           tab_completes_from_the_answer_and_an_old_answer_is_none,
           the_stop_key_reaches_a_recipe_wherever_it_is_pressed,
           a_worker_that_a_recipe_took_with_it_is_started_again,
           a_training_that_rested_rests_when_a_recipe_has_hung, what_a_recipe_turns_is_turned_on_the_screen,
           any_lines_are_shown_without_harm)
