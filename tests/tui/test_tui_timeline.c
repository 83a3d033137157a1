// SPDX-License-Identifier: Apache-2.0
// The Timeline against oracles that know nothing of it: sums over tensors, brute-force maxima, the map read back.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/tui/screens/step/panes.h"
#include "base/host_mem.h"
#include "tests/tui/fake_step_plan.h"
#include "tests/tui/golden.h"
#include "tests/tui/suite.h"

static void planned(app *a)
{
    screen_advance(a, 60);
    fake_step_plan_show(a);
    screen_keys(a, "3");
}

static app *timeline_at(int rows, int columns)
{
    app *a = screen_open(&(screen_look){.rows = rows, .columns = columns});
    planned(a);
    free(screen_text(a));
    return a;
}

// ---- step plans of any size ---------------------------------------------------------------------------------------

static uint64_t random_next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 16;
}

// Instructions that hold this and that, nothing else.
static hr_step_plan heights(size_t count, uint64_t seed)
{
    hr_step_plan p = {
        .fits = true, .limit_bytes = 1 << 20, .peak_instr = HR_NO_ID, .refused_instr = HR_NO_ID};
    p.instrs = hr_calloc(count + 1, sizeof *p.instrs);
    p.instr_count = count;
    for (size_t i = 0; i < count; i++) {
        p.instrs[i].in_use_bytes = 1 + random_next(&seed) % (1 << 20);
        p.instrs[i].layer = p.instrs[i].tensor = HR_NO_ID;
        if (p.instrs[i].in_use_bytes > p.peak_in_use_bytes) {
            p.peak_in_use_bytes = p.instrs[i].in_use_bytes;
            p.peak_instr = (uint32_t)i;
        }
    }
    return p;
}

static void show_heights(app *a, size_t count, uint64_t seed)
{
    hr_step_plan p = heights(count, seed);
    step_take(&a->step, &a->feed, &p);
    free(screen_text(a));
}

// ---- looks ------------------------------------------------------------------------------------------------------

static void waiting(app *a)
{
    screen_advance(a, 20);
    screen_keys(a, "3");
}

static void refused(app *a)
{
    screen_advance(a, 20);
    app_turn(&a->feed, HR_KNOB_BATCH_SIZE, "256");
    screen_advance(a, 3);
    fake_step_plan_show(a);
    screen_keys(a, "3");
}

static void marked(app *a)
{
    planned(a);
    free(screen_text(a));
    screen_keys(a, "t");
    for (int i = 0; i < 6; i++) {
        app_key(a, INPUT_RIGHT);
    }
}

static void of_the_run(app *a)
{
    screen_advance(a, 20);
    app_turn(&a->feed, HR_KNOB_BATCH_SIZE, "256");
    screen_advance(a, 3);
    screen_keys(a, "z");
    screen_advance(a, 60);
    fake_step_plan_show(a);
    screen_keys(a, "3--");
}

START_TEST(it_looks_as_agreed)
{
    golden_all("timeline", planned);
}
END_TEST

static void compare_at(const char *name, int rows, int columns, void (*prepare)(app *a))
{
    app *a = screen_open(&(screen_look){.rows = rows, .columns = columns});
    prepare(a);
    golden_compare(name, a);
    screen_close(a);
}

START_TEST(without_a_step_plan_refused_marked_and_of_the_run_it_looks_as_agreed)
{
    compare_at("timeline-waiting", 24, 80, waiting);
    compare_at("timeline-refused", 24, 80, refused);
    compare_at("timeline-marked", 36, 120, marked);
    compare_at("timeline-run", 24, 80, of_the_run);
}
END_TEST

// ---- bytes ------------------------------------------------------------------------------------------------------

START_TEST(the_bytes_at_the_cursor_are_those_of_the_tensors_alive_there)
{
    app *a = timeline_at(24, 80);
    const hr_step_plan *p = feed_step_plan(&a->feed);
    for (uint32_t i = 0; i < p->instr_count; i++) {
        uint64_t sum = 0, shown = 0;
        for (uint32_t k = 0; k < p->tensor_count; k++) {
            const hr_step_plan_tensor *t = &p->tensors[k];
            bool alive =
                (t->persistent || t->born <= i) && i < t->died; // HR_NO_ID is beyond every instruction
            sum += alive ? t->bytes : 0;
        }
        step_go(&a->step, i);
        step_settle_alive(&a->step);
        for (size_t k = 0; k < a->step.alive_count; k++) {
            shown += p->tensors[a->step.alive[k]].bytes;
            ck_assert(k == 0 || p->tensors[a->step.alive[k]].bytes <= p->tensors[a->step.alive[k - 1]].bytes);
        }
        ck_assert_uint_eq(shown, sum);
        ck_assert_uint_eq(shown, p->instrs[i].requested_bytes);
    }
    screen_close(a);
}
END_TEST

START_TEST(bands_add_up_to_what_is_in_use)
{
    app *a = timeline_at(24, 80);
    const hr_step_plan *p = feed_step_plan(&a->feed);
    for (size_t i = 0; i < p->instr_count; i++) {
        uint64_t bands[BAND_COUNT], sum = 0;
        step_bands(&p->instrs[i], bands);
        for (int k = 0; k < BAND_COUNT; k++) {
            sum += bands[k];
        }
        ck_assert_uint_eq(sum, p->instrs[i].in_use_bytes);
    }
    screen_close(a);
}
END_TEST

// ---- zoom -------------------------------------------------------------------------------------------------------

static const size_t sizes[] = {1, 2, 3, 59, 60, 61, 127, 1000, 4999};

enum { SIZES = sizeof sizes / sizeof *sizes };

// Columns share the window out in order, and the highest moment of the window is the highest column.
static void check_columns(const app *a)
{
    const step_view *v = &a->step;
    const step_window *w = &v->window;
    uint64_t highest = 0, shown = 0;
    uint32_t next = w->first;
    ck_assert_uint_le(w->first + w->count, feed_step_plan(&a->feed)->instr_count);
    ck_assert(v->cursor >= w->first && v->cursor - w->first < w->count);
    for (uint32_t i = w->first; i < w->first + w->count; i++) {
        highest = v->height[i] > highest ? v->height[i] : highest;
    }
    for (uint32_t x = 0; x < w->columns; x++) {
        step_column c = step_column_of(v, w, x);
        bool joins = c.first == next || (w->count < w->columns && c.first + 1 == next);
        ck_assert_msg(joins, "column %" PRIu32 " begins at %" PRIu32 ", not %" PRIu32, x, c.first, next);
        ck_assert(c.highest >= c.first && c.highest - c.first < c.count);
        next = c.first + c.count;
        shown = v->height[c.highest] > shown ? v->height[c.highest] : shown;
    }
    ck_assert_uint_eq(next, w->first + w->count);
    ck_assert_uint_eq(shown, highest);
}

START_TEST(no_zoom_loses_the_highest_moment)
{
    app *a = timeline_at(24, 80);
    for (int k = 0; k < SIZES; k++) {
        show_heights(a, sizes[k], (uint64_t)k);
        for (int zoom = 0; zoom < 10; zoom++) {
            check_columns(a);
            screen_keys(a, "+");
        }
        ck_assert_uint_le(a->step.window.count, a->step.window.columns);
        while (!step_shows_run(&a->step)) {
            check_columns(a);
            screen_keys(a, "-");
        }
        screen_keys(a, "+");
        ck_assert_uint_eq(a->step.window.count, sizes[k]);
    }
    screen_close(a);
}
END_TEST

START_TEST(zooming_keeps_the_cursor_in_its_column)
{
    app *a = timeline_at(24, 80);
    show_heights(a, 4999, 7);
    for (uint32_t at = 0; at < 4999; at += 357) {
        step_go(&a->step, at);
        free(screen_text(a));
        int64_t before = step_column_at(&a->step.window, at);
        for (int zoom = 0; zoom < 6; zoom++) {
            screen_keys(a, "+");
            ck_assert_uint_eq(a->step.cursor, at);
            int64_t now = step_column_at(&a->step.window, at);
            ck_assert_msg(llabs(now - before) <= 6, "from column %" PRId64 " to %" PRId64, before, now);
        }
        screen_keys(a, "------");
    }
    screen_close(a);
}
END_TEST

START_TEST(every_instruction_is_in_the_column_that_is_said_to_show_it)
{
    app *a = timeline_at(24, 80);
    for (int k = 0; k < SIZES; k++) {
        show_heights(a, sizes[k], (uint64_t)k);
        const step_window w = {0, (uint32_t)sizes[k], 61};
        for (uint32_t i = 0; i < sizes[k]; i++) {
            step_column c = step_column_of(&a->step, &w, step_column_at(&w, i));
            ck_assert(i >= c.first && i - c.first < c.count);
        }
    }
    screen_close(a);
}
END_TEST

// ---- the map ----------------------------------------------------------------------------------------------------

// Columns of '[' and ']' (or the cursor on it) in the row below the map of the step.
static void read_window(app *a, int *left, int *right)
{
    rect map = app_layout(a).pane[PANE_MINIMAP];
    *left = *right = -1;
    for (int y = map.y; y < map.y + map.h; y++) {
        for (int x = TIMELINE_AXIS; x < map.w; x++) {
            wchar_t glyph = paint_read(y, x).glyph;
            *left = glyph == L'[' ? x - TIMELINE_AXIS : *left;
            *right = glyph == L']' ? x - TIMELINE_AXIS : *right;
        }
    }
}

START_TEST(the_maps_window_is_what_is_in_sight)
{
    app *a = timeline_at(24, 120);
    int columns = 120 - TIMELINE_AXIS - 1;
    show_heights(a, 4999, 3);
    screen_keys(a, "++");
    for (uint32_t at = 500; at < 4000; at += 500) {
        int left, right;
        step_go(&a->step, at);
        free(screen_text(a));
        const step_window *w = &a->step.window;
        read_window(a, &left, &right);
        ck_assert_int_ge(left, 0);
        ck_assert_int_gt(right, left);
        // Instructions of those two columns, by plain division.
        ck_assert_uint_le((uint32_t)(left * 4999 / columns), w->first);
        ck_assert_uint_gt((uint32_t)((left + 1) * 4999 / columns), w->first);
        uint32_t last = w->first + w->count - 1;
        ck_assert_uint_le((uint32_t)(right * 4999 / columns), last);
        ck_assert_uint_gt((uint32_t)((right + 1) * 4999 / columns), last);
    }
    screen_close(a);
}
END_TEST

START_TEST(beyond_the_step_lies_the_run_with_what_happened)
{
    app *a = screen_open(&(screen_look){.rows = 24, .columns = 120});
    of_the_run(a);
    char *text = screen_text(a);
    ck_assert(step_shows_run(&a->step));
    ck_assert_ptr_nonnull(strstr(text, "s ago"));
    rect map = app_layout(a).pane[PANE_MINIMAP];
    bool knob = false, oom = false;
    for (int x = TIMELINE_AXIS; x < map.w; x++) {
        wchar_t glyph = paint_read(map.y + map.h - 1, x).glyph;
        knob = knob || glyph == L'▲';
        oom = oom || glyph == L'!';
    }
    ck_assert(knob || oom); // both may fall into one column: then the graver one stands
    ck_assert(oom);
    free(text);
    for (int i = 0; i < 20; i++) {
        screen_keys(a, "-");
    }
    ck_assert_int_eq(a->step.zoom, STEP_ZOOM_RUN);
    screen_close(a);
}
END_TEST

START_TEST(the_maps_run_is_as_fine_as_it_can_be_whatever_the_clock_says)
{
    app *a = timeline_at(24, 80);
    ck_assert_uint_eq(minimap_level(&a->feed, 60), 0);
    a->feed.live.history.level[0].newest += UINT64_C(1) << 40; // a machine that has been up for years
    ck_assert_uint_eq(minimap_level(&a->feed, 60), 0);
    a->feed.live.history.level[0].count = 61;
    ck_assert_uint_eq(minimap_level(&a->feed, 60), 1);
    for (int k = 0; k < HISTORY_LEVELS; k++) {
        a->feed.live.history.level[k].count = HISTORY_LENGTH;
    }
    ck_assert_uint_eq(minimap_level(&a->feed, 60), HISTORY_LEVELS - 1);
    screen_close(a);
}
END_TEST

// ---- cursor -----------------------------------------------------------------------------------------------------

START_TEST(enter_goes_to_the_birth_of_a_tensor_and_to_its_death)
{
    app *a = timeline_at(36, 120);
    const hr_step_plan *p = feed_step_plan(&a->feed);
    a->focus = PANE_ALIVE;
    uint32_t tensor = a->step.alive[0];
    ck_assert_uint_ne(p->tensors[tensor].born, HR_NO_ID);
    app_key(a, INPUT_ENTER);
    ck_assert_uint_eq(a->step.cursor, p->tensors[tensor].born);
    free(screen_text(a));
    app_key(a, INPUT_ENTER);
    ck_assert_uint_eq(a->step.cursor, p->tensors[tensor].died);
    free(screen_text(a));
    app_key(a, INPUT_ENTER);
    ck_assert_uint_eq(a->step.cursor, p->tensors[tensor].born);
    // What was there before the step has neither.
    screen_keys(a, "/dense/weights\n");
    uint32_t before = a->step.cursor;
    free(screen_text(a));
    app_key(a, INPUT_ENTER);
    ck_assert_uint_eq(a->step.cursor, before);
    ck_assert_ptr_nonnull(strstr(a->feed.message.text, "before the step"));
    screen_close(a);
}
END_TEST

START_TEST(arrows_move_by_a_column_and_stay_within_the_step)
{
    app *a = timeline_at(24, 80);
    show_heights(a, 1000, 5);
    app_key(a, INPUT_HOME);
    ck_assert_uint_eq(a->step.cursor, 0);
    app_key(a, INPUT_DOWN);
    ck_assert_uint_eq(a->step.cursor, 1);
    app_key(a, INPUT_END);
    ck_assert_uint_eq(a->step.cursor, 999);
    app_key(a, INPUT_RIGHT);
    ck_assert_uint_eq(a->step.cursor, 999);
    uint32_t column = step_column_at(&a->step.window, a->step.cursor);
    while (column > 0) {
        app_key(a, INPUT_LEFT);
        ck_assert_uint_eq(step_column_at(&a->step.window, a->step.cursor), --column);
    }
    screen_keys(a, "++");
    for (int i = 0; i < 2000; i++) { // over the edge, as long as there is something
        uint32_t before = a->step.cursor;
        app_key(a, INPUT_RIGHT);
        ck_assert(a->step.cursor > before || before == 999);
    }
    ck_assert_uint_eq(a->step.cursor, 999);
    screen_close(a);
}
END_TEST

static void click(app *a, pane_id pane, int y, int x)
{
    rect place = app_layout(a).pane[pane];
    a->click_y = place.y + y;
    a->click_x = place.x + x;
    app_key(a, INPUT_CLICK);
    app_draw(a);
}

START_TEST(a_click_brings_the_cursor_to_what_is_shown_there)
{
    app *a = timeline_at(24, 120);
    show_heights(a, 4000, 9);
    for (int x = 0; x < 80; x += 13) {
        click(a, PANE_STACK, 2, TIMELINE_AXIS + x);
        ck_assert_int_eq((int)step_column_at(&a->step.window, a->step.cursor), x);
        click(a, PANE_MINIMAP, 1, TIMELINE_AXIS + x);
        const step_window whole = {0, 4000, 120 - TIMELINE_AXIS - 1};
        ck_assert_int_eq((int)step_column_at(&whole, a->step.cursor), x);
    }
    uint32_t before = a->step.cursor;
    click(a, PANE_STACK, 0, TIMELINE_AXIS + 5); // the title
    click(a, PANE_STACK, 2, 1);                 // the axis
    click(a, PANE_MINIMAP, 1, 1);
    ck_assert_uint_eq(a->step.cursor, before);
    screen_close(a);
}
END_TEST

START_TEST(the_cursor_stays_with_its_instruction_when_a_knob_is_turned)
{
    app *a = timeline_at(24, 80);
    for (uint32_t at = 0; at < 60; at += 7) {
        char before[128];
        step_go(&a->step, at);
        if (a->feed.step_plan.peak_instr == at) {
            continue; // stays with the peak instead
        }
        snprintf(before, sizeof before, "%s", step_name(&a->feed.step_plan, at));
        app_turn(&a->feed, HR_KNOB_EXECUTION_MODE, at % 2 == 0 ? "graph" : "eager");
        screen_advance(a, 2);
        fake_step_plan_show(a);
        ck_assert_str_eq(step_name(&a->feed.step_plan, a->step.cursor), before);
    }
    screen_close(a);
}
END_TEST

START_TEST(a_mark_says_what_lies_between)
{
    app *a = timeline_at(24, 120);
    step_go(&a->step, 10);
    screen_keys(a, "t");
    step_go(&a->step, 30);
    char *text = screen_text(a), expected[64];
    double delta = (double)a->feed.step_plan.instrs[30].requested_bytes -
                   (double)a->feed.step_plan.instrs[10].requested_bytes;
    snprintf(expected, sizeof expected, "since t 10: %+.2f MiB in 20 instructions", delta / 1048576);
    ck_assert_msg(strstr(text, expected) != NULL, "%s", expected);
    free(text);
    step_go(&a->step, 10);
    screen_keys(a, "t");
    ck_assert_uint_eq(a->step.marked, HR_NO_ID);
    screen_close(a);
}
END_TEST

SUITE_MAIN("tui timeline", it_looks_as_agreed,
           without_a_step_plan_refused_marked_and_of_the_run_it_looks_as_agreed,
           the_bytes_at_the_cursor_are_those_of_the_tensors_alive_there, bands_add_up_to_what_is_in_use,
           no_zoom_loses_the_highest_moment, zooming_keeps_the_cursor_in_its_column,
           every_instruction_is_in_the_column_that_is_said_to_show_it, the_maps_window_is_what_is_in_sight,
           beyond_the_step_lies_the_run_with_what_happened,
           the_maps_run_is_as_fine_as_it_can_be_whatever_the_clock_says,
           enter_goes_to_the_birth_of_a_tensor_and_to_its_death,
           arrows_move_by_a_column_and_stay_within_the_step, a_click_brings_the_cursor_to_what_is_shown_there,
           the_cursor_stays_with_its_instruction_when_a_knob_is_turned, a_mark_says_what_lies_between)
