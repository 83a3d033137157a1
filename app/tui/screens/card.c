// SPDX-License-Identifier: Apache-2.0
// Shown once ever: what this is, and what to press.
#include "app/tui/screens/screens.h"
#include "app/tui/tour.h"

static const char *const what[] = {
    "Behind this card a network trains, in a memory of limited size.",
    "The graph shows who holds its bytes. The knobs decide how many there are:",
    "turn one, and see what it does; beside each stands what it would do.",
};

enum { WIDTH = 78, WIDE = 100, WHAT = sizeof what / sizeof *what, KEY_WIDTH = 7, MARGIN = 2 };

void screen_card(const canvas *body, const app *a)
{
    (void)a;
    size_t count;
    const card_choice *choices = card_choices(&count);
    int rows = 1 + WHAT + 1 + (int)count + 1;
    int width = body->area.w < WIDE ? body->area.w : WIDTH;
    int y = body->area.h > rows ? (body->area.h - rows) / 2 : 0;
    canvas c = canvas_sub(body, y, (body->area.w - width) / 2, rows, width);
    for (int row = 0; row < rows; row++) {
        paint_blank(&c, row, 0, width, theme_role(c.theme, ROLE_TEXT));
    }
    paint_rule(&c, true, "headroom", "any key closes this");
    for (int i = 0; i < (int)WHAT; i++) {
        paint_text(&c, 1 + i, MARGIN, width - MARGIN, ROLE_TEXT, what[i]);
    }
    for (int i = 0; i < (int)count; i++) {
        int row = 2 + (int)WHAT + i;
        paint_text(&c, row, MARGIN, KEY_WIDTH, ROLE_KEY, choices[i].shown);
        paint_text(&c, row, MARGIN + KEY_WIDTH, width - MARGIN - KEY_WIDTH, ROLE_TEXT, choices[i].line);
    }
}
