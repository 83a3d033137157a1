// SPDX-License-Identifier: Apache-2.0
// Timeline, Program and Model at every size, and with step plans that nobody would plan.
#include <stdlib.h>
#include <string.h>

#include "app/tui/term/paint.h"
#include "base/host_mem.h"
#include "tests/tui/fake_step_plan.h"
#include "tests/tui/screen.h"
#include "tests/tui/suite.h"

static app *opened(int rows, int columns)
{
    app *a = screen_open(&(screen_look){.rows = rows, .columns = columns});
    screen_advance(a, 20);
    fake_step_plan_show(a);
    screen_keys(a, "3");
    app_draw(a);
    return a;
}

static uint64_t random_next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 16;
}

// ---- every size -------------------------------------------------------------------------------------------------

static bool is_blank(rect pane)
{
    bool blank = true;
    for (int y = pane.y + 1; blank && y < pane.y + pane.h; y++) {
        for (int x = pane.x; blank && x < pane.x + pane.w; x++) {
            blank = paint_read(y, x).glyph == L' ';
        }
    }
    return blank;
}

static void check_panes(app *a, int rows, int columns)
{
    layout l = app_layout(a);
    for (int pane = 0; pane < PANE_FOCUS_COUNT; pane++) {
        if (l.pane[pane].h > 0) {
            ck_assert_msg(!is_blank(l.pane[pane]), "%dx%d: pane %s is empty", columns, rows,
                          pane_title((pane_id)pane));
        }
    }
}

// Plans with and without a step plan, each pane alone and all together.
static void check_size(int rows, int columns)
{
    static const char *const screens[] = {"3", "9", "8"};
    for (int planned_too = 0; planned_too < 2; planned_too++) {
        app *a = screen_open(&(screen_look){.rows = rows, .columns = columns});
        screen_advance(a, 5);
        if (planned_too == 1) {
            fake_step_plan_show(a);
        }
        for (int k = 0; k < 3; k++) {
            screen_keys(a, screens[k]);
            for (int pane = 0; pane < 6; pane++) {
                a->expanded = pane >= 3;
                a->looks.glyphs = glyphs_make((glyph_set)((pane + k) % GLYPHS_COUNT));
                app_draw(a);
                check_panes(a, rows, columns);
                app_key(a, INPUT_TAB);
            }
            a->expanded = false;
        }
        screen_close(a);
    }
}

START_TEST(no_pane_is_empty_at_any_size)
{
    static const int rows[] = {16, 23, 24, 37, 120}, columns[] = {60, 79, 80, 119, 300};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t j = 0; j < sizeof columns / sizeof *columns; j++) {
            check_size(rows[i], columns[j]);
        }
    }
}
END_TEST

// ---- what nobody would plan -------------------------------------------------------------------------------------

static void press_everything(app *a)
{
    static const int keys[] = {
        INPUT_LEFT,  INPUT_RIGHT, INPUT_UP,    INPUT_DOWN, INPUT_HOME,  INPUT_END,   '+',         '+',
        '-',         't',         'o',         'O',        '.',         INPUT_ENTER, 'y',         'f',
        '3',         INPUT_TAB,   INPUT_ENTER, '9',        INPUT_ENTER, '9',         INPUT_TAB,   INPUT_ENTER,
        '8',         INPUT_ENTER, '8',         INPUT_TAB,  INPUT_ENTER, '8',         INPUT_TAB,   INPUT_TAB,
        INPUT_ENTER, '-',         '-',         '?',        '?',         'e',         '3',         'e',
        '3',         '-',         '-',         '-',        '+',         'c',         INPUT_ESCAPE};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        app_key(a, keys[i]);
        app_draw(a);
    }
}

START_TEST(an_empty_step_plan_is_said_to_be_empty)
{
    app *a = opened(24, 80);
    hr_step_plan nothing = {.fits = true};
    step_take(&a->step, &a->feed, &nothing);
    char *text = screen_text(a);
    ck_assert_ptr_nonnull(strstr(text, "no instructions"));
    free(text);
    press_everything(a);
    hr_step_plan again = {0};
    step_take(&a->step, &a->feed, &again);
    press_everything(a);
    step_forget(&a->step, &a->feed);
    press_everything(a);
    screen_close(a);
}
END_TEST

static void scramble(void *data, size_t size, uint64_t *seed)
{
    unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (unsigned char)random_next(seed);
    }
}

// Every number is anything at all; flags are flags, and lists are as long as they say.
static hr_step_plan nonsense(uint64_t seed)
{
    hr_step_plan p;
    scramble(&p, sizeof p, &seed);
    p.fits = random_next(&seed) % 2;
    p.instr_count = random_next(&seed) % 200;
    p.tensor_count = random_next(&seed) % 50;
    p.layer_count = random_next(&seed) % 20;
    p.event_count = random_next(&seed) % 100;
    p.texts_bytes = random_next(&seed) % 100;
    p.instrs = hr_calloc(p.instr_count + 1, sizeof *p.instrs);
    p.tensors = hr_calloc(p.tensor_count + 1, sizeof *p.tensors);
    p.layers = hr_calloc(p.layer_count + 1, sizeof *p.layers);
    p.events = hr_calloc(p.event_count + 1, sizeof *p.events);
    p.texts = hr_calloc(p.texts_bytes + 1, 1);
    scramble(p.texts, p.texts_bytes, &seed);
    scramble(p.layers, p.layer_count * sizeof *p.layers, &seed);
    scramble(p.events, p.event_count * sizeof *p.events, &seed);
    for (size_t i = 0; i < p.instr_count; i++) {
        scramble(&p.instrs[i], sizeof p.instrs[i], &seed);
        p.instrs[i].is_alloc = random_next(&seed) % 2;
        p.instrs[i].is_free = random_next(&seed) % 2;
        p.instrs[i].again = random_next(&seed) % 2;
        p.instrs[i].tensor =
            random_next(&seed) % 4 == 0 ? p.instrs[i].tensor : (uint32_t)(random_next(&seed) % 60);
        p.instrs[i].line = p.instrs[i].name = (uint32_t)(random_next(&seed) % 120);
    }
    for (size_t k = 0; k < p.tensor_count; k++) {
        scramble(&p.tensors[k], sizeof p.tensors[k], &seed);
        p.tensors[k].persistent = random_next(&seed) % 2;
        p.tensors[k].saved = random_next(&seed) % 2;
        p.tensors[k].owner = random_next(&seed) % 3 == 0 ? p.tensors[k].owner : (uint32_t)k;
        p.tensors[k].born = (uint32_t)(random_next(&seed) % 250);
        p.tensors[k].layer = (uint32_t)(random_next(&seed) % 25);
    }
    return p;
}

START_TEST(a_hostile_step_plan_shows_something_or_nothing_but_harms_nobody)
{
    static const int windows[][2] = {{24, 80}, {50, 160}, {16, 60}};
    for (uint64_t seed = 1; seed <= 6; seed++) {
        const int *window = windows[seed % 3];
        app *a = opened(window[0], window[1]);
        hr_step_plan p = nonsense(seed);
        step_take(&a->step, &a->feed, &p);
        press_everything(a);
        hr_step_plan next = nonsense(seed + 100);
        step_take(&a->step, &a->feed, &next);
        press_everything(a);
        screen_close(a);
    }
}
END_TEST

SUITE_MAIN("tui step", no_pane_is_empty_at_any_size, an_empty_step_plan_is_said_to_be_empty,
           a_hostile_step_plan_shows_something_or_nothing_but_harms_nobody)
