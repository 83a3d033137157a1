// SPDX-License-Identifier: Apache-2.0
// The line: keys, what was typed before, paste, and what can be typed next.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/tui/shell/command.h"
#include "tests/tui/screen.h"
#include "tests/tui/suite.h"

static void type(prompt *p, const char *text)
{
    for (; *text != '\0'; text++) {
        prompt_key(p, (unsigned char)*text);
    }
}

START_TEST(keys_of_a_line_move_and_erase)
{
    prompt p = {0};
    prompt_begin(&p, "");
    type(&p, "set batch.size 64");
    prompt_key(&p, INPUT_WORD_LEFT);
    ck_assert_uint_eq(p.cursor, strlen("set batch.size "));
    prompt_key(&p, INPUT_WORD_LEFT);
    ck_assert_uint_eq(p.cursor, strlen("set "));
    prompt_key(&p, INPUT_WORD_RIGHT);
    ck_assert_uint_eq(p.cursor, strlen("set batch.size"));
    prompt_key(&p, 11); // ^K
    ck_assert_str_eq(p.text, "set batch.size");
    prompt_key(&p, 23); // ^W
    ck_assert_str_eq(p.text, "set ");
    prompt_key(&p, 1); // ^A
    type(&p, ":");
    ck_assert_str_eq(p.text, ":set ");
    prompt_key(&p, 5); // ^E
    ck_assert_uint_eq(p.cursor, p.length);
    prompt_key(&p, 21); // ^U
    ck_assert_str_eq(p.text, "");
}
END_TEST

START_TEST(up_recalls_the_lines_that_begin_as_typed_and_down_comes_back)
{
    static const char *const lines[] = {"set a 1", "run 5", "set b 2", "set b 2", "fix"};
    prompt p = {0};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        prompt_begin(&p, lines[i]);
        prompt_remember(&p);
    }
    ck_assert_uint_eq(prompt_past(&p), 4); // the same line twice is one
    prompt_begin(&p, "");
    type(&p, "set");
    prompt_key(&p, INPUT_UP);
    ck_assert_str_eq(p.text, "set b 2");
    prompt_key(&p, INPUT_UP);
    ck_assert_str_eq(p.text, "set a 1");
    prompt_key(&p, INPUT_UP);
    ck_assert_str_eq(p.text, "set a 1");
    prompt_key(&p, INPUT_DOWN);
    prompt_key(&p, INPUT_DOWN);
    ck_assert_str_eq(p.text, "set");
    prompt_begin(&p, "");
    prompt_key(&p, INPUT_UP);
    ck_assert_str_eq(p.text, "fix");
}
END_TEST

START_TEST(only_the_newest_lines_are_kept)
{
    prompt p = {0};
    char line[32];
    for (int i = 0; i < PROMPT_PAST + 10; i++) {
        snprintf(line, sizeof line, "run %d", i + 1);
        prompt_begin(&p, line);
        prompt_remember(&p);
    }
    ck_assert_uint_eq(prompt_past(&p), PROMPT_PAST);
    ck_assert_str_eq(prompt_past_line(&p, 0), "run 11");
    ck_assert_str_eq(prompt_past_line(&p, PROMPT_PAST - 1), line);
}
END_TEST

START_TEST(pasted_text_is_text_and_never_a_key)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    screen_advance(a, 5);
    app_paste(a, "q\ny\n");
    ck_assert_int_eq(a->next.work, PENDING_NONE);
    ck_assert_int_eq(a->overlay, OVERLAY_NONE);
    ck_assert_int_eq(a->feed.message.kind, MESSAGE_NOTE);
    screen_keys(a, ":");
    app_paste(a, "set \r\n\tbatch.size\x1b 16 \xff€");
    ck_assert_str_eq(a->prompt.text, "set  batch.size  16  €");
    app_key(a, INPUT_ESCAPE);
    screen_close(a);
}
END_TEST

static bool offers(const app *a, const char *text)
{
    for (size_t i = 0; i < a->completion.count; i++) {
        if (strcmp(a->completion.candidate[i].text, text) == 0) {
            return true;
        }
    }
    return false;
}

START_TEST(what_can_be_typed_stands_above_the_line_with_what_it_does)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    screen_advance(a, 5);
    screen_keys(a, ":s");
    char *text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "KEY VALUE  turn a knob"));
    ck_assert_ptr_nonnull(strstr(text, "save-display"));
    free(text);
    screen_keys(a, "et execution.mode ");
    ck_assert_uint_eq(a->completion.count, 2);
    ck_assert(offers(a, "eager") && offers(a, "graph"));
    text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "as it is"));
    ck_assert_ptr_nonnull(strstr(text, "now eager"));
    free(text);
    app_key(a, INPUT_ESCAPE);
    screen_keys(a, ":batch.size=");
    ck_assert(offers(a, "64") && offers(a, "128") && offers(a, "256"));
    text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "does not fit: needs "));
    free(text);
    screen_close(a);
}
END_TEST

START_TEST(tab_goes_through_what_is_offered_and_back)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    screen_keys(a, ":theme ");
    size_t count = a->completion.count;
    ck_assert_uint_gt(count, 3);
    app_key(a, INPUT_TAB);
    ck_assert_str_eq(a->prompt.text + 6, a->completion.candidate[0].text);
    app_key(a, INPUT_TAB);
    ck_assert_str_eq(a->prompt.text + 6, a->completion.candidate[1].text);
    app_key(a, INPUT_BACK_TAB);
    app_key(a, INPUT_BACK_TAB);
    ck_assert_str_eq(a->prompt.text + 6, a->completion.candidate[count - 1].text);
    app_key(a, INPUT_ENTER);
    ck_assert_int_ne(a->feed.message.kind, MESSAGE_ERROR);
    ck_assert_int_eq(a->overlay, OVERLAY_NONE);
    screen_close(a);
}
END_TEST

static bool is_offered(const app *a, const char *text)
{
    bool found = false;
    for (size_t i = 0; i < a->completion.count; i++) {
        found = found || strcmp(a->completion.candidate[i].text, text) == 0;
    }
    return found;
}

START_TEST(typing_a_value_shows_every_choice_and_a_part_of_a_name_finds_it)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    size_t count;
    const hr_knob_id *panel = knob_edit_panel(&count);
    for (a->feed.knob = 0; a->feed.knob < count; a->feed.knob++) {
        const char *words[KNOB_EDIT_WORDS_MAX];
        const hr_knob_row *row = &hr_knob_rows(NULL)[panel[a->feed.knob]];
        size_t named = knob_edit_words(row->id, words);
        a->focus = PANE_KNOBS;
        app_key(a, INPUT_ENTER);
        for (size_t i = 0; row->type == HR_KNOB_CHOICE && row->choices[i] != NULL; i++) {
            ck_assert_msg(is_offered(a, row->choices[i]), "%s %s", row->key, row->choices[i]);
        }
        for (size_t i = 0; i < named; i++) {
            ck_assert_msg(is_offered(a, words[i]), "%s %s", row->key, words[i]);
        }
        bool strategy = row->id == HR_KNOB_CHECKPOINT_STRATEGY;
        ck_assert(!strategy || (is_offered(a, "every:") && is_offered(a, "list:")));
        if (row->id == HR_KNOB_DEVICE_CARD) {
            ck_assert_uint_ge(a->completion.count, 12);
            screen_keys(a, "3090");
            ck_assert_uint_eq(a->completion.count, 1);
            ck_assert_str_eq(a->completion.candidate[0].text, "rtx3090-24g");
            ck_assert_str_eq(a->completion.candidate[0].note, "NVIDIA GeForce RTX 3090");
            app_key(a, INPUT_DOWN);
            ck_assert_str_eq(a->prompt.text, "rtx3090-24g");
        }
        app_key(a, INPUT_ESCAPE);
    }
    screen_close(a);
}
END_TEST

START_TEST(an_unchanged_value_does_nothing)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    screen_advance(a, 20);
    size_t count;
    knob_edit_panel(&count);
    for (a->feed.knob = 0; a->feed.knob < count; a->feed.knob++) {
        uint64_t log = a->feed.live.log_count;
        app_key(a, INPUT_ENTER);
        app_key(a, INPUT_ENTER);
        ck_assert_uint_eq(a->feed.turned.count, 0);
        ck_assert_uint_eq(a->feed.live.log_count, log);
        ck_assert_int_ne(a->feed.message.kind, MESSAGE_ERROR);
    }
    screen_keys(a, ":set batch.size 128\n");
    ck_assert_str_eq(a->feed.message.text, "batch.size is 128 already");
    screen_advance(a, 5);
    ck_assert_uint_eq(a->feed.runs.count, 1);
    ck_assert_uint_eq(a->feed.turned.count, 0);
    screen_close(a);
}
END_TEST

START_TEST(files_are_offered_folder_by_folder)
{
    char folder[] = "/tmp/headroom-prompt-XXXXXX", line[128];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    ck_assert_int_eq(mkdir("shots", 0700), 0);
    fclose(fopen("shots/b.svg", "w"));
    fclose(fopen("shots/a.svg", "w"));
    fclose(fopen("shots/.hidden", "w"));
    fclose(fopen("shots/c\npreset evil", "w")); // lines are remembered, one a line
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    screen_keys(a, ":save-display sh\t");
    ck_assert_str_eq(a->prompt.text, "save-display shots/");
    ck_assert_uint_eq(a->completion.count, 2);
    ck_assert_str_eq(a->completion.candidate[0].text, "shots/a.svg");
    app_key(a, INPUT_ESCAPE);
    screen_close(a);
    snprintf(line, sizeof line, "rm -r %s", folder);
    ck_assert_int_eq(system(line), 0);
}
END_TEST

// Every command takes every argument without harm, and says something or does it.
START_TEST(commands_bear_any_argument)
{
    static const char *const arguments[] = {"",   "0",   "-1",   "1e9",   "nothing",
                                            "on", "off", "%s%n", "a b c", "999999999999999999999"};
    char folder[] = "/tmp/headroom-prompt-XXXXXX", line[128];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    size_t count;
    const command_row *rows = command_rows(&count);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < sizeof arguments / sizeof *arguments; k++) {
            snprintf(line, sizeof line, "%s %s", rows[i].name, arguments[k]);
            app_command(a, line);
            a->next.work = PENDING_NONE;
            a->overlay = OVERLAY_NONE;
            screen_advance(a, 1);
            free(screen_text(a));
        }
    }
    screen_close(a);
    ck_assert_int_eq(rmdir(folder), 0); // no file came of it
}
END_TEST

START_TEST(help_scrolls_back_at_once_from_its_end)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    screen_advance(a, 5);
    screen_keys(a, "?");
    char *first = screen_text(a);
    app_key(a, INPUT_END);
    char *end = screen_text(a);
    app_key(a, INPUT_DOWN);
    char *below = screen_text(a);
    app_key(a, INPUT_UP);
    char *above = screen_text(a);
    app_key(a, INPUT_HOME);
    char *again = screen_text(a);
    ck_assert_str_ne(first, end);
    ck_assert_str_eq(end, below);
    ck_assert_str_ne(end, above);
    ck_assert_str_eq(first, again);
    char *const texts[] = {first, end, below, above, again};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        free(texts[i]);
    }
    screen_close(a);
}
END_TEST

START_TEST(help_finds_lines_and_says_what_is_off)
{
    app *a = screen_open(&(screen_look){.rows = 60, .columns = 100});
    screen_advance(a, 3);
    screen_keys(a, "?");
    char *text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "Keys of this pane"));
    ck_assert_ptr_nonnull(strstr(text, "off now: no knob has been turned yet"));
    free(text);
    screen_keys(a, "/BASELINE");
    text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "pin a baseline"));
    ck_assert_ptr_null(strstr(text, "the next pane\n"));
    free(text);
    app_key(a, INPUT_ESCAPE);
    ck_assert_int_eq(a->overlay, OVERLAY_HELP);
    app_key(a, INPUT_ESCAPE);
    ck_assert_int_eq(a->overlay, OVERLAY_NONE);
    screen_close(a);
}
END_TEST

SUITE_MAIN("tui prompt", keys_of_a_line_move_and_erase,
           up_recalls_the_lines_that_begin_as_typed_and_down_comes_back, only_the_newest_lines_are_kept,
           pasted_text_is_text_and_never_a_key, what_can_be_typed_stands_above_the_line_with_what_it_does,
           tab_goes_through_what_is_offered_and_back, files_are_offered_folder_by_folder,
           typing_a_value_shows_every_choice_and_a_part_of_a_name_finds_it, an_unchanged_value_does_nothing,
           commands_bear_any_argument, help_scrolls_back_at_once_from_its_end,
           help_finds_lines_and_says_what_is_off)
