// SPDX-License-Identifier: Apache-2.0
// Shown once ever: what this is, and what to press.
#include "app/tui/shell/frame.h"
#include "app/tui/shell/tour.h"

static const char what_trains[] =
    "Behind this card a network trains, in a memory of limited size. The graph shows who holds "
    "its bytes. The knobs decide how many there are: turn one, and see what it does; beside "
    "each stands what it would do.";
static const char what_misses[] =
    "Behind this card a network does not fit into its memory. The Doctor says why, and which knobs "
    "would make it fit: a applies what it found. Beside each knob stands what it would do.";

enum { WIDTH = 78, WIDE = 100, KEY_WIDTH = 7, MARGIN = 2 };

void screen_card(const canvas *body, const feed *f)
{
    const char *what = f->live.state == HR_ENGINE_OOM ? what_misses : what_trains;
    size_t count;
    const card_choice *choices = card_choices(&count);
    int width = body->area.w < WIDE ? body->area.w : WIDTH, said = 0;
    for (size_t at = 0, start, length;
         wrap_next(body->glyphs, what, width - 2 * MARGIN, &at, &start, &length);) {
        said++;
    }
    int rows = 1 + said + 1 + (int)count + 1;
    int y = body->area.h > rows ? (body->area.h - rows) / 2 : 0;
    canvas c = canvas_sub(body, y, (body->area.w - width) / 2, rows, width);
    for (int row = 0; row < rows; row++) {
        paint_blank(&c, row, 0, width, theme_role(c.theme, ROLE_TEXT));
    }
    paint_rule(&c, true, "headroom", "any key closes this");
    canvas words = canvas_sub(&c, 1, MARGIN, said, width - 2 * MARGIN);
    paint_wrapped(&words, 0, ROLE_TEXT, what);
    for (int i = 0; i < (int)count; i++) {
        int row = 2 + said + i;
        paint_text(&c, row, MARGIN, KEY_WIDTH, ROLE_KEY, choices[i].shown);
        paint_text(&c, row, MARGIN + KEY_WIDTH, width - MARGIN - KEY_WIDTH, ROLE_TEXT, choices[i].line);
    }
}
