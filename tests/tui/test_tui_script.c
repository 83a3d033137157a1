// SPDX-License-Identifier: Apache-2.0
// The script driver, on the scripted engine.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/tui/shell/script_driver.h"
#include "app/tui/shell/script_keys.h"
#include "tests/tui/fake_engine.h"
#include "tests/tui/screen.h"
#include "tests/tui/suite.h"

START_TEST(keys_are_named_and_characters_stand_for_themselves)
{
    static const int expected[] = {INPUT_RIGHT, 'z', INPUT_TAB, ' ', '<', '<', 1, 0x20ac, INPUT_PAGE_UP};
    const char *text = "  <Right>z <tab><Space> <lt><  <C-a>€<PgUp>";
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        ck_assert_int_eq(script_key_next(&text), expected[i]);
    }
    ck_assert_int_eq(script_key_next(&text), INPUT_NONE);
    text = "<Nothing>a";
    ck_assert_int_eq(script_key_next(&text), INPUT_RESIZED);
    ck_assert_int_eq(script_key_next(&text), 'a');
}
END_TEST

START_TEST(a_key_counts_as_shown_only_with_what_it_does)
{
    static const char screen[] =
        " 1bench 4doctor\nb pin · ←→ turn batch size · ? keys\nzoo az b? r run  z undo";
    ck_assert(script_key_is_shown(screen, 'b') && script_key_is_shown(screen, '?'));
    ck_assert(script_key_is_shown(screen, '4') && script_key_is_shown(screen, INPUT_RIGHT));
    ck_assert(script_key_is_shown(screen, 'z') && script_key_is_shown(screen, 'r'));
    ck_assert(!script_key_is_shown(screen, 'Z') && !script_key_is_shown(screen, 'o'));
    ck_assert(!script_key_is_shown(screen, INPUT_UP) && !script_key_is_shown(screen, 'w'));
    ck_assert(!script_key_is_shown("zoo z", 'z'));
}
END_TEST

static bool advance(app *a)
{
    uint64_t before = a->feed.live.steps;
    fake_engine_advance(a->feed.session, 1);
    return before == a->feed.live.steps; // the fake does not say whether it was idle
}

static void settle(app *a)
{
    screen_advance(a, 0);
}

static const script_hands hands = {advance, settle};

static hr_status drive(const char *text, hr_err *err)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    FILE *screen = fopen("/dev/null", "r+");
    script_stage stage = {.name = "test.keys", .type = "xterm-256color", .screen = screen, .hands = &hands};
    hr_status status = script_drive(a, text, &stage, err);
    fclose(screen);
    screen_close(a);
    return status;
}

START_TEST(a_script_turns_waits_and_sees)
{
    hr_err err = {0};
    hr_status status = drive("# a comment\n\n"
                             "wait steps 10\n"
                             "expect batch.size\n"
                             "visible on\n"
                             "keys b <Right>\n"
                             "wait steps 3\r\n"
                             "expect out of memory\n"
                             "keys z\n"
                             "wait seconds 1\n"
                             "expect not out of memory\n"
                             ":set batch.size 16\n"
                             "wait steps 2\n"
                             "resize 120x36\n"
                             "expect 16\n",
                             &err);
    ck_assert_msg(status == HR_OK, "%s", err.sentence);
}
END_TEST

START_TEST(what_is_wrong_with_a_script_is_said_with_its_line)
{
    static const struct {
        const char *text, *sentence;
        hr_status status;
    } cases[] = {
        {"\nfly\n", "test.keys:2: this line means nothing: fly", HR_USAGE},
        {"wait steps\n", "test.keys:1: wait needs steps or seconds, and how many: steps", HR_USAGE},
        {"wait steps -1\n", "test.keys:1: wait needs steps or seconds, and how many: steps -1", HR_USAGE},
        {"keys <Nope>\n", "test.keys:1: no key is called so: <Nope>", HR_USAGE},
        {"resize 80\n", "test.keys:1: resize needs a size, as 80x24: 80", HR_USAGE},
        {"resize 80x0\n", "test.keys:1: resize needs a size, as 80x24: 80x0", HR_USAGE},
        {"keys\n", "test.keys:1: something is missing: keys", HR_USAGE},
        {"expect \n", "test.keys:1: something is missing: expect ", HR_USAGE},
        {":fly\n", "test.keys:1: no command is called so: fly", HR_USAGE},
        {"type \xff\n", "test.keys:1: the line has bytes that are no text: type \xff", HR_USAGE},
        {"wait steps 2\nexpect purple\n", "test.keys:2: the screen does not show 'purple'", HR_CHECK},
        {"expect not knobs\n", "test.keys:1: the screen shows 'knobs'", HR_CHECK},
        {"visible on\nkeys Z\n", "test.keys:2: the screen does not show the key 'Z'", HR_CHECK},
        {"keys q y\nkeys z\n", "test.keys:2: the workbench was left before this line", HR_CHECK},
        {"save-display nothing\n", "nothing ends in none of .txt, .ans and .svg", HR_USAGE},
        {"save-display no/where.svg\n", NULL, HR_WRITE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hr_err err = {0};
        ck_assert_int_eq(drive(cases[i].text, &err), cases[i].status);
        ck_assert_str_eq(err.sentence, cases[i].sentence == NULL ? err.sentence : cases[i].sentence);
    }
}
END_TEST

// Whatever stands in a file, it is played to its end or refused in a sentence.
START_TEST(any_script_is_played_or_refused)
{
    static const char *const parts[] = {
        "keys ",       "type ",    "wait ",   "steps ", "seconds ", "expect ", "not ", "resize ",
        "pace ",       "visible ", "on",      "off",    "80x24",    "1x1",     "-1",   "3",
        "1e99",        "nan",      "<Right>", "<C-",    "<",        ">",       ":",    ":set ",
        "batch.size ", "\n",       "\n",      "\n",     "\r\n",     "\xff",    "€",    "z",
        "p",           "q",        "?",       "/",      "%s%n",     "#",       " "};
    for (unsigned seed = 0; seed < 150; seed++) {
        char text[2048] = "";
        size_t length = 0;
        hr_err err = {0};
        srand(seed);
        for (int i = 0; i < 40; i++) {
            length += (size_t)snprintf(text + length, sizeof text - length, "%s",
                                       parts[(size_t)rand() % (sizeof parts / sizeof *parts)]);
        }
        hr_status status = drive(text, &err);
        ck_assert_msg(status == HR_OK || (strchr(err.sentence, ':') != NULL && err.hint[0] != '\0') ||
                          status == HR_CHECK,
                      "seed %u: %s", seed, err.sentence);
    }
}
END_TEST

SUITE_MAIN("tui script", keys_are_named_and_characters_stand_for_themselves,
           a_key_counts_as_shown_only_with_what_it_does, a_script_turns_waits_and_sees,
           what_is_wrong_with_a_script_is_said_with_its_line, any_script_is_played_or_refused)
