// SPDX-License-Identifier: Apache-2.0
// The Program: one cursor with the Timeline, and lines that come and go judged by putting them back.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_mem.h"
#include "tests/tui/fake_step_plan.h"
#include "tests/tui/golden.h"
#include "tests/tui/suite.h"

static void planned(app *a)
{
    screen_advance(a, 60);
    fake_step_plan_show(a);
    screen_keys(a, "9");
}

static void turned(app *a)
{
    planned(a);
    app_turn(&a->feed, HR_KNOB_OPTIMIZER_KIND, "sgd");
    app_turn(&a->feed, HR_KNOB_EXECUTION_MODE, "graph");
    screen_advance(a, 3);
    fake_step_plan_show(a);
}

static app *program_at(int rows, int columns)
{
    app *a = screen_open(&(screen_look){.rows = rows, .columns = columns});
    planned(a);
    free(screen_text(a));
    return a;
}

START_TEST(it_looks_as_agreed)
{
    golden_all("program", planned);
    golden_all("program-turned", turned);
}
END_TEST

START_TEST(without_a_step_plan_it_says_so)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 80});
    screen_advance(a, 20);
    screen_keys(a, "9");
    char *text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "The step is being planned."));
    free(text);
    screen_close(a);
}
END_TEST

// ---- one cursor -------------------------------------------------------------------------------------------------

START_TEST(its_cursor_is_the_timelines)
{
    app *a = program_at(24, 80);
    uint32_t at = a->step.cursor;
    ck_assert_uint_eq(at, a->feed.step_plan.peak_instr);
    ck_assert_uint_eq(table_selected(&a->table[PANE_LISTING]), at);
    app_key(a, INPUT_DOWN);
    app_key(a, INPUT_ENTER); // without a frame between
    ck_assert_int_eq(a->screen, SCREEN_TIMELINE);
    ck_assert_uint_eq(a->step.cursor, at + 1);
    free(screen_text(a));
    app_key(a, INPUT_HOME);
    screen_keys(a, "9");
    free(screen_text(a));
    ck_assert_uint_eq(table_selected(&a->table[PANE_LISTING]), 0);
    screen_close(a);
}
END_TEST

START_TEST(sorting_and_filtering_keep_the_cursor_on_its_instruction)
{
    app *a = program_at(24, 80);
    uint32_t at = a->step.cursor;
    for (int i = 0; i < 6; i++) {
        screen_keys(a, i % 2 == 0 ? "o" : "O");
        free(screen_text(a));
        ck_assert_uint_eq(a->step.cursor, at);
        ck_assert_uint_eq(table_selected(&a->table[PANE_LISTING]), at);
    }
    screen_keys(a, "/alloc\n");
    free(screen_text(a));
    ck_assert_uint_eq(table_selected(&a->table[PANE_LISTING]), at);
    screen_keys(a, "/\025relu\n"); // it is none of those: the cursor of the step stays all the same
    free(screen_text(a));
    ck_assert_uint_eq(a->step.cursor, at);
    app_key(a, INPUT_HOME);
    app_key(a, INPUT_DOWN);
    free(screen_text(a));
    ck_assert_ptr_nonnull(strstr(step_line(&a->feed.step_plan, a->step.cursor), "relu"));
    screen_close(a);
}
END_TEST

START_TEST(a_mark_is_one_on_all_screens)
{
    app *a = program_at(24, 80);
    app_key(a, INPUT_DOWN);
    screen_keys(a, "t");
    ck_assert_uint_eq(a->step.marked, a->step.cursor);
    app_key(a, INPUT_DOWN);
    app_key(a, INPUT_DOWN);
    free(screen_text(a));
    screen_keys(a, "3");
    char *text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "in 2 instructions"));
    free(text);
    screen_close(a);
}
END_TEST

START_TEST(a_doctor_who_comes_between_two_keys_finds_no_table_open)
{
    static const char *const overlays[] = {"c", "/", "/al"};
    for (size_t k = 0; k < sizeof overlays / sizeof *overlays; k++) {
        app *a = program_at(24, 80);
        app_turn(&a->feed, HR_KNOB_BATCH_SIZE, "256");
        screen_keys(a, overlays[k]);
        ck_assert_int_ne(a->overlay, OVERLAY_NONE);
        screen_advance(a, 3);
        ck_assert_int_eq(a->screen, SCREEN_DOCTOR);
        app_key(a, INPUT_DOWN); // no frame between
        ck_assert_int_eq(a->overlay, OVERLAY_NONE);
        screen_close(a);
    }
}
END_TEST

// ---- what comes and goes ----------------------------------------------------------------------------------------

static uint64_t random_next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

enum { NAMES = 26, LINES_MAX = 60 };

// One letter an instruction: its name; `upper` changes its line without changing its name.
static hr_step_plan spelled(const char *letters)
{
    hr_step_plan p = {.fits = true, .peak_instr = HR_NO_ID, .refused_instr = HR_NO_ID};
    size_t count = strlen(letters);
    p.instrs = hr_calloc(count + 1, sizeof *p.instrs);
    p.texts = hr_calloc(1 + 4 * NAMES, 1);
    p.texts_bytes = 1 + 4 * NAMES;
    for (uint32_t k = 0; k < NAMES; k++) {
        p.texts[1 + 4 * k] = (char)('a' + k);
        p.texts[3 + 4 * k] = (char)('A' + k);
    }
    for (; p.instr_count < count; p.instr_count++) {
        char letter = letters[p.instr_count];
        bool upper = letter < 'a';
        uint32_t k = (uint32_t)(letter - (upper ? 'A' : 'a'));
        p.instrs[p.instr_count] = (hr_step_plan_instr){.name = 1 + 4 * k,
                                                       .line = (upper ? 3 : 1) + 4 * k,
                                                       .layer = HR_NO_ID,
                                                       .tensor = HR_NO_ID,
                                                       .in_use_bytes = 1};
    }
    return p;
}

// Longest common sequence of names, by the table that everybody knows.
static size_t common(const char *one, const char *other)
{
    size_t length[LINES_MAX + 1][LINES_MAX + 1] = {0};
    size_t n = strlen(one), m = strlen(other);
    for (size_t i = 1; i <= n; i++) {
        for (size_t j = 1; j <= m; j++) {
            size_t longer = length[i - 1][j] > length[i][j - 1] ? length[i - 1][j] : length[i][j - 1];
            length[i][j] = (one[i - 1] | 32) == (other[j - 1] | 32) ? length[i - 1][j - 1] + 1 : longer;
        }
    }
    return length[n][m];
}

// Rows, applied to the lines before, give the lines now.
static void check_rows(const char *before, const char *now, const step_changes *c)
{
    size_t i = 0, j = 0, row = 0, come = 0, go = 0, change = 0;
    while (i < strlen(before) || j < strlen(now) || row < c->count) {
        const step_turned *r = row < c->count ? &c->rows[row] : NULL;
        if (r != NULL && r->sign == '-' && r->before == i) {
            i++, row++, go++;
        } else if (r != NULL && r->sign == '+' && r->now == j) {
            j++, row++, come++;
        } else if (r != NULL && r->sign == '~' && r->before == i && r->now == j) {
            ck_assert_int_eq(before[i] | 32, now[j] | 32);
            ck_assert_int_ne(before[i], now[j]);
            i++, j++, row++, change++;
        } else {
            ck_assert_msg(i < strlen(before) && j < strlen(now) && before[i] == now[j],
                          "%s to %s: row %zu does not fit %zu, %zu", before, now, row, i, j);
            i++, j++;
        }
    }
    ck_assert_uint_eq(c->come, come);
    ck_assert_uint_eq(c->go, go);
    ck_assert_uint_eq(c->change, change);
}

static void compare(const char *one, const char *other, bool distinct)
{
    hr_step_plan before = spelled(one), now = spelled(other);
    step_changes c = {0};
    uint32_t at = 0;
    step_compare(&before, &now, &c, &at);
    ck_assert(c.compared);
    check_rows(one, other, &c);
    size_t kept = strlen(one) - c.go;
    if (distinct) {
        ck_assert_msg(kept == common(one, other), "%s to %s keeps %zu", one, other, kept);
    } else {
        ck_assert_uint_le(kept, common(one, other));
    }
    free(c.rows);
    hr_step_plan_deinit(&before);
    hr_step_plan_deinit(&now);
}

START_TEST(lines_that_come_and_go_turn_one_listing_into_the_other)
{
    static const char *const pairs[][2] = {{"", ""},          {"", "abc"},          {"abc", ""},
                                           {"abc", "abc"},    {"abc", "aBc"},       {"abcde", "axe"},
                                           {"aaaa", "aaaaa"}, {"abcabc", "bcabca"}, {"abcdef", "defabc"}};
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        compare(pairs[k][0], pairs[k][1], false);
    }
    uint64_t seed = 3;
    for (int k = 0; k < 400; k++) {
        char one[LINES_MAX + 1] = "", other[LINES_MAX + 1] = "";
        size_t n = random_next(&seed) % LINES_MAX, m = random_next(&seed) % LINES_MAX;
        for (size_t i = 0; i < n; i++) {
            one[i] = (char)('a' + random_next(&seed) % 6);
        }
        for (size_t j = 0; j < m; j++) {
            other[j] = (char)((random_next(&seed) % 5 == 0 ? 'A' : 'a') + random_next(&seed) % 6);
        }
        compare(one, other, false);
    }
}
END_TEST

START_TEST(of_names_that_come_once_as_many_stay_as_can)
{
    uint64_t seed = 11;
    for (int k = 0; k < 400; k++) {
        char words[2][NAMES + 1] = {"", ""};
        for (int w = 0; w < 2; w++) {
            size_t length = 0;
            for (int letter = 0; letter < NAMES; letter++) { // some letters, in any order
                if (random_next(&seed) % 3 > 0) {
                    size_t place = random_next(&seed) % (length + 1);
                    memmove(words[w] + place + 1, words[w] + place, length - place);
                    words[w][place] = (char)('a' + letter);
                    length++;
                }
            }
        }
        compare(words[0], words[1], true);
    }
}
END_TEST

START_TEST(a_turn_shows_what_it_changed_and_turning_back_the_opposite)
{
    app *a = program_at(36, 120);
    app_turn(&a->feed, HR_KNOB_EXECUTION_MODE, "graph");
    screen_advance(a, 2);
    fake_step_plan_show(a);
    size_t come = a->step.changes.come, go = a->step.changes.go;
    ck_assert_uint_gt(come, 0);
    ck_assert_uint_gt(go, 0);
    app_turn(&a->feed, HR_KNOB_EXECUTION_MODE, "eager");
    screen_advance(a, 2);
    fake_step_plan_show(a);
    ck_assert_uint_eq(a->step.changes.come, go);
    ck_assert_uint_eq(a->step.changes.go, come);
    screen_close(a);
}
END_TEST

START_TEST(the_same_step_plan_once_more_changes_nothing)
{
    app *a = program_at(24, 80);
    app_turn(&a->feed, HR_KNOB_EXECUTION_MODE, "graph");
    screen_advance(a, 2);
    fake_step_plan_show(a);
    uint64_t version = a->feed.step_plan_version;
    size_t come = a->step.changes.come;
    step_go(&a->step, 5);
    fake_step_plan_show(a);
    ck_assert_uint_eq(a->feed.step_plan_version, version);
    ck_assert_uint_eq(a->step.changes.come, come);
    ck_assert_uint_eq(a->step.cursor, 5);
    ck_assert_str_eq(a->step.changes.what, "execution.mode graph");
    app_turn(&a->feed, HR_KNOB_DEVICE_VRAM, "1GiB"); // the same listing under another limit
    screen_advance(a, 2);
    fake_step_plan_show(a);
    ck_assert_uint_ne(a->feed.step_plan_version, version);
    ck_assert_uint_eq(a->step.changes.count, 0);
    screen_close(a);
}
END_TEST

// ---- what a turn would change -------------------------------------------------------------------------------------

static bool wants(app *a, hr_knobs *after)
{
    hr_knobs before;
    bool is_wanted = step_wants_diff(&a->step, &before, after);
    ck_assert(!is_wanted || memcmp(&before, &a->feed.knobs, sizeof before) == 0);
    return is_wanted;
}

START_TEST(what_a_turn_would_change_is_asked_once_and_shown)
{
    hr_knobs after;
    app *a = program_at(24, 80);
    ck_assert(!wants(a, &after));
    app_key(a, INPUT_TAB);
    ck_assert_int_eq(a->focus, PANE_TURNED);
    app_key(a, INPUT_ENTER); // what < would do
    ck_assert(wants(a, &after));
    ck_assert_int_eq(hr_knob_int(&after, HR_KNOB_BATCH_SIZE), 64);
    ck_assert(!wants(a, &after));
    char *text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "The planner is being asked."));
    free(text);
    step_take_diff(&a->step, "; 1 line goes, 1 comes\n-   12 forward  a/b\n+   12 forward  a/c\n");
    golden_compare("program-asked", a);
    ck_assert_uint_eq(a->table[PANE_TURNED].count, 3);
    app_key(a, INPUT_ENTER); // what > would do: another question
    ck_assert(wants(a, &after));
    ck_assert_int_eq(hr_knob_int(&after, HR_KNOB_BATCH_SIZE), 256);
    step_take_diff(&a->step, "");
    text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "Nothing can be said"));
    free(text);
    screen_keys(a, "]"); // another knob: another question
    ck_assert(wants(a, &after));
    step_take_diff(&a->step, NULL);
    free(screen_text(a));
    app_key(a, INPUT_ENTER);
    ck_assert(!wants(a, &after));
    screen_close(a);
}
END_TEST

START_TEST(an_answer_to_other_knobs_is_forgotten)
{
    hr_knobs after;
    app *a = program_at(24, 80);
    app_key(a, INPUT_TAB);
    app_key(a, INPUT_ENTER);
    ck_assert(wants(a, &after));
    step_take_diff(&a->step, "-gone\n");
    ck_assert_uint_eq(a->step.changes.line_count, 1);
    app_turn(&a->feed, HR_KNOB_BATCH_SIZE, "32");
    free(screen_text(a));
    ck_assert_uint_eq(a->step.changes.line_count, 0);
    ck_assert(wants(a, &after));
    ck_assert_int_eq(hr_knob_int(&after, HR_KNOB_BATCH_SIZE), 16);
    screen_close(a);
}
END_TEST

SUITE_MAIN("tui program", it_looks_as_agreed, without_a_step_plan_it_says_so, its_cursor_is_the_timelines,
           sorting_and_filtering_keep_the_cursor_on_its_instruction, a_mark_is_one_on_all_screens,
           a_doctor_who_comes_between_two_keys_finds_no_table_open,
           lines_that_come_and_go_turn_one_listing_into_the_other,
           of_names_that_come_once_as_many_stay_as_can,
           a_turn_shows_what_it_changed_and_turning_back_the_opposite,
           the_same_step_plan_once_more_changes_nothing, what_a_turn_would_change_is_asked_once_and_shown,
           an_answer_to_other_knobs_is_forgotten)
