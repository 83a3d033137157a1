// SPDX-License-Identifier: Apache-2.0
// The line that is being typed, with its cursor in reverse: the terminal's own cursor stays hidden.
#include <stdio.h>
#include <string.h>

#include "app/tui/widgets/widgets.h"

void widget_prompt(const canvas *c, const app *a)
{
    size_t count;
    const prompt *p = &a->prompt;
    char before[PROMPT_MAX];
    int x =
        a->overlay == OVERLAY_EDIT
            ? paint_format(c, 0, 0, c->area.w / 2, ROLE_KEY, "%s = ", hr_knob_rows(&count)[app_knob(a)].key)
            : paint_text(c, 0, 0, 1, ROLE_KEY, a->overlay == OVERLAY_FILTER ? "/" : ":");
    // A line longer than its place shows the part before the cursor.
    int room = c->area.w - x - 1;
    size_t start = 0;
    snprintf(before, sizeof before, "%.*s", (int)p->cursor, p->text);
    while (glyphs_width(c->glyphs, before + start) > room && start < p->cursor) {
        const char *next = before + start;
        utf8_next(&next);
        start = (size_t)(next - before);
    }
    x += paint_text(c, 0, x, room, p->selected ? ROLE_SELECT : ROLE_TEXT, before + start);
    const char *rest = p->text + p->cursor;
    const char *next = rest;
    wchar_t under = *rest == '\0' ? L' ' : glyphs_fold(c->glyphs, utf8_next(&next));
    paint_cell(c, 0, x, theme_role(c->theme, ROLE_SELECT), under);
    paint_text(c, 0, x + glyphs_columns(under), c->area.w - x - glyphs_columns(under), ROLE_TEXT, next);
}
