// SPDX-License-Identifier: Apache-2.0
// Which columns the focused table shows.
#include "app/tui/shell/frame.h"

enum { NAME_WIDTH = 22 };

void screen_columns(const canvas *body, const app *a)
{
    const table_source *s = pane_ops_of(a->focus)->table;
    const table_view *v = &a->table[a->focus];
    enum { MEANING_ROWS = 3 };
    int rows = body->area.h - 1 - MEANING_ROWS;
    unsigned top = (int)a->column >= rows ? (unsigned)((int)a->column - rows + 1) : 0;
    canvas later = *body;
    later.said_later = true; // below, when it is chosen
    paint_rule(body, true, "columns", "");
    for (unsigned i = top; i < s->column_count && (int)(i - top) < rows; i++) {
        int y = 1 + (int)(i - top);
        role r = a->column == i ? ROLE_SELECT : ROLE_TEXT;
        if (a->column == i) {
            paint_blank(body, y, 0, body->area.w, theme_role(body->theme, r));
        }
        paint_text(body, y, 1, 3, r, (v->hidden >> i & 1) != 0 ? "[ ]" : "[x]");
        paint_text(body, y, 5, NAME_WIDTH, r, s->columns[i].term);
        paint_text(&later, y, 6 + NAME_WIDTH, body->area.w - NAME_WIDTH - 7, r,
                   table_column_line(&s->columns[i]));
    }
    canvas words = canvas_sub(body, body->area.h - MEANING_ROWS, 1, MEANING_ROWS, body->area.w - 2);
    paint_wrapped(&words, 0, ROLE_FOCUS,
                  a->column < s->column_count ? table_column_line(&s->columns[a->column]) : "");
}
