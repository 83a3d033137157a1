// SPDX-License-Identifier: Apache-2.0
// A key changes the step plan or says why it does not, in each pane of each screen.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/tui/shell/panes.h"
#include "app/tui/shell/requests.h"
#include "tests/tui/fake_step_plan.h"
#include "tests/tui/screen.h"
#include "tests/tui/suite.h"

enum { ROWS = 24, COLUMNS = 80, OFTEN = 40, EVERY_NTH = HEADROOM_SANITIZED ? 4 : 1 };

// What moves, zooms, or is answered by the pane that has the focus.
static const int keys[] = {
    INPUT_UP,   INPUT_DOWN, 'j', 'k',         INPUT_LEFT,  INPUT_RIGHT, INPUT_PAGE_UP, INPUT_PAGE_DOWN,
    INPUT_HOME, INPUT_END,  'G', '[',         ']',         '+',         '-',           'n',
    'N',        't',        'f', 'O',         'h',         'l',         'w',           INPUT_UNKNOWN,
    'L',        'P',        'a', INPUT_ENTER, INPUT_ESCAPE};

static app *in_pane(screen_id screen, pane_id pane)
{
    app *a = screen_open(&(screen_look){.rows = ROWS, .columns = COLUMNS});
    screen_advance(a, 20);
    fake_step_plan_show(a);
    app_show_screen(a, screen);
    a->focus = pane;
    free(screen_text(a)); // what is settled by being drawn
    return a;
}

// The frame with its colours.
static void take_frame(app *a, drawn frame[ROWS * COLUMNS])
{
    free(screen_text(a));
    memset(frame, 0, ROWS * COLUMNS * sizeof *frame);
    for (int y = 0; y < a->rows; y++) {
        for (int x = 0; x < a->columns;) {
            frame[y * COLUMNS + x] = paint_read(y, x);
            x += frame[y * COLUMNS + x].columns;
        }
    }
}

static bool is_same_frame(const drawn *one, const drawn *other)
{
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        const drawn *a = &one[i], *b = &other[i];
        if (a->glyph != b->glyph || a->style.foreground != b->style.foreground ||
            a->style.background != b->style.background || a->style.attributes != b->style.attributes) {
            return false;
        }
    }
    return true;
}

static void ck_speaks(app *a, int key, screen_id screen, pane_id pane)
{
    static drawn before[ROWS * COLUMNS], after[ROWS * COLUMNS];
    a->feed.message.kind = MESSAGE_NONE;
    take_frame(a, before);
    app_key(a, key);
    take_frame(a, after);
    ck_assert_msg(!is_same_frame(before, after), "key %x is silent in [%s] of screen %d", (unsigned)key,
                  pane_title(pane), (int)screen + 1);
}

// The first time, and where it has been pressed until nothing is left that way.
START_TEST(no_key_is_silent_in_any_pane)
{
    for (int screen = 0; screen < SCREEN_COUNT; screen++) {
        for (const pane_id *pane = screen_row_of((screen_id)screen)->panes; *pane != PANE_COUNT; pane++) {
            for (size_t i = (size_t)(screen % EVERY_NTH); i < sizeof keys / sizeof *keys; i += EVERY_NTH) {
                app *a = in_pane((screen_id)screen, *pane);
                ck_speaks(a, keys[i], (screen_id)screen, *pane);
                for (int k = 0; k < OFTEN && a->screen == (screen_id)screen && !app_is_typing(a); k++) {
                    app_key(a, keys[i]);
                }
                if (a->screen == (screen_id)screen && a->overlay == OVERLAY_NONE) {
                    ck_speaks(a, keys[i], (screen_id)screen, *pane);
                }
                screen_close(a);
            }
        }
    }
}
END_TEST

SUITE_MAIN("tui silent", no_key_is_silent_in_any_pane)
