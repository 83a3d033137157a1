// SPDX-License-Identifier: Apache-2.0
#include "app/tui/shell/rows.h"
#include "tests/tui/suite.h"

enum { ROWS = 120, COLUMNS = 300 };

static bool meet(rect a, rect b)
{
    return a.h > 0 && a.w > 0 && b.h > 0 && b.w > 0 && a.y < b.y + b.h && b.y < a.y + a.h &&
           a.x < b.x + b.w && b.x < a.x + a.w;
}

static bool inside(rect r, int rows, int columns)
{
    return r.h == 0 ||
           (r.h > 0 && r.w > 0 && r.y >= 0 && r.x >= 0 && r.y + r.h <= rows && r.x + r.w <= columns);
}

// Plain conditions: an assertion each would take minutes over the sweep.
static void check_layout(const layout *l, int rows, int columns)
{
    int shown[PANE_COUNT], count = 0;
    for (int i = 0; i < PANE_COUNT; i++) {
        if (!inside(l->pane[i], rows, columns)) {
            ck_abort_msg("%dx%d: pane %d leaves the screen", columns, rows, i);
        }
        if (l->pane[i].h > 0) {
            shown[count++] = i;
        }
    }
    for (int i = 0; i < count; i++) {
        for (int j = 0; j < i; j++) {
            if (meet(l->pane[shown[i]], l->pane[shown[j]])) {
                ck_abort_msg("%dx%d: panes %d and %d overlap", columns, rows, shown[i], shown[j]);
            }
        }
    }
    if (count == 0) {
        ck_abort_msg("%dx%d: nothing is shown", columns, rows);
    }
}

static void check_screen(screen_id screen, int rows, int columns)
{
    for (const pane_id *pane = screen_row_of(screen)->panes; *pane != PANE_COUNT; pane++) {
        layout_wish wish = {screen_row_of(screen), true, *pane, 15};
        layout expanded = layout_make(rows, columns, &wish);
        wish.expanded = false;
        layout l = layout_make(rows, columns, &wish);
        check_layout(&expanded, rows, columns);
        check_layout(&l, rows, columns);
        if (expanded.kind == LAYOUT_FULL && expanded.pane[*pane].h == 0) {
            ck_abort_msg("%dx%d: pane %s is not expanded", columns, rows, pane_title(*pane));
        }
    }
}

START_TEST(every_size_has_panes_that_never_overlap_nor_leave_the_screen)
{
    for (int rows = 1; rows <= ROWS; rows++) {
        for (int columns = 1; columns <= COLUMNS; columns++) {
            for (int screen = 0; screen < SCREEN_COUNT; screen++) {
                check_screen((screen_id)screen, rows, columns);
            }
        }
    }
}
END_TEST

START_TEST(eighty_by_twenty_four_shows_everything_of_the_bench)
{
    layout_wish wish = {.screen = screen_row_of(SCREEN_BENCH), .focus = PANE_KNOBS, .knob_count = 15};
    layout l = layout_make(24, 80, &wish);
    static const pane_id shown[] = {PANE_KNOBS, PANE_COUNTERS, PANE_VRAM,  PANE_LOSS,  PANE_PEAK,
                                    PANE_LOG,   PANE_TITLE,    PANE_STRIP, PANE_FOOTER};
    ck_assert_int_eq(l.kind, LAYOUT_FULL);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        ck_assert_msg(l.pane[shown[i]].h > 0, "pane %s is missing", pane_title(shown[i]));
    }
    ck_assert_int_ge(l.pane[PANE_VRAM].h, 8);
}
END_TEST

START_TEST(the_doctor_leaves_the_knobs_at_hand)
{
    layout_wish wish = {.screen = screen_row_of(SCREEN_DOCTOR), .focus = PANE_KNOBS, .knob_count = 15};
    layout l = layout_make(24, 80, &wish);
    ck_assert_int_ge(l.pane[PANE_DOCTOR].h, 13);
    ck_assert_int_ge(l.pane[PANE_FIXES].h,
                     7); // title, headings, three of them and two rows of the selected one
    ck_assert_int_gt(l.pane[PANE_KNOBS].h, 8);
    ck_assert_int_eq(l.pane[PANE_LOSS].h, 0);
}
END_TEST

START_TEST(small_windows_fall_back_to_one_pane_a_meter_and_a_line)
{
    layout_wish wish = {.screen = screen_row_of(SCREEN_BENCH), .focus = PANE_VRAM, .knob_count = 15};
    ck_assert_int_eq(layout_make(16, 60, &wish).kind, LAYOUT_SINGLE);
    ck_assert_int_eq(layout_make(23, 80, &wish).kind, LAYOUT_SINGLE);
    ck_assert_int_eq(layout_make(10, 40, &wish).kind, LAYOUT_METER);
    ck_assert_int_eq(layout_make(4, 20, &wish).kind, LAYOUT_LINE);
    ck_assert_int_gt(layout_make(16, 60, &wish).pane[PANE_VRAM].h, 10);
}
END_TEST

START_TEST(tab_visits_every_pane_that_can_be_shown_and_comes_back)
{
    static const int sizes[][2] = {{24, 80}, {50, 160}, {16, 60}, {10, 40}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        layout_wish wish = {.screen = screen_row_of(SCREEN_BENCH), .focus = PANE_KNOBS, .knob_count = 15};
        int visits = 0;
        do {
            layout l = layout_make(sizes[i][0], sizes[i][1], &wish);
            ck_assert(layout_can_show(&l, &wish, wish.focus));
            wish.focus = layout_next(&l, &wish, 1);
            visits++;
        } while (wish.focus != PANE_KNOBS && visits < 20);
        ck_assert_int_le(visits, PANE_FOCUS_COUNT);
        ck_assert_int_eq(visits == 1, sizes[i][0] == 10);
    }
}
END_TEST

SUITE_MAIN("tui layout", every_size_has_panes_that_never_overlap_nor_leave_the_screen,
           eighty_by_twenty_four_shows_everything_of_the_bench, the_doctor_leaves_the_knobs_at_hand,
           small_windows_fall_back_to_one_pane_a_meter_and_a_line,
           tab_visits_every_pane_that_can_be_shown_and_comes_back)
