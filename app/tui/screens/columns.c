// SPDX-License-Identifier: Apache-2.0
// Which columns the focused table shows.
#include "headroom/terms.h"

#include "app/tui/screens/screens.h"

enum { NAME_WIDTH = 22 };

void screen_columns(const canvas *body, const app *a)
{
    const table_source *s = pane_ops_of(a->focus)->table;
    const table_view *v = &a->table[a->focus];
    paint_rule(body, true, "columns", "↑↓ choose · Enter shows or hides · Esc closes");
    for (unsigned i = 0; i < s->column_count && 1 + (int)i < body->area.h; i++) {
        int y = 1 + (int)i;
        const hr_term *term = hr_term_find(s->columns[i].term);
        role r = a->column == i ? ROLE_SELECT : ROLE_TEXT;
        if (a->column == i) {
            paint_blank(body, y, 0, body->area.w, theme_role(body->theme, r));
        }
        paint_text(body, y, 1, 3, r, (v->hidden >> i & 1) != 0 ? "[ ]" : "[x]");
        paint_text(body, y, 5, NAME_WIDTH, r, s->columns[i].term);
        paint_text(body, y, 6 + NAME_WIDTH, body->area.w - NAME_WIDTH - 7, r, term == NULL ? "" : term->line);
    }
}
